//! Reading and writing by index tensors and masks.

use super::arith::cast;
use super::arrange::picked;
use super::choose::truth;
use super::index::IntoIndex;
use super::join::broadcast;
use super::shape::{expanded, ir_sizes, reshaped};
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::exec::{apply, apply_n};
use crate::nn::tensor::{Operand, Repr, Tensor};
use crate::nn::trace;
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;
use tgc_ir::types::{DType, Dim as Size, SymInfo};

type At = &'static Location<'static>;

/// Updates joined into `x` at the indices along an axis.
#[track_caller]
fn scattered(x: &Tensor, axis: usize, index: &Tensor, src: &Tensor, how: &str, at: At) -> Tensor {
    let op = ops::ScatterElements { axis: axis as i64, reduction: how.to_string() };
    let src = cast(src, x.dtype(), at);
    if x.dtype() == DType::Bool {
        let wide = |t: &Tensor| cast(t, DType::U8, at);
        return cast(&apply(op, &[&wide(x), index, &wide(&src)], at), DType::Bool, at);
    }
    apply(op, &[x, index, &src], at)
}

/// The part of a source that indices of this shape use; a number stands for all.
#[track_caller]
fn used(src: &Tensor, index: &Tensor, at: At) -> Tensor {
    if src.failed() || index.failed() {
        return Tensor::FAILED;
    }
    let shape = index.shape();
    if src.dim() == 0 && index.dim() > 0 {
        return expanded(src, &shape, at);
    }
    if src.shape().iter().zip(&shape).all(|(a, b)| a.size() == b.size()) {
        return src.clone();
    }
    let zeros = vec![Size::from(0); src.dim()];
    let steps = vec![1; src.dim()];
    match ir_sizes(&shape, at) {
        Some(sizes) => apply(ops::Slice { starts: zeros, sizes, steps }, &[src], at),
        None => Tensor::FAILED,
    }
}

/// A line of indices of one axis, as indices of every element of `like`.
#[track_caller]
fn spread(line: &Tensor, axis: usize, like: &[Dim], at: At) -> Tensor {
    let mut shape = vec![Dim::from(1); like.len()];
    shape[axis] = line.numel();
    expanded(&reshaped(&cast(line, DType::I64, at), &shape, at), like, at)
}

/// Every slice that a line of indices names, written or joined.
#[track_caller]
fn lines(x: &Tensor, dim: i64, index: &Tensor, src: &Tensor, how: &str, at: At) -> Tensor {
    let Some(a) = x.axis(dim, at).filter(|_| !index.failed()) else { return Tensor::FAILED };
    let mut shape = x.shape();
    shape[a] = index.numel();
    let src = if src.dim() == 0 { expanded(src, &shape, at) } else { src.clone() };
    scattered(x, a, &spread(index, a, &shape, at), &src, how, at)
}

