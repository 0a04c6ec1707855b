//! Sums, means and other reductions, and what is made of them.

use super::arith::{cast, float};
use super::choose::truth;
use super::tape::computed;
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops::{self, Op};
use tgc_ir::types::DType;

type At = &'static Location<'static>;

/// Axes as the IR takes them.
fn axes(t: &Tensor, given: &[i64], at: At) -> Option<Vec<i64>> {
    Some(t.axes(given, at)?.into_iter().map(|a| a as i64).collect())
}

macro_rules! reductions {
    ($($(#[$doc:meta])* pub fn $name:ident($x:ident, $axes:ident, $keep:ident, $at:ident) $body:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, dims: &[i64], keepdim: bool) -> Tensor {
                let $at = Location::caller();
                let Some($axes) = axes(self, dims, $at) else { return Tensor::FAILED };
                let ($x, $keep) = (self, keepdim);
                $body
            }
        )* }
    };
}
reductions! {
    /// Sum over axes (all, where none are given); of bool and integers in i64.
    pub fn sum(x, axes, keepdims, at) apply(ops::ReduceSum { axes, keepdims }, &[&summand(x, at)], at);
    /// Product over axes (all, where none are given); of bool and integers in i64.
    pub fn prod(x, axes, keepdims, at) apply(ops::ReduceProd { axes, keepdims }, &[&summand(x, at)], at);
    /// Mean over axes (all, where none are given).
    pub fn mean(x, axes, keepdims, at) apply(ops::ReduceMean { axes, keepdims }, &[&float(x, at)], at);
    /// Greatest element over axes; NaN wins.
    pub fn amax(x, axes, keepdims, at) extreme(x, ops::ReduceMax { axes, keepdims }, at);
    /// Smallest element over axes; NaN wins.
    pub fn amin(x, axes, keepdims, at) extreme(x, ops::ReduceMin { axes, keepdims }, at);
    /// Whether no element is 0, over axes (all, where none are given).
    pub fn all(x, axes, keepdims, at) {
        let zero = apply(ops::Not {}, &[&truth(x, at)], at);
        let zeros = apply(ops::ReduceSum { axes, keepdims }, &[&cast(&zero, DType::I64, at)], at);
        judged(&zeros.eq(0), x, at)
    };
    /// Whether an element is not 0, over axes (all, where none are given).
    pub fn any(x, axes, keepdims, at) {
        let found = cast(&truth(x, at), DType::I64, at);
        judged(&apply(ops::ReduceSum { axes, keepdims }, &[&found], at).ne(0), x, at)
    };
    /// Number of elements that are not 0, over axes (all, where none are given), in i64.
    pub fn count_nonzero(x, axes, keepdims, at) {
        apply(ops::ReduceSum { axes, keepdims }, &[&cast(&truth(x, at), DType::I64, at)], at)
    };
    /// Sum of the elements that are numbers.
    pub fn nansum(x, axes, keepdims, at) {
        let x = summand(&without_nan(x, at), at);
        apply(ops::ReduceSum { axes, keepdims }, &[&x], at)
    };
    /// Mean of the elements that are numbers.
    pub fn nanmean(x, axes, keepdims, at) {
        let d = float(x, at).dtype();
        let counted = cast(&x.isnan().logical_not(), computed(d), at);
        let x = cast(&without_nan(x, at), computed(d), at);
        let sum = apply(ops::ReduceSum { axes: axes.clone(), keepdims }, &[&x], at);
        cast(&sum.div(apply(ops::ReduceSum { axes, keepdims }, &[&counted], at)), d, at)
    };
    /// Logarithm of the sum of exponentials, without overflow.
    pub fn logsumexp(x, axes, keepdims, at) {
        let d = float(x, at).dtype();
        let x = &cast(x, computed(d), at);
        let most = apply(ops::ReduceMax { axes: axes.clone(), keepdims: true }, &[x], at);
        let most = most.isfinite().where_(&most, 0.0);
        let sum = apply(ops::ReduceSum { axes: axes.clone(), keepdims }, &[&x.sub(&most).exp()], at);
        let most = apply(ops::ReduceMax { axes, keepdims }, &[&most], at);
        cast(&sum.log().add(most), d, at)
    };
}

