//! Order along an axis: sorting, the greatest few, and running sums and extremes.

use super::arith::{cast, float};
use super::shape::sliced;
use super::tape::{computed, formula};
use crate::formula::running;
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::exec::{apply, apply_n};
use crate::nn::tensor::{Operand, Tensor};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;
use tgc_ir::types::DType;

type At = &'static Location<'static>;

/// The `k` greatest or smallest along an axis, in order, and their indices; the lower index first of equal ones.
#[track_caller]
fn ranked(x: &Tensor, axis: usize, k: Dim, largest: bool, at: At) -> (Tensor, Tensor) {
    let none = (Tensor::FAILED, Tensor::FAILED);
    let Some(k) = super::shape::ir_sizes(&[k], at).and_then(|k| k.into_iter().next()) else { return none };
    let number = if x.dtype() == DType::Bool { cast(x, DType::U8, at) } else { x.clone() };
    let both = apply_n(ops::TopK { axis: axis as i64, k, largest }, &[&number], 2, at);
    match <[Tensor; 2]>::try_from(both) {
        Ok([values, indices]) => (cast(&values, x.dtype(), at), indices),
        Err(_) => none,
    }
}

impl Tensor {
    /// The `k` greatest elements along an axis (the smallest, if not `largest`), in order, and their indices. Of equal
    /// ones the lower index comes first; NaN counts as greatest.
    #[track_caller]
    pub fn topk(&self, k: impl Into<Dim>, dim: i64, largest: bool) -> (Tensor, Tensor) {
        let at = Location::caller();
        let k = k.into();
        match self.axis(dim, at) {
            Some(a) => ranked(self, a, k, largest, at),
            None => (Tensor::FAILED, Tensor::FAILED),
        }
    }

    /// Elements along an axis in order, and their indices. Equal ones keep their order; NaN counts as greatest.
    #[track_caller]
    pub fn sort(&self, dim: i64, descending: bool) -> (Tensor, Tensor) {
        let at = Location::caller();
        match self.axis(dim, at) {
            Some(a) => ranked(self, a, self.shape()[a], descending, at),
            None => (Tensor::FAILED, Tensor::FAILED),
        }
    }

    /// The indices that sort along an axis.
    #[track_caller]
    pub fn argsort(&self, dim: i64, descending: bool) -> Tensor {
        self.sort(dim, descending).1
    }

    /// Elements along axis 0 in order.
    #[track_caller]
    pub fn msort(&self) -> Tensor {
        self.sort(0, false).0
    }

    /// The `k`-th smallest element along an axis, from 1, and its index.
    #[track_caller]
    pub fn kthvalue(&self, k: impl Into<Dim>, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let at = Location::caller();
        let k = k.into();
        let Some(a) = self.axis(dim, at) else { return (Tensor::FAILED, Tensor::FAILED) };
        let (values, indices) = ranked(self, a, k, false, at);
        (one(&values, a, k - 1, keepdim, at), one(&indices, a, k - 1, keepdim, at))
    }

    /// The middle of all elements, the lower one of two; NaN if one is NaN.
    #[track_caller]
    pub fn median(&self) -> Tensor {
        self.reshape(-1).median_dim(0, false).0
    }