impl Tensor {
    /// For each index, the element at the same place with the index along an axis.
    #[track_caller]
    pub fn gather(&self, dim: i64, index: &Tensor) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        apply(ops::GatherElements { axis: a as i64 }, &[self, index], at)
    }

    /// `src`, a tensor or a number, written at the indices along an axis. Of several to one place the last stays.
    #[track_caller]
    pub fn scatter(&self, dim: i64, index: &Tensor, src: impl Operand) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let src = used(&src.operand(self), index, at);
        scattered(self, a, index, &src, "none", at)
    }

    /// `src` added at the indices along an axis.
    #[track_caller]
    pub fn scatter_add(&self, dim: i64, index: &Tensor, src: impl Operand) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let src = used(&src.operand(self), index, at);
        scattered(self, a, index, &src, "add", at)
    }

    /// `src` joined by `sum`, `prod`, `mean`, `amax` or `amin` at the indices along an axis, with the element there or
    /// (`include_self` false) without it.
    #[track_caller]
    pub fn scatter_reduce(
        &self,
        dim: i64,
        index: &Tensor,
        src: impl Operand,
        reduce: &str,
        include_self: bool,
    ) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let (how, neutral) = match reduce {
            "sum" | "mean" => ("add", 0.0),
            "prod" => ("mul", 1.0),
            "amax" => ("max", f64::NEG_INFINITY),
            "amin" => ("min", f64::INFINITY),
            other => {
                let m = format!("scatter_reduce by `{other}`");
                report(Diag::error("E-NN-098", m).help("allowed: sum, prod, mean, amax, amin"), at);
                return Tensor::FAILED;
            }
        };
        let src = used(&src.operand(self), index, at);
        let mut x = self.clone();
        if !include_self {
            let fill = used(&bounded(neutral, self.dtype()), index, at);
            x = scattered(&x, a, index, &fill, "none", at);
        }
        let y = scattered(&x, a, index, &src, how, at);
        if reduce != "mean" {
            return y;
        }
        let one = used(&Tensor::number(DType::I64, 1.0), index, at);
        let start =
            apply(ops::Cast { to: DType::I64 }, &[&self.zeros_like()], at).add(i64::from(include_self));
        let count = scattered(&start, a, index, &one, "add", at).clamp_min(1);
        if y.dtype().is_float() {
            cast(&y.div(count), y.dtype(), at)
        } else {
            y.floor_divide(cast(&count, y.dtype(), at))
        }
    }

    /// The slices of an axis that a line of indices names.
    #[track_caller]
    pub fn index_select(&self, dim: i64, index: &Tensor) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at).filter(|_| !index.failed()) else { return Tensor::FAILED };
        let line = if index.dim() == 1 { index.clone() } else { index.reshape(-1) };
        picked(self, a, &line, at)
    }

    /// `alpha * source` added to the slices of an axis that a line of indices names.
    #[track_caller]
    pub fn index_add(&self, dim: i64, index: &Tensor, source: &Tensor, alpha: impl Operand) -> Tensor {
        let at = Location::caller();
        let source = source.mul(alpha.operand(source));
        lines(self, dim, index, &source, "add", at)
    }

    /// `source` written over the slices of an axis that a line of indices names.
    #[track_caller]
    pub fn index_copy(&self, dim: i64, index: &Tensor, source: &Tensor) -> Tensor {
        lines(self, dim, index, source, "none", Location::caller())
    }

    /// A number written over the slices of an axis that a line of indices names.
    #[track_caller]
    pub fn index_fill(&self, dim: i64, index: &Tensor, value: impl Operand) -> Tensor {
        let at = Location::caller();
        lines(self, dim, index, &value.operand(self), "none", at)
    }

    /// Elements of the flattened tensor.
    #[track_caller]
    pub fn take(&self, index: &Tensor) -> Tensor {
        let at = Location::caller();
        picked(&self.reshape(-1), 0, index, at)
    }

    /// `src` written (or added) at places of the flattened tensor.
    #[track_caller]
    pub fn put(&self, index: &Tensor, src: &Tensor, accumulate: bool) -> Tensor {
        let at = Location::caller();
        let how = if accumulate { "add" } else { "none" };
        scattered(&self.reshape(-1), 0, &index.reshape(-1), &src.reshape(-1), how, at).reshape_as(self)
    }

    /// [`Tensor::gather`] with indices and tensor broadcast off the axis.
    #[track_caller]
    pub fn take_along_dim(&self, index: &Tensor, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at).filter(|_| !index.failed()) else { return Tensor::FAILED };
        let side = |t: &Tensor| {
            let mut shape = t.shape();
            let n = shape.get(a).copied().unwrap_or(1.into());
            if let Some(d) = shape.get_mut(a) {
                *d = 1.into();
            }
            (shape, n)
        };
        let ((xs, n), (is, k)) = (side(self), side(index));
        let dummies = [expanded(&Tensor::scalar(false), &xs, at), expanded(&Tensor::scalar(false), &is, at)];
        let Some(both) = broadcast(&[&dummies[0], &dummies[1]], at) else { return Tensor::FAILED };
        let mut shape = both[0].shape();
        shape[a] = n;
        let x = expanded(self, &shape, at);
        shape[a] = k;
        x.gather(dim, &expanded(index, &shape, at))
    }

    /// The positions of elements that are not 0, a row each. In a trace their number is a new symbolic dim.
    #[track_caller]
    pub fn nonzero(&self) -> Tensor {
        let at = Location::caller();
        positions(self, at).t()
    }

    /// The positions as one line of indices an axis: `x.nonzero(as_tuple=True)`.
    #[track_caller]
    pub fn nonzero_lines(&self) -> Vec<Tensor> {
        let at = Location::caller();
        let found = positions(self, at);
        let mut out = Vec::new();
        for a in 0..self.dim() {
            out.push(if found.failed() { Tensor::FAILED } else { found.select(0, a) });
        }
        out
    }

    /// [`Tensor::nonzero`].
    #[track_caller]
    pub fn argwhere(&self) -> Tensor {
        self.nonzero()
    }

    /// The elements where a mask is true, as a line; both broadcast. In a trace their number is a new symbolic dim.
    #[track_caller]
    pub fn masked_select(&self, mask: &Tensor) -> Tensor {
        let at = Location::caller();
        let Some(both) = broadcast(&[self, mask], at) else { return Tensor::FAILED };
        let place = positions(&both[1].reshape(-1), at).reshape(-1);
        picked(&both[0].reshape(-1), 0, &place, at)
    }

    /// The elements of `source`, in order, written where a mask is true.
    #[track_caller]
    pub fn masked_scatter(&self, mask: &Tensor, source: &Tensor) -> Tensor {
        let at = Location::caller();
        if self.failed() || mask.failed() || source.failed() {
            return Tensor::FAILED;
        }
        let mask = expanded(&truth(mask, at), &self.shape(), at);
        let count = mask.reshape(-1).cumsum(0).sub(1);
        let place = count.clamp_min(0).reshape_as(self);
        // places of false elements read some element, which is not taken
        let place = mask.where_(place, 0);
        mask.where_(picked(&source.reshape(-1), 0, &place, at), self)
    }

    /// `values` written (or added) at an index as [`Tensor::i`] takes it: `x.index_put(indices, values, accumulate)`, and
    /// what `x[index] = values` gives.
    #[track_caller]
    pub fn index_put(&self, index: impl IntoIndex, values: impl Operand, accumulate: bool) -> Tensor {
        let at = Location::caller();
        let index = index.into_index();
        let values = values.operand(self);
        let all = Tensor::arange(self.numel()).reshape_as(self);
        let places = all.i(index.as_slice());
        if places.failed() || values.failed() {
            return Tensor::FAILED;
        }
        let values = expanded(&cast(&values, self.dtype(), at), &places.shape(), at).reshape(-1);
        let how = if accumulate { "add" } else { "none" };
        scattered(&self.reshape(-1), 0, &places.reshape(-1), &values, how, at).reshape_as(self)
    }

    /// `new` written from index `start` (a number, a dim, or a tensor of rank 0) along an axis.
    #[track_caller]
    pub fn update_slice(&self, new: &Tensor, dim: i64, start: impl Operand) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let start = start.operand(&Tensor::integer(DType::I64, 0));
        apply(ops::UpdateSlice { axis: a as i64 }, &[self, &start, &cast(new, self.dtype(), at)], at)
    }

    /// `src` written over the range `start..end` of an axis.
    #[track_caller]
    pub fn slice_scatter(&self, src: &Tensor, dim: i64, start: impl Into<Dim>) -> Tensor {
        let start = start.into();
        self.update_slice(src, dim, start)
    }

    /// `src` written over the slice at one index of an axis.
    #[track_caller]
    pub fn select_scatter(&self, src: &Tensor, dim: i64, index: impl Into<Dim>) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let index = index.into();
        let start = if index.as_known().is_some_and(|i| i < 0) { self.shape()[a] + index } else { index };
        self.update_slice(&src.unsqueeze(a as i64), a as i64, start)
    }
}

