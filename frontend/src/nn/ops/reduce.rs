//! Sums, means and other reductions, and what is made of them.

use super::arith::{cast, float};
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

type At = &'static Location<'static>;

/// Axes as the IR takes them.
fn axes(t: &Tensor, given: &[i64], at: At) -> Option<Vec<i64>> {
    Some(t.axes(given, at)?.into_iter().map(|a| a as i64).collect())
}

impl Tensor {
    /// Sum over axes (all, where none are given); of bool and integers in i64.
    #[track_caller]
    pub fn sum(&self, dims: &[i64], keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(axes) = axes(self, dims, at) else { return Tensor::FAILED };
        let x = if self.dtype().is_float() { self.clone() } else { cast(self, DType::I64, at) };
        apply(ops::ReduceSum { axes, keepdims: keepdim }, &[&x], at)
    }

    /// Mean over axes (all, where none are given).
    #[track_caller]
    pub fn mean(&self, dims: &[i64], keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(axes) = axes(self, dims, at) else { return Tensor::FAILED };
        apply(ops::ReduceMean { axes, keepdims: keepdim }, &[&float(self, at)], at)
    }

    /// Greatest element over axes; NaN wins.
    #[track_caller]
    pub fn amax(&self, dims: &[i64], keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(axes) = axes(self, dims, at) else { return Tensor::FAILED };
        apply(ops::ReduceMax { axes, keepdims: keepdim }, &[self], at)
    }

    /// Smallest element over axes; NaN wins.
    #[track_caller]
    pub fn amin(&self, dims: &[i64], keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(axes) = axes(self, dims, at) else { return Tensor::FAILED };
        apply(ops::ReduceMin { axes, keepdims: keepdim }, &[self], at)
    }

    /// Index of the greatest element along an axis, the first of equal ones.
    #[track_caller]
    pub fn argmax(&self, dim: i64, keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::ArgMax { axis: a as i64, keepdims: keepdim, last: false, smallest: false }, &[self], at)
    }

    /// Index of the smallest element along an axis, the first of equal ones.
    #[track_caller]
    pub fn argmin(&self, dim: i64, keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::ArgMax { axis: a as i64, keepdims: keepdim, last: false, smallest: true }, &[self], at)
    }

    /// Normalised exponentials along an axis.
    #[track_caller]
    pub fn softmax(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::Softmax { axis: a as i64 }, &[&float(self, at)], at)
    }

    /// Logarithm of the softmax.
    #[track_caller]
    pub fn log_softmax(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::LogSoftmax { axis: a as i64 }, &[&float(self, at)], at)
    }
}
