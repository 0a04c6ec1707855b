//! Views: other shapes, orders and parts of the same elements.

use crate::nn::dim::{Dim, IntoShape};
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::{Tensor, sizes};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;
use tgc_ir::types::Dim as Size;

type At = &'static Location<'static>;

/// Dims as the IR has them; what is wrong with one is reported.
#[track_caller]
pub(crate) fn ir_sizes(dims: &[Dim], at: At) -> Option<Vec<Size>> {
    sizes(dims).map_err(|d| d.into_iter().for_each(|d| report(d, at))).ok()
}

#[track_caller]
pub(crate) fn reshaped(x: &Tensor, shape: &[Dim], at: At) -> Tensor {
    match ir_sizes(shape, at) {
        Some(shape) if !x.failed() => apply(ops::Reshape { shape }, &[x], at),
        _ => Tensor::FAILED,
    }
}

#[track_caller]
pub(crate) fn permuted(x: &Tensor, perm: &[usize], at: At) -> Tensor {
    apply(ops::Transpose { perm: perm.iter().map(|p| *p as i64).collect() }, &[x], at)
}

#[track_caller]
pub(crate) fn expanded(x: &Tensor, shape: &[Dim], at: At) -> Tensor {
    match ir_sizes(shape, at) {
        Some(shape) if !x.failed() => apply(ops::Expand { shape }, &[x], at),
        _ => Tensor::FAILED,
    }
}

/// `size` elements of one axis from `start` on, `step` apart.
#[track_caller]
pub(crate) fn sliced(x: &Tensor, axis: usize, start: Dim, size: Dim, step: i64, at: At) -> Tensor {
    if x.failed() {
        return Tensor::FAILED;
    }
    let mut starts = vec![Dim::from(0); x.dim()];
    let mut lens = x.shape();
    let mut steps = vec![1; x.dim()];
    (starts[axis], lens[axis], steps[axis]) = (start, size, step);
    match (ir_sizes(&starts, at), ir_sizes(&lens, at)) {
        (Some(starts), Some(sizes)) => apply(ops::Slice { starts, sizes, steps }, &[x], at),
        _ => Tensor::FAILED,
    }
}

impl Tensor {
    /// The same elements under another shape; one dim may be -1 and follows from the others.
    #[track_caller]
    pub fn reshape(&self, shape: impl IntoShape) -> Tensor {
        let at = Location::caller();
        let mut shape = shape.into_shape();
        let open: Vec<usize> = (0..shape.len()).filter(|i| shape[*i].as_known() == Some(-1)).collect();
        if open.len() > 1 {
            let m = "reshape leaves more than one dim open";
            report(Diag::error("E-NN-070", m).help("give -1 for one dim at most"), at);
            return Tensor::FAILED;
        }
        if self.failed() {
            return Tensor::FAILED;
        }
        if let [i] = open[..] {
            let Some(d) = remaining(self, &shape, i, at) else { return Tensor::FAILED };
            shape[i] = d;
        }
        reshaped(self, &shape, at)
    }

    /// [`Tensor::reshape`]: there are no strides that could forbid a view.
    #[track_caller]
    pub fn view(&self, shape: impl IntoShape) -> Tensor {
        self.reshape(shape)
    }

    /// Two axes swapped.
    #[track_caller]
    pub fn transpose(&self, a: i64, b: i64) -> Tensor {
        let at = Location::caller();
        let (Some(a), Some(b)) = (self.axis(a, at), self.axis(b, at)) else { return Tensor::FAILED };
        let mut perm: Vec<usize> = (0..self.dim()).collect();
        perm.swap(a, b);
        permuted(self, &perm, at)
    }

    /// Axes in another order.
    #[track_caller]
    pub fn permute<const N: usize>(&self, order: [i64; N]) -> Tensor {
        let at = Location::caller();
        let Some(perm) = self.axes(&order, at) else { return Tensor::FAILED };
        permuted(self, &perm, at)
    }