/// A number of a type, infinities being its ends.
fn bounded(v: f64, d: DType) -> Tensor {
    if d.is_float() || v.is_finite() {
        return Tensor::number(d, v);
    }
    let bits = d.bits() - u32::from(d.is_signed());
    let top = if bits >= 63 { i64::MAX } else { (1i64 << bits) - 1 };
    match (v > 0.0, d.is_signed()) {
        (true, _) => Tensor::integer(d, top),
        (false, true) => Tensor::integer(d, -top - 1),
        (false, false) => Tensor::integer(d, 0),
    }
}

/// The positions of true elements [rank, count]. Those of a known tensor are known in a trace too.
#[track_caller]
fn positions(x: &Tensor, at: At) -> Tensor {
    if x.failed() {
        return Tensor::FAILED;
    }
    if trace::is_tracing() && matches!(x.0, Repr::Held(_)) {
        return trace::eager(|| positions(x, at));
    }
    let x = if x.dim() == 0 { x.reshape(1) } else { x.clone() };
    let inner = trace::with(|t| t.in_body(), false);
    if inner {
        let m = format!("a mask or nonzero of {x:#} inside a branch or loop");
        let d = Diag::error("E-NN-099", m).note("the size of the result depends on data");
        report(d.help("masked_fill and where_ choose by a mask without another size; or move it out"), at);
        return Tensor::FAILED;
    }
    let Ok([places, count]) = <[Tensor; 2]>::try_from(apply_n(ops::NonZero {}, &[&x], 2, at)) else {
        return Tensor::FAILED;
    };
    if places.failed() {
        return places;
    }
    let n = match trace::is_tracing() {
        false => Dim::from(count.item() as i64),
        true => bound(&x, &count, at),
    };
    super::shape::sliced(&places, 1, 0.into(), n, 1, at)
}

/// A new symbolic dim for a number that only the run knows.
#[track_caller]
fn bound(x: &Tensor, count: &Tensor, at: At) -> Dim {
    let Some(most) = x.ty().map(|t| t.numel()) else { return Dim::FAILED };
    let symbol = trace::with(
        |t| {
            let hi = i64::try_from(t.range(&most).1).unwrap_or(i64::MAX);
            let symbols = &mut t.graph().symbols;
            let symbol = symbols.fresh("nonzero_count");
            symbols.insert(&symbol, SymInfo { lo: 0, hi, named: false });
            symbol
        },
        String::new(),
    );
    let bound = apply(ops::BindDim { symbol: symbol.clone() }, &[count], at);
    if bound.failed() { Dim::FAILED } else { Dim::of(&Size::sym(&symbol)) }
}
