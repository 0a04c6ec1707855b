//! Other orders and repetitions of the same elements: flips, rolls, triangles, diagonals, borders, windows.

use super::shape::{expanded, ir_sizes, moved, permuted, reshaped, sliced};
use super::tape::demand;
use crate::nn::dim::{Dim, IntoShape};
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Pred;

type At = &'static Location<'static>;

/// What is put around a tensor by [`Tensor::pad`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// This value.
    Constant(f64),
    /// The elements inside, mirrored at the outermost ones.
    Reflect,
    /// The outermost elements.
    Replicate,
    /// The elements of the other end.
    Circular,
}

/// Slices of `x` at the places that a line of indices says.
#[track_caller]
pub(crate) fn picked(x: &Tensor, axis: usize, places: &Tensor, at: At) -> Tensor {
    apply(ops::Gather { axis: axis as i64 }, &[x, places], at)
}

/// Column less row, of the last two axes.
#[track_caller]
fn offsets(rows: Dim, columns: Dim) -> Tensor {
    Tensor::arange(columns).unsqueeze(0).sub(Tensor::arange(rows).unsqueeze(1))
}

#[track_caller]
fn matrix(x: &Tensor, what: &str, at: At) -> Option<(Dim, Dim)> {
    let shape = x.shape();
    match shape[..] {
        _ if x.failed() => None,
        [.., rows, columns] => Some((rows, columns)),
        _ => {
            let m = format!("{what} of a tensor of rank {}: {x:#}", shape.len());
            report(Diag::error("E-NN-076", m).help("give rank 2 or more"), at);
            None
        }
    }
}

impl Tensor {
    /// The order of elements reversed along axes.
    #[track_caller]
    pub fn flip(&self, dims: &[i64]) -> Tensor {
        let at = Location::caller();
        if dims.is_empty() {
            return self.clone();
        }
        let Some(axes) = self.axes(dims, at) else { return Tensor::FAILED };
        let shape = self.shape();
        let (mut starts, mut steps) = (vec![Dim::from(0); shape.len()], vec![1; shape.len()]);
        for a in axes {
            (starts[a], steps[a]) = (shape[a] - 1, -1);
        }
        if shape.iter().any(|d| d.as_known() == Some(0)) {
            return self.clone();
        }
        match (ir_sizes(&starts, at), ir_sizes(&shape, at)) {
            (Some(starts), Some(sizes)) => apply(ops::Slice { starts, sizes, steps }, &[self], at),
            _ => Tensor::FAILED,
        }
    }

    /// Columns in reverse: [`Tensor::flip`] of axis 1.
    #[track_caller]
    pub fn fliplr(&self) -> Tensor {
        self.flip(&[1])
    }

    /// Rows in reverse: [`Tensor::flip`] of axis 0.
    #[track_caller]
    pub fn flipud(&self) -> Tensor {
        self.flip(&[0])
    }

    /// Elements moved along axes, those beyond the end coming back at the start. Without axes the flattened tensor is
    /// rolled.
    #[track_caller]
    pub fn roll(&self, shifts: &[i64], dims: &[i64]) -> Tensor {
        let at = Location::caller();
        if dims.is_empty() && shifts.len() == 1 {
            return self.reshape(-1).roll(shifts, &[0]).reshape_as(self);
        }
        if shifts.len() != dims.len() {
            let m = format!("roll by {shifts:?} along {dims:?}");
            report(Diag::error("E-NN-075", m).help("give as many shifts as axes"), at);
            return Tensor::FAILED;
        }
        let mut y = self.clone();
        for (shift, dim) in shifts.iter().zip(dims) {
            let Some(a) = y.axis(*dim, at) else { return Tensor::FAILED };
            let n = y.shape()[a];
            if n.as_known() == Some(0) {
                continue;
            }
            let places = Tensor::arange(n).sub(*shift).remainder(n);
            y = picked(&y, a, &places, at);
        }
        y
    }

    /// Turned `k` times by 90 degrees from the first axis toward the second.
    #[track_caller]
    pub fn rot90(&self, k: i64, dims: [i64; 2]) -> Tensor {
        let [a, b] = dims;
        match k.rem_euclid(4) {
            1 => self.flip(&[b]).transpose(a, b),
            2 => self.flip(&[a, b]),
            3 => self.flip(&[a]).transpose(a, b),
            _ => self.clone(),
        }
    }

    /// Zeros above the `k`-th diagonal of the last two axes.
    #[track_caller]
    pub fn tril(&self, k: i64) -> Tensor {
        let at = Location::caller();
        let Some((rows, columns)) = matrix(self, "tril", at) else { return Tensor::FAILED };
        self.masked_fill(&offsets(rows, columns).gt(k), 0)
    }

