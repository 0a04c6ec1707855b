//! Shared by pooling ops: type rule and class over the geometry of windows, and unfolding of an operand into its windows
//! and back, which their gradients are made of (channels second). No op is named here.

use super::{
    GVal, Gather, GradCx, InferCx, LowerCx, Lowering,
    window::{Geometry, Layout},
};
use crate::class::{Access, Class, Reducer, Window};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Pred, Type};

/// Attributes of a pooling op.
pub(crate) struct Pool<'a> {
    /// Op name, for constraint ids.
    pub(crate) name: &'static str,
    /// Extents of the window.
    pub(crate) kernel: &'a [i64],
    /// Steps of the window.
    pub(crate) strides: &'a [i64],
    /// Padding before each axis, then after each axis.
    pub(crate) pads: &'a [i64],
    /// Distance of the window's elements.
    pub(crate) dilations: &'a [i64],
    /// Round the number of windows up.
    pub(crate) ceil: bool,
    /// The operand is [N, spatial.., C], not [N, C, spatial..].
    pub(crate) channels_last: bool,
}

impl Pool<'_> {
    /// The windows.
    pub(crate) fn geometry(&self) -> Geometry<'_> {
        Geometry {
            name: self.name,
            kernel: self.kernel.iter().map(|&k| Dim::from(k)).collect(),
            strides: self.strides,
            pads: self.pads,
            dilations: self.dilations,
            ceil: self.ceil,
        }
    }

    /// Where the axes are.
    pub(crate) fn layout(&self, x: &Type) -> Layout {
        Layout { rank: x.rank(), last: self.channels_last }
    }

    /// Type rule, the element type apart.
    pub(crate) fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.check(
            t.rank() >= 3,
            &format!("{}.c1", self.name),
            "the operand needs rank 3 or more (batch, channels and spatial axes)",
        )?;
        let geo = self.geometry();
        geo.check(cx, t.rank() - 2)?;
        let n = geo.axes();
        for (i, pad) in self.pads.iter().enumerate() {
            let less = Dim::from(*pad).as_const() < geo.span(i % n).as_const();
            let text = format!("padding {pad} must be smaller than the window's span {}", geo.span(i % n));
            cx.check(less, &format!("{}.c5", self.name), text)?;
        }
        let layout = self.layout(t);
        let mut windows = Vec::new();
        for i in 0..n {
            windows.push(geo.windows(cx, i, &t.shape[layout.spatial(i)])?);
        }
        let shape = layout.order(t.shape[0].clone(), t.shape[layout.channel()].clone(), windows);
        Ok(vec![Type::new(t.dtype, shape).into()])
    }

    /// Class with a reducer.
    pub(crate) fn lower(&self, cx: &LowerCx<'_>, reducer: Reducer) -> Lowering {
        let (geo, x) = (self.geometry(), &cx.ins[0]);
        let rank = x.rank() as u32;
        let layout = self.layout(x);
        let (mut spatial, mut when) = (Vec::new(), Vec::new());
        for i in 0..geo.axes() {
            let axis = layout.spatial(i);
            let at = geo.read(i, &Dim::label(axis as u32), &Dim::label(rank + i as u32));
            when.push(geo.inside(i, &at, &x.shape[axis]));
            spatial.push(at);
        }
        let index = layout.order(Dim::label(0), Dim::label(layout.channel() as u32), spatial);
        let access = Access { index, when: Pred::all(when) };
        Lowering::Class(Class::Window(Window { extents: geo.kernel.clone(), access, reducer }))
    }

    /// Padding before and after each axis that holds every window whole.
    pub(crate) fn margins(&self, cx: &GradCx<'_>) -> (Vec<Dim>, Vec<Dim>) {
        let geo = self.geometry();
        let (x, y) = (cx.b.ty(cx.operands[0]).shape, cx.b.ty(cx.results[0]).shape);
        let (mut before, mut after) = (vec![Dim::from(0); 2], vec![Dim::from(0); 2]);
        for i in 0..geo.axes() {
            let first = Dim::from(self.pads[i]);
            let end = (y[i + 2].clone() - Dim::from(1)) * Dim::from(self.strides[i]) + geo.span(i);
            after.push((end - first.clone() - x[i + 2].clone()).dmax(&Dim::from(0)));
            before.push(first);
        }
        (before, after)
    }

    /// Index along spatial axis `i` of every element of every window: [windows, kernel].
    fn positions(&self, cx: &mut GradCx<'_>, i: usize) -> GVal {
        let windows = cx.b.ty(cx.results[0]).shape[i + 2].clone();
        let like = cx.zeros(&Type::new(DType::I64, vec![windows, Dim::from(self.kernel[i])]));
        let starts = cx.line(like, 0, Dim::from(0), self.strides[i]);
        let within = cx.line(like, 1, Dim::from(0), self.dilations[i]);
        cx.add(starts, within)
    }

    /// Every window of the padded operand: [N, C, windows.., kernel elements].
    pub(crate) fn unfold(&self, cx: &mut GradCx<'_>, mut x: GVal) -> GVal {
        let n = self.kernel.len();
        for i in 0..n {
            let at = self.positions(cx, i);
            x = cx.op1(Gather { axis: 2 + 2 * i as i64 }, &[x, at]);
        }
        let perm: Vec<usize> =
            [0, 1].into_iter().chain((0..n).map(|i| 2 + 2 * i)).chain((0..n).map(|i| 3 + 2 * i)).collect();
        let x = cx.transpose(x, &perm);
        let mut shape = cx.b.ty(x).shape[..2 + n].to_vec();
        shape.push(Dim::from(self.kernel.iter().product::<i64>()));
        cx.reshape(x, shape)
    }

    /// The transpose of padding and [`Pool::unfold`]: adds the elements of every window up.
    pub(crate) fn fold(&self, cx: &mut GradCx<'_>, g: GVal) -> GVal {
        let n = self.kernel.len();
        let full = cx.b.ty(cx.operands[0]);
        let (before, after) = self.margins(cx);
        let mut shape = cx.b.ty(g).shape[..2 + n].to_vec();
        shape.extend(self.kernel.iter().map(|&k| Dim::from(k)));
        let g = cx.reshape(g, shape);
        let perm: Vec<usize> = [0, 1].into_iter().chain((0..n).flat_map(|i| [2 + i, 2 + n + i])).collect();
        let mut g = cx.transpose(g, &perm);
        for i in (0..n).rev() {
            let at = self.positions(cx, i);
            let mut ty = cx.b.ty(g);
            let axis = 2 + 2 * i;
            ty.shape.remove(axis + 1);
            ty.shape[axis] = full.shape[i + 2].clone() + before[i + 2].clone() + after[i + 2].clone();
            g = cx.ungather(&ty, axis, at, g);
        }
        cx.window(g, before, full.shape)
    }
}