    /// The middle element along an axis, the lower one of two, and its index; NaN, where there is one:
    /// `torch.median(x, dim)`.
    #[track_caller]
    pub fn median_dim(&self, dim: i64, keepdim: bool) -> (Tensor, Tensor) {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return (Tensor::FAILED, Tensor::FAILED) };
        let n = self.shape()[a];
        let (values, indices) = ranked(self, a, n, false, at);
        let (value, index) =
            (one(&values, a, (n - 1) / 2, keepdim, at), one(&indices, a, (n - 1) / 2, keepdim, at));
        if !self.dtype().is_float() {
            return (value, index);
        }
        let nan = self.isnan();
        let some = nan.any(&[dim], keepdim);
        (some.where_(f64::NAN, value), some.where_(nan.argmax(dim, keepdim), index))
    }

    /// The element along an axis below which a share `q` of them lies, between two by linear interpolation; NaN, where
    /// there is one.
    #[track_caller]
    pub fn quantile(&self, q: f64, dim: i64, keepdim: bool) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        if !(0.0..=1.0).contains(&q) {
            report(Diag::error("E-NN-106", format!("quantile of {q}")).help("give a share from 0 to 1"), at);
            return Tensor::FAILED;
        }
        let d = float(self, at).dtype();
        let x = cast(self, computed(d), at);
        let n = x.shape()[a];
        let sorted = ranked(&x, a, n, false, at).0;
        let place = (n - 1).operand(&Tensor::number(DType::F64, 0.0)).mul(q);
        let low = place.floor();
        let part = cast(&place.sub(&low), computed(d), at);
        let low = low.long();
        let high = low.add(1).minimum(n - 1);
        let mut lines = [low, high].into_iter().map(|i| sorted.index_select(dim, &i.reshape(1)));
        let (Some(below), Some(above)) = (lines.next(), lines.next()) else { return Tensor::FAILED };
        let y = below.lerp(&above, part);
        let y = x.isnan().any(&[dim], true).where_(f64::NAN, y);
        let y = cast(&y, d, at);
        if keepdim || y.failed() { y } else { y.squeeze(&[dim]) }
    }

    /// Running sum along an axis; of bool and integers in i64.
    #[track_caller]
    pub fn cumsum(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let x = if self.dtype().is_float() { self.clone() } else { cast(self, DType::I64, at) };
        apply(ops::CumSum { axis: a as i64, exclusive: false, reverse: false }, &[&x], at)
    }

    /// Running product along an axis; of bool and integers in i64. Its work grows with the square of the axis.
    #[track_caller]
    pub fn cumprod(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let x = if self.dtype().is_float() { self.clone() } else { cast(self, DType::I64, at) };
        formula(&[&x], at, |t, x| running::product(t, x[0], a, false, false))
    }

    /// The greatest element so far along an axis, and the index of the last such; NaN wins. Its work grows with the
    /// square of the axis.
    #[track_caller]
    pub fn cummax(&self, dim: i64) -> (Tensor, Tensor) {
        cumulated(self, dim, true, Location::caller())
    }

    /// The smallest element so far, as [`Tensor::cummax`].
    #[track_caller]
    pub fn cummin(&self, dim: i64) -> (Tensor, Tensor) {
        cumulated(self, dim, false, Location::caller())
    }

    /// Logarithm of the running sum of exponentials along an axis, without overflow. Its work grows with the square of
    /// the axis.
    #[track_caller]
    pub fn logcumsumexp(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let d = float(self, at).dtype();
        let x = cast(self, computed(d), at);
        let counts = formula(&[&x], at, |t, x| running::counted(t, x[0], a, false, false));
        let line = formula(&[&x], at, |t, x| running::doubled(t, x[0], a));
        let y = counts.where_(line, f64::NEG_INFINITY).logsumexp(&[a as i64 + 1], false);
        cast(&y, d, at)
    }

    /// Differences of neighbours along an axis, `n` times over.
    #[track_caller]
    pub fn diff(&self, n: usize, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let mut x = self.clone();
        for _ in 0..n {
            let len = x.size(dim) - 1;
            let len = if len.as_known().is_some_and(|l| l < 0) { Dim::from(0) } else { len };
            let (low, high) = match len.as_known() {
                Some(0) => (sliced(&x, a, 0.into(), len, 1, at), sliced(&x, a, 0.into(), len, 1, at)),
                _ => (sliced(&x, a, 0.into(), len, 1, at), sliced(&x, a, 1.into(), len, 1, at)),
            };
            x = if x.dtype() == DType::Bool { high.ne(low) } else { high.sub(low) };
        }
        x
    }

    /// Where in a sorted line (rank 1) each value would be put so that it stays sorted: before equal ones, or after them
    /// with `right`.
    #[track_caller]
    pub fn searchsorted(&self, values: &Tensor, right: bool) -> Tensor {
        let at = Location::caller();
        if self.failed() || values.failed() {
            return Tensor::FAILED;
        }
        if self.dim() != 1 {
            let m = format!("searchsorted in {self:#}");
            report(Diag::error("E-NN-093", m).help("the sorted values must have rank 1"), at);
            return Tensor::FAILED;
        }
        let v = values.unsqueeze(-1);
        let before = if right { self.le(&v) } else { self.lt(&v) };
        before.sum(&[-1], false)
    }

    /// [`Tensor::searchsorted`] in `boundaries`, of these values.
    #[track_caller]
    pub fn bucketize(&self, boundaries: &Tensor, right: bool) -> Tensor {
        boundaries.searchsorted(self, right)
    }
}

/// One place of an axis, which goes away unless it is kept.
#[track_caller]
fn one(x: &Tensor, axis: usize, index: Dim, keepdim: bool, at: At) -> Tensor {
    let part = sliced(x, axis, index, 1.into(), 1, at);
    if keepdim || part.failed() {
        return part;
    }
    let mut shape = part.shape();
    shape.remove(axis);
    super::shape::reshaped(&part, &shape, at)
}

/// At each place the extreme over a second copy of the axis, in which later elements are replaced by the first one.
#[track_caller]
fn cumulated(x: &Tensor, dim: i64, greatest: bool, at: At) -> (Tensor, Tensor) {
    let none = (Tensor::FAILED, Tensor::FAILED);
    let Some(a) = x.axis(dim, at) else { return none };
    let number = if x.dtype() == DType::Bool { cast(x, DType::U8, at) } else { x.clone() };
    let counts = formula(&[&number], at, |t, v| running::counted(t, v[0], a, false, false));
    let line = formula(&[&number], at, |t, v| running::doubled(t, v[0], a));
    let inner = [a as i64 + 1];
    let n = x.shape()[a];
    let first = sliced(&line, a + 1, 0.into(), n.min(1), 1, at);
    let first = if n.as_known() == Some(0) { line.clone() } else { first };
    let seen = counts.where_(&line, first);
    let values = if greatest { seen.amax(&inner, false) } else { seen.amin(&inner, false) };
    let best = values.unsqueeze(a as i64 + 1);
    let mut hit = line.eq(&best);
    if x.dtype().is_float() {
        hit = hit.logical_or(line.isnan().logical_and(best.isnan()));
    }
    let mut places = vec![Dim::from(1); x.dim() + 1];
    places[a + 1] = n;
    let places = super::shape::reshaped(&Tensor::arange(n), &places, at);
    let indices = hit.logical_and(counts).where_(places, -1).amax(&inner, false);
    (cast(&values, x.dtype(), at), indices)
}