    /// Zeros below the `k`-th diagonal of the last two axes.
    #[track_caller]
    pub fn triu(&self, k: i64) -> Tensor {
        let at = Location::caller();
        let Some((rows, columns)) = matrix(self, "triu", at) else { return Tensor::FAILED };
        self.masked_fill(&offsets(rows, columns).lt(k), 0)
    }

    /// The `offset`-th diagonal of two axes, as a last axis in their place.
    #[track_caller]
    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Tensor {
        let at = Location::caller();
        let Some(axes) = self.axes(&[dim1, dim2], at) else { return Tensor::FAILED };
        let rank = self.dim();
        let x = permuted(self, &moved(rank, &axes, &[rank - 2, rank - 1]), at);
        let shape = x.shape();
        let (rows, columns) = (shape[rank - 2], shape[rank - 1]);
        let (top, left) = ((-offset).max(0), offset.max(0));
        let len = (rows - top).min(columns - left).max(0);
        let line = Tensor::arange(len);
        let places = line.add(top).mul(columns).add(line.add(left));
        let mut flat = shape[..rank - 2].to_vec();
        flat.push(rows * columns);
        picked(&reshaped(&x, &flat, at), rank - 2, &places, at)
    }

    /// Of a line, the matrix with it as the `k`-th diagonal; of a matrix, that diagonal.
    #[track_caller]
    pub fn diag(&self, k: i64) -> Tensor {
        let at = Location::caller();
        match self.dim() {
            _ if self.failed() => Tensor::FAILED,
            1 => self.diag_embed(k),
            2 => self.diagonal(k, 0, 1),
            r => {
                let m = format!("diag of a tensor of rank {r}: {self:#}");
                report(
                    Diag::error("E-NN-076", m).help("give rank 1 or 2; diagonal and diag_embed take more"),
                    at,
                );
                Tensor::FAILED
            }
        }
    }

    /// Matrices with the last axis as their `offset`-th diagonal and zeros elsewhere, as two last axes.
    #[track_caller]
    pub fn diag_embed(&self, offset: i64) -> Tensor {
        let at = Location::caller();
        let Some(last) = self.axis(-1, at) else { return Tensor::FAILED };
        let n = self.shape()[last];
        let side = n + offset.abs();
        let (before, after) = ((-offset).max(0), offset.max(0));
        // row i holds element i - before, at column i + offset
        let mut pads = vec![Dim::from(0); 2];
        (pads[0], pads[1]) = (before.into(), after.into());
        let rows = self.pad(pads, PadMode::Constant(0.0)).unsqueeze(-1);
        rows.masked_fill(&offsets(side, side).ne(offset), 0)
    }

    /// A border: amounts before and after the last axis, then the one before it and so on. Negative numbers cut with
    /// [`PadMode::Constant`].
    #[track_caller]
    pub fn pad(&self, amounts: impl IntoShape, mode: PadMode) -> Tensor {
        let at = Location::caller();
        let amounts = amounts.into_shape();
        if self.failed() {
            return Tensor::FAILED;
        }
        if !amounts.len().is_multiple_of(2) || amounts.len() > 2 * self.dim() {
            let m = format!("pad of {self:#} by {amounts:?}");
            let help = "give two amounts an axis, beginning with the last axis";
            report(Diag::error("E-NN-077", m).help(help), at);
            return Tensor::FAILED;
        }
        let sides: Vec<(usize, Dim, Dim)> =
            amounts.chunks(2).enumerate().map(|(i, p)| (self.dim() - 1 - i, p[0], p[1])).collect();
        match mode {
            PadMode::Constant(value) => bordered(self, &sides, value, at),
            _ => {
                let mut y = self.clone();
                for (a, before, after) in sides {
                    y = continued(&y, a, before, after, mode, at);
                }
                y
            }
        }
    }

    /// Windows of `size` elements along an axis, `step` apart, as a last axis: `Tensor.unfold`.
    #[track_caller]
    pub fn unfold(&self, dim: i64, size: impl Into<Dim>, step: i64) -> Tensor {
        let at = Location::caller();
        let size = size.into();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        if step < 1 {
            report(
                Diag::error("E-NN-095", format!("unfold with steps of {step}")).help("give 1 or more"),
                at,
            );
            return Tensor::FAILED;
        }
        let n = self.shape()[a];
        if let (Ok(s), Ok(n)) = (size.size(), n.size())
            && !demand(&Pred::Le(s, n), "unfold: a window must not be longer than the axis", at)
        {
            return Tensor::FAILED;
        }
        let count = (n - size) / step + 1;
        let places = Tensor::arange(count).mul(step).unsqueeze(1).add(Tensor::arange(size).unsqueeze(0));
        let y = picked(self, a, &places, at);
        let rank = y.dim();
        if y.failed() { y } else { permuted(&y, &moved(rank, &[a + 1], &[rank - 1]), at) }
    }