    /// One axis for those from `start` to `end`.
    #[track_caller]
    pub fn flatten(&self, start: i64, end: i64) -> Tensor {
        let at = Location::caller();
        if self.dim() == 0 && !self.failed() {
            return reshaped(self, &[Dim::from(1)], at);
        }
        let (Some(a), Some(b)) = (self.axis(start, at), self.axis(end, at)) else { return Tensor::FAILED };
        let mut shape = self.shape();
        if a < b {
            let joined = shape[a..=b].iter().fold(Dim::from(1), |n, d| n * *d);
            shape.splice(a..=b, [joined]);
        }
        reshaped(self, &shape, at)
    }

    /// A new axis of extent 1 before the axis `dim`.
    #[track_caller]
    pub fn unsqueeze(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        if self.failed() {
            return Tensor::FAILED;
        }
        let mut shape = self.shape();
        let Some(a) = crate::nn::tensor::resolve_axis(dim, shape.len() + 1) else {
            let m = format!("axis {dim} of a result of rank {}", shape.len() + 1);
            report(Diag::error("E-NN-062", m).help("give an axis of the result"), at);
            return Tensor::FAILED;
        };
        shape.insert(a, Dim::from(1));
        reshaped(self, &shape, at)
    }

    /// Broadcast to a shape; -1 keeps an axis.
    #[track_caller]
    pub fn expand(&self, shape: impl IntoShape) -> Tensor {
        let at = Location::caller();
        let mut to = shape.into_shape();
        let from = self.shape();
        for i in 0..from.len().min(to.len()) {
            let (t, f) = (to.len() - 1 - i, from.len() - 1 - i);
            if to[t].as_known() == Some(-1) {
                to[t] = from[f];
            }
        }
        expanded(self, &to, at)
    }