/// Bool and integers are summed in i64.
#[track_caller]
fn summand(x: &Tensor, at: At) -> Tensor {
    if x.dtype().is_float() { x.clone() } else { cast(x, DType::I64, at) }
}

#[track_caller]
fn without_nan(x: &Tensor, at: At) -> Tensor {
    match x.dtype().is_float() {
        true => apply(ops::IsNan {}, &[x], at).where_(0.0, x),
        false => x.clone(),
    }
}

/// u8 keeps its type, all others are judged in bool.
#[track_caller]
fn judged(y: &Tensor, x: &Tensor, at: At) -> Tensor {
    if x.dtype() == DType::U8 { cast(y, DType::U8, at) } else { y.clone() }
}

#[track_caller]
fn extreme(x: &Tensor, op: impl Into<Op>, at: At) -> Tensor {
    match x.dtype() {
        DType::Bool => cast(&apply(op, &[&cast(x, DType::U8, at)], at), DType::Bool, at),
        _ => apply(op, &[x], at),
    }
}

/// The index of the greatest or smallest element along an axis, or of all in row-major order.
#[track_caller]
fn position(x: &Tensor, dim: Option<i64>, keepdim: bool, smallest: bool, at: At) -> Tensor {
    let number = if x.dtype() == DType::Bool { cast(x, DType::U8, at) } else { x.clone() };
    let Some(dim) = dim else {
        let flat = number.reshape(-1);
        let y = apply(ops::ArgMax { axis: 0, keepdims: false, last: false, smallest }, &[&flat], at);
        let ones = vec![1.into(); if keepdim { x.dim() } else { 0 }];
        return super::shape::reshaped(&y, &ones, at);
    };
    if x.dim() == 0 && !x.failed() && matches!(dim, -1 | 0) {
        return Tensor::integer(DType::I64, 0);
    }
    let Some(a) = x.axis(dim, at) else { return Tensor::FAILED };
    apply(ops::ArgMax { axis: a as i64, keepdims: keepdim, last: false, smallest }, &[&number], at)
}

impl Tensor {
    /// Index of the greatest element along an axis, the first of equal ones; NaN counts as greatest. With `None` in all
    /// elements, row-major.
    #[track_caller]
    pub fn argmax(&self, dim: impl Into<Option<i64>>, keepdim: bool) -> Tensor {
        let at = Location::caller();
        position(self, dim.into(), keepdim, false, at)
    }

    /// Index of the smallest element, as [`Tensor::argmax`].
    #[track_caller]
    pub fn argmin(&self, dim: impl Into<Option<i64>>, keepdim: bool) -> Tensor {
        let at = Location::caller();
        position(self, dim.into(), keepdim, true, at)
    }

    /// The greatest of all elements; NaN wins.
    #[track_caller]
    pub fn max(&self) -> Tensor {
        self.amax(&[], false)
    }

    /// The smallest of all elements; NaN wins.
    #[track_caller]
    pub fn min(&self) -> Tensor {
        self.amin(&[], false)
    }