    /// The tensor side by side with itself, so often along each axis; more numbers than axes give new axes in front.
    #[track_caller]
    pub fn repeat(&self, times: impl IntoShape) -> Tensor {
        let at = Location::caller();
        let times = times.into_shape();
        if self.failed() {
            return Tensor::FAILED;
        }
        let Some(new) = times.len().checked_sub(self.dim()) else {
            let m = format!("repeat of {self:#} by {times:?}");
            report(Diag::error("E-NN-078", m).help("give a number for each axis; tile takes fewer"), at);
            return Tensor::FAILED;
        };
        let mut shape = vec![Dim::from(1); new];
        shape.extend(self.shape());
        let (mut apart, mut wide, mut joined) = (Vec::new(), Vec::new(), Vec::new());
        for (n, t) in shape.iter().zip(&times) {
            apart.extend([Dim::from(1), *n]);
            wide.extend([*t, *n]);
            joined.push(*t * *n);
        }
        reshaped(&expanded(&reshaped(self, &apart, at), &wide, at), &joined, at)
    }

    /// [`Tensor::repeat`], where numbers missing in front are 1.
    #[track_caller]
    pub fn tile(&self, times: impl IntoShape) -> Tensor {
        let mut times = times.into_shape();
        while times.len() < self.dim() {
            times.insert(0, 1.into());
        }
        self.repeat(times)
    }

    /// Each element `times` times in a row along an axis; without one, of the flattened tensor.
    #[track_caller]
    pub fn repeat_interleave(&self, times: impl Into<Dim>, dim: impl Into<Option<i64>>) -> Tensor {
        let at = Location::caller();
        let (times, dim) = (times.into(), dim.into());
        let x = if dim.is_some() { self.clone() } else { self.reshape(-1) };
        let Some(a) = x.axis(dim.unwrap_or(0), at) else { return Tensor::FAILED };
        let mut shape = x.shape();
        shape.insert(a + 1, 1.into());
        let apart = reshaped(&x, &shape, at);
        shape[a + 1] = times;
        let wide = expanded(&apart, &shape, at);
        let n = shape.remove(a + 1) * shape[a];
        shape[a] = n;
        reshaped(&wide, &shape, at)
    }
}

/// The constant around a tensor; known negative amounts cut.
#[track_caller]
pub(crate) fn bordered(x: &Tensor, sides: &[(usize, Dim, Dim)], value: f64, at: At) -> Tensor {
    let rank = x.dim();
    let (mut before, mut after) = (vec![Dim::from(0); rank], vec![Dim::from(0); rank]);
    let mut y = x.clone();
    for (a, b, e) in sides {
        let cut = |d: &Dim| d.as_known().filter(|n| *n < 0).map_or(0, |n| -n);
        let (front, back) = (cut(b), cut(e));
        if front + back > 0 {
            let len = y.shape()[*a] - front - back;
            y = sliced(&y, *a, front.into(), len, 1, at);
        }
        (before[*a], after[*a]) =
            (if front > 0 { 0.into() } else { *b }, if back > 0 { 0.into() } else { *e });
        if y.failed() {
            return y;
        }
    }
    match (ir_sizes(&before, at), ir_sizes(&after, at)) {
        (Some(before), Some(after)) => {
            let value = Scalar::from_f64(y.dtype(), value);
            apply(ops::Pad { before, after, value }, &[&y], at)
        }
        _ => Tensor::FAILED,
    }
}

/// One axis with elements of its own around it.
#[track_caller]
fn continued(x: &Tensor, axis: usize, before: Dim, after: Dim, mode: PadMode, at: At) -> Tensor {
    if x.failed() {
        return Tensor::FAILED;
    }
    let n = x.shape()[axis];
    let most = match mode {
        PadMode::Reflect => Some((n - 1, "reflection must be shorter than the axis")),
        PadMode::Circular => Some((n, "circular padding must not be longer than the axis")),
        _ => None,
    };
    for (amount, most) in [before, after].into_iter().filter_map(|a| most.map(|m| (a, m))) {
        if let (Ok(a), Ok(limit)) = (amount.size(), most.0.size())
            && !demand(&Pred::Le(a, limit), most.1, at)
        {
            return Tensor::FAILED;
        }
    }
    let place = Tensor::arange(before + n + after).sub(before);
    let last = n - 1;
    let place = match mode {
        PadMode::Reflect => {
            let mirrored = place.abs();
            mirrored.minimum(mirrored.neg().add(last * 2))
        }
        PadMode::Circular => place.remainder(n),
        _ => place.clamp(0, last),
    };
    picked(x, axis, &place, at)
}
