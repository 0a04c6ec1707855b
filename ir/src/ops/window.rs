//! Geometry of sliding windows, shared by convolution and pooling: sizes, the affine index of a read and the condition
//! for it to be inside the operand; and where the axes are, channels second or last. No op is named here.

use super::{GVal, GradCx, InferCx};
use crate::diag::Diag;
use crate::types::{Dim, Pred};

/// Largest stride, dilation, padding or pooling kernel.
const LIMIT: i64 = 1 << 31;

/// Where the axes of a windowed operand and result are: [N, C, spatial..], or [N, spatial.., C] with channels last.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    /// Rank of operand and result, 3 or more.
    pub(crate) rank: usize,
    /// Channels are the last axis, else the second.
    pub(crate) last: bool,
}

impl Layout {
    /// Axis of the channels.
    pub(crate) fn channel(self) -> usize {
        if self.last { self.rank - 1 } else { 1 }
    }

    /// Axis number `i` of the spatial ones.
    pub(crate) fn spatial(self, i: usize) -> usize {
        if self.last { 1 + i } else { 2 + i }
    }

    /// One entry an axis.
    pub(crate) fn order<T>(self, n: T, channel: T, spatial: impl IntoIterator<Item = T>) -> Vec<T> {
        let (mut first, mut last) = (vec![n], Vec::new());
        if self.last {
            last.push(channel)
        } else {
            first.push(channel)
        }
        first.extend(spatial);
        first.extend(last);
        first
    }

    /// A value with channels second in this layout: the cotangent of an operand.
    pub(crate) fn restore(self, cx: &mut GradCx<'_>, x: GVal) -> GVal {
        cx.transpose(x, &self.order(0, 1, 2..self.rank))
    }
}

impl GradCx<'_> {
    /// Puts the channels of operand 0, result 0 and its cotangent second, for a rule written for that layout.
    pub(crate) fn channels_second(&mut self, from: Layout) {
        let perm: Vec<usize> =
            [0, from.channel()].into_iter().chain((2..from.rank).map(|i| from.spatial(i - 2))).collect();
        self.operands[0] = self.transpose(self.operands[0], &perm);
        self.results[0] = self.transpose(self.results[0], &perm);
        self.cotangents[0] = self.transpose(self.cotangents[0], &perm);
    }
}

/// Window of an op, one entry a spatial axis (`pads`: begins, then ends).
pub(crate) struct Geometry<'a> {
    /// Op name, for constraint ids.
    pub(crate) name: &'static str,
    /// Extents of the window.
    pub(crate) kernel: Vec<Dim>,
    /// Steps of the window.
    pub(crate) strides: &'a [i64],
    /// Padding before each axis, then after each axis.
    pub(crate) pads: &'a [i64],
    /// Distance of the window's elements.
    pub(crate) dilations: &'a [i64],
    /// Round the number of windows up.
    pub(crate) ceil: bool,
}

impl Geometry<'_> {
    /// Number of spatial axes.
    pub(crate) fn axes(&self) -> usize {
        self.kernel.len()
    }

    /// Checks lengths (`c2`) and ranges (`c3`) of the attributes against the number of spatial axes.
    pub(crate) fn check(&self, cx: &InferCx<'_>, axes: usize) -> Result<(), Diag> {
        let lens = (self.kernel.len(), self.strides.len(), self.dilations.len(), self.pads.len());
        let text = format!(
            "kernel, strides and dilations need one entry a spatial axis and pads two, so {axes}, {axes}, {axes}, {}; \
             found {}, {}, {}, {}",
            2 * axes,
            lens.0,
            lens.1,
            lens.2,
            lens.3
        );
        cx.check(lens == (axes, axes, axes, 2 * axes), &format!("{}.c2", self.name), text)?;
        let id = format!("{}.c3", self.name);
        let sized = |v: &[i64], lo: i64| v.iter().all(|x| (lo..=LIMIT).contains(x));
        cx.check(
            sized(self.strides, 1),
            &id,
            format!("strides must be 1 or more, found {:?}", self.strides),
        )?;
        cx.check(
            sized(self.dilations, 1),
            &id,
            format!("dilations must be 1 or more, found {:?}", self.dilations),
        )?;
        cx.check(sized(self.pads, 0), &id, format!("pads must be 0 or more, found {:?}", self.pads))?;
        let kernel = self.kernel.iter().all(|k| k.as_const().is_none_or(|k| (1..=LIMIT).contains(&k)));
        cx.check(kernel, &id, "every kernel extent must be 1 or more")
    }

    fn pad(&self, i: usize) -> (i64, i64) {
        (self.pads[i], self.pads[self.axes() + i])
    }

    /// Elements a window spans on axis `i`.
    pub(crate) fn span(&self, i: usize) -> Dim {
        (self.kernel[i].clone() - Dim::from(1)) * Dim::from(self.dilations[i]) + Dim::from(1)
    }

    /// Number of windows on axis `i` of extent `d`. The window must fit in the padded operand (`c4`).
    pub(crate) fn windows(&self, cx: &mut InferCx<'_>, i: usize, d: &Dim) -> Result<Dim, Diag> {
        let ((pb, pe), s, span) = (self.pad(i), self.strides[i], self.span(i));
        let padded = d.clone() + Dim::from(pb) + Dim::from(pe);
        let why = format!("the window must fit in the padded operand [{}.c4]", self.name);
        cx.require(Pred::Le(span.clone(), padded.clone()), &why)?;
        let (room, one) = (padded - span.clone(), Dim::from(1));
        let step = Dim::from(s);
        if !self.ceil {
            return Ok(room.floordiv(&step) + one);
        }
        let n = (room + Dim::from(s - 1)).floordiv(&step) + one.clone();
        // no window can start beyond the operand when the last one reaches back far enough
        if cx.symbols.proves_le(&Dim::from(pe + s), &span) {
            return Ok(n);
        }
        Ok(n.dmin(&((d.clone() + Dim::from(pb - 1)).floordiv(&step) + one)))
    }

    /// Index read on axis `i` by element `within` of window `at`.
    pub(crate) fn read(&self, i: usize, at: &Dim, within: &Dim) -> Dim {
        at.clone() * Dim::from(self.strides[i]) + within.clone() * Dim::from(self.dilations[i])
            - Dim::from(self.pad(i).0)
    }

    /// Condition for index `index` on axis `i` of extent `d` to be inside.
    pub(crate) fn inside(&self, i: usize, index: &Dim, d: &Dim) -> Pred {
        let (pb, pe) = self.pad(i);
        let below = (pb > 0).then(|| Pred::Le(Dim::from(0), index.clone()));
        let over = pe > 0 || (self.ceil && self.strides[i] > 1);
        let above = over.then(|| Pred::Le(index.clone() + Dim::from(1), d.clone()));
        Pred::all(below.into_iter().chain(above))
    }

    /// True when a window can reach outside the operand.
    pub(crate) fn overhangs(&self) -> bool {
        self.pads.iter().any(|p| *p > 0) || (self.ceil && self.strides.iter().any(|s| *s > 1))
    }
}