    /// The greatest element along an axis and the index of the first such: `torch.max(x, dim)`.
    #[track_caller]
    pub fn max_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        (self.amax(&[dim], keepdim), self.argmax(dim, keepdim))
    }

    /// The smallest element along an axis and the index of the first such: `torch.min(x, dim)`.
    #[track_caller]
    pub fn min_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        (self.amin(&[dim], keepdim), self.argmin(dim, keepdim))
    }

    /// The smallest and the greatest element over axes.
    #[track_caller]
    pub fn aminmax(&self, dims: &[i64], keepdim: bool) -> (Tensor, Tensor) {
        (self.amin(dims, keepdim), self.amax(dims, keepdim))
    }

    /// Variance over axes (all, where none are given): squared distances from the mean over their number less
    /// `correction`, which is 1 in PyTorch unless given.
    #[track_caller]
    pub fn var(&self, dims: &[i64], correction: i64, keepdim: bool) -> Tensor {
        self.var_mean(dims, correction, keepdim).0
    }

    /// The root of [`Tensor::var`].
    #[track_caller]
    pub fn std(&self, dims: &[i64], correction: i64, keepdim: bool) -> Tensor {
        self.std_mean(dims, correction, keepdim).0
    }

    /// [`Tensor::var`] and the mean.
    #[track_caller]
    pub fn var_mean(&self, dims: &[i64], correction: i64, keepdim: bool) -> (Tensor, Tensor) {
        let at = Location::caller();
        let d = float(self, at).dtype();
        let (var, mean) = spread(self, dims, correction, keepdim, at);
        (cast(&var, d, at), cast(&mean, d, at))
    }

    /// [`Tensor::std`] and the mean.
    #[track_caller]
    pub fn std_mean(&self, dims: &[i64], correction: i64, keepdim: bool) -> (Tensor, Tensor) {
        let at = Location::caller();
        let d = float(self, at).dtype();
        let (var, mean) = spread(self, dims, correction, keepdim, at);
        (cast(&var.sqrt(), d, at), cast(&mean, d, at))
    }

    /// The p-norm over axes (all, where none are given): 2 is the Euclidean one, infinities the greatest and the smallest
    /// size, 0 the number of elements that are not 0.
    #[track_caller]
    pub fn norm(&self, p: f64, dims: &[i64], keepdim: bool) -> Tensor {
        let at = Location::caller();
        let d = float(self, at).dtype();
        let x = cast(self, computed(d), at).abs();
        let y = if p == f64::INFINITY {
            x.amax(dims, keepdim)
        } else if p == f64::NEG_INFINITY {
            x.amin(dims, keepdim)
        } else if p == 0.0 {
            cast(&x.count_nonzero(dims, keepdim), computed(d), at)
        } else if p == 1.0 {
            x.sum(dims, keepdim)
        } else if p == 2.0 {
            x.square().sum(dims, keepdim).sqrt()
        } else {
            x.pow(p).sum(dims, keepdim).pow(1.0 / p)
        };
        cast(&y, d, at)
    }

    /// The area under a line of points along an axis, `dx` apart.
    #[track_caller]
    pub fn trapezoid(&self, dx: f64, dim: i64) -> Tensor {
        let at = Location::caller();
        if self.axis(dim, at).is_none() {
            return Tensor::FAILED;
        }
        let x = float(self, at);
        let n = x.size(dim) - 1;
        x.narrow(dim, 0, n).add(x.narrow(dim, 1, n)).mul(dx / 2.0).sum(&[dim], false)
    }

    /// The p-norm of the difference.
    #[track_caller]
    pub fn dist(&self, other: &Tensor, p: f64) -> Tensor {
        self.sub(other).norm(p, &[], false)
    }

    /// Slices along an axis, scaled down to a p-norm of `most` where theirs is greater.
    #[track_caller]
    pub fn renorm(&self, p: f64, dim: i64, most: f64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let others: Vec<i64> = (0..self.dim() as i64).filter(|i| *i != a as i64).collect();
        if others.is_empty() {
            let m = "renorm of a tensor of rank 1";
            report(Diag::error("E-NN-092", m).help("it scales slices: give rank 2 or more"), at);
            return Tensor::FAILED;
        }
        let norms = self.norm(p, &others, true);
        let scale = norms.gt(most).where_(most / norms.add(1e-7), 1.0);
        self.mul(scale)
    }

    /// Normalised exponentials along an axis.
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::Softmax { axis: a as i64 }, &[&float(self, at)], at)
    }

    /// The softmax of `-x`.
    #[track_caller]
    pub fn softmin(&self, dim: i64) -> Tensor {
        self.neg().softmax(dim)
    }

    /// Logarithm of the softmax.
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::LogSoftmax { axis: a as i64 }, &[&float(self, at)], at)
    }
}

/// Variance and mean in the type that is computed with.
#[track_caller]
fn spread(x: &Tensor, dims: &[i64], correction: i64, keepdim: bool, at: At) -> (Tensor, Tensor) {
    let none = (Tensor::FAILED, Tensor::FAILED);
    let Some(found) = x.axes(dims, at) else { return none };
    let x = float(x, at);
    let x = cast(&x, computed(x.dtype()), at);
    let shape = x.shape();
    let count = found.iter().map(|a| shape[*a]).fold(1.into(), |n: crate::nn::Dim, d| n * d);
    let gap = x.sub(x.mean(dims, true));
    let count = (count - correction).max(0).operand(&x);
    (gap.square().sum(dims, keepdim).div(count), x.mean(dims, keepdim))
}