    /// `length` elements of an axis from `start` on.
    #[track_caller]
    pub fn narrow(&self, dim: i64, start: impl Into<Dim>, length: impl Into<Dim>) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        sliced(self, a, start.into(), length.into(), 1, at)
    }

    /// The part at one index of an axis, which goes away. Negative known indices count from the end.
    #[track_caller]
    pub fn select(&self, dim: i64, index: impl Into<Dim>) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let mut shape = self.shape();
        let index = index.into();
        let start = if index.as_known().is_some_and(|i| i < 0) { shape[a] + index } else { index };
        let part = sliced(self, a, start, Dim::from(1), 1, at);
        shape.remove(a);
        reshaped(&part, &shape, at)
    }

    /// `N` equal parts along an axis, whose extent must be a multiple of `N`.
    #[track_caller]
    pub fn chunk<const N: usize>(&self, dim: i64) -> [Tensor; N] {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return [const { Tensor::FAILED }; N] };
        let whole = self.shape()[a];
        if whole.as_known().is_some_and(|n| n % N as i64 != 0) {
            let m = format!("an axis of extent {whole} has no {N} equal parts");
            report(
                Diag::error("E-NN-071", m)
                    .help("chunks gives parts that differ, split_with_sizes parts of any sizes"),
                at,
            );
            return [const { Tensor::FAILED }; N];
        }
        let len = whole / N;
        std::array::from_fn(|i| sliced(self, a, len * i, len, 1, at))
    }

    /// [`Tensor::reshape`] to one axis.
    #[track_caller]
    pub fn ravel(&self) -> Tensor {
        self.reshape(-1)
    }

    /// Another tensor's shape.
    #[track_caller]
    pub fn reshape_as(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        reshaped(self, &other.shape(), at)
    }

    /// [`Tensor::reshape_as`].
    #[track_caller]
    pub fn view_as(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        reshaped(self, &other.shape(), at)
    }

    /// Broadcast to another tensor's shape.
    #[track_caller]
    pub fn expand_as(&self, other: &Tensor) -> Tensor {
        self.expand(other.shape())
    }

    /// [`Tensor::expand`].
    #[track_caller]
    pub fn broadcast_to(&self, shape: impl IntoShape) -> Tensor {
        self.expand(shape)
    }

    /// Without axes of extent 1: all such, or those given, of which others stay. Symbolic dims count as other than 1.
    #[track_caller]
    pub fn squeeze(&self, dims: &[i64]) -> Tensor {
        let at = Location::caller();
        let Some(axes) = self.axes(dims, at) else { return Tensor::FAILED };
        let shape = self.shape();
        let kept = |i: &usize| !(axes.contains(i) && shape[*i].as_known() == Some(1));
        let shape: Vec<Dim> = (0..shape.len()).filter(kept).map(|i| shape[i]).collect();
        reshaped(self, &shape, at)
    }

    /// An axis as several, of which one size may be -1.
    #[track_caller]
    pub fn unflatten(&self, dim: i64, sizes: impl IntoShape) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let mut sizes = sizes.into_shape();
        let whole = self.shape()[a];
        if let Some(i) = sizes.iter().position(|d| d.as_known() == Some(-1)) {
            let mut rest = Dim::from(1);
            for (j, d) in sizes.iter().enumerate() {
                rest = if i == j { rest } else { rest * *d };
            }
            sizes[i] = whole / rest;
        }
        let mut shape = self.shape();
        shape.splice(a..=a, sizes);
        reshaped(self, &shape, at)
    }

    /// The transpose of a matrix; rank 0 and 1 stay.
    #[track_caller]
    pub fn t(&self) -> Tensor {
        let at = Location::caller();
        match self.dim() {
            0 | 1 => self.clone(),
            2 => permuted(self, &[1, 0], at),
            r => {
                let m = format!("t() of a tensor of rank {r}: {self:#}");
                report(Diag::error("E-NN-074", m).help("transpose(-1, -2) swaps the last two axes"), at);
                Tensor::FAILED
            }
        }
    }

    /// The last two axes swapped: PyTorch's `x.mT`.
    #[track_caller]
    pub fn mt(&self) -> Tensor {
        self.transpose(-1, -2)
    }

    /// [`Tensor::transpose`].
    #[track_caller]
    pub fn swapaxes(&self, a: i64, b: i64) -> Tensor {
        self.transpose(a, b)
    }

    /// [`Tensor::transpose`].
    #[track_caller]
    pub fn swapdims(&self, a: i64, b: i64) -> Tensor {
        self.transpose(a, b)
    }

    /// Axes moved to other places, the others staying in order.
    #[track_caller]
    pub fn movedim(&self, from: &[i64], to: &[i64]) -> Tensor {
        let at = Location::caller();
        if from.len() != to.len() || from.is_empty() {
            let m = format!("movedim from {from:?} to {to:?}");
            report(Diag::error("E-NN-075", m).help("give as many axes as places, one at least"), at);
            return Tensor::FAILED;
        }
        let (Some(from), Some(to)) = (self.axes(from, at), self.axes(to, at)) else { return Tensor::FAILED };
        permuted(self, &moved(self.dim(), &from, &to), at)
    }

    /// [`Tensor::movedim`].
    #[track_caller]
    pub fn moveaxis(&self, from: &[i64], to: &[i64]) -> Tensor {
        self.movedim(from, to)
    }
}

/// The order of axes that puts those of `from` at the places `to`.
pub(crate) fn moved(rank: usize, from: &[usize], to: &[usize]) -> Vec<usize> {
    let mut rest = (0..rank).filter(|a| !from.contains(a));
    let place = |i: usize| to.iter().position(|t| *t == i).map(|k| from[k]);
    (0..rank).filter_map(|i| place(i).or_else(|| rest.next())).collect()
}

/// The dim that -1 stands for.
#[track_caller]
fn remaining(x: &Tensor, shape: &[Dim], open: usize, at: At) -> Option<Dim> {
    let given: Vec<Dim> = (0..shape.len()).filter(|i| *i != open).map(|i| shape[i]).collect();
    let given = ir_sizes(&given, at)?;
    let product: Size = given.iter().cloned().product();
    let all = x.ty()?.numel();
    if product.is(0) {
        let m = "reshape: with a dim of 0 the dim -1 could be anything";
        report(Diag::error("E-NN-070", m).help("give the size instead of -1"), at);
        return None;
    }
    match all.div_exact(&product) {
        Some(d) => Some(Dim::of(&d)),
        None => Some(Dim::of(&all) / Dim::of(&product)),
    }
}
