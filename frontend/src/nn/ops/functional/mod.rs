//! `torch.nn.functional`: what layers compute, with every operand given. A file a theme; this one holds what they share.

mod activation;
mod adaptive;
mod attention;
mod conv;
mod conv_transpose;
mod distance;
mod dropout;
mod fold;
mod interpolate;
mod linear;
mod loss;
mod loss_class;
mod loss_pair;
mod norm;
mod pad;
mod pool;
mod shuffle;

pub use activation::*;
pub use adaptive::*;
pub use attention::*;
pub use conv::*;
pub use conv_transpose::*;
pub use distance::*;
pub use dropout::*;
pub use fold::*;
pub use interpolate::{Interpolate, Interpolation, interpolate};
pub use linear::*;
pub use loss::*;
pub use loss_class::*;
pub use loss_pair::*;
pub use norm::*;
pub use pad::*;
pub use pool::*;
pub use shuffle::*;

use super::arith::cast;
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor, promote};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;
use tgc_ir::types::DType;

pub(crate) type At = &'static Location<'static>;

/// Reports what was found and a remedy; the failed tensor.
#[track_caller]
pub(crate) fn refuse(code: &'static str, what: String, help: &str, at: At) -> Tensor {
    report(Diag::error(code, what).help(help), at);
    Tensor::FAILED
}

/// True if one of them failed, so that sizes and types are not to be asked for.
pub(crate) fn any_failed(all: &[&Tensor]) -> bool {
    all.iter().any(|t| t.failed())
}

/// `yes` where the condition holds, else `no`; numbers take the other's element type.
#[track_caller]
pub(crate) fn choose(condition: &Tensor, yes: impl Operand, no: impl Operand, like: &Tensor) -> Tensor {
    let at = Location::caller();
    let (yes, no) = (yes.operand(like), no.operand(like));
    if any_failed(&[condition, &yes, &no]) {
        return Tensor::FAILED;
    }
    let d = promote(&yes, &no);
    apply(ops::Select {}, &[condition, &cast(&yes, d, at), &cast(&no, d, at)], at)
}

/// `min(max(x, low), high)`; NaN stays.
#[track_caller]
pub(crate) fn bounded(x: &Tensor, low: f64, high: f64) -> Tensor {
    x.maximum(low).minimum(high)
}

/// The element type that sums and functions are computed in: f32 for narrower floats.
pub(crate) fn wide_type(d: DType) -> DType {
    if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d }
}

/// A float operand in [`wide_type`], and the element type of the result, so that narrow floats are rounded once.
/// Integers become f32.
#[track_caller]
pub(crate) fn widened(x: &Tensor) -> (Tensor, DType) {
    let d = if x.dtype().is_float() { x.dtype() } else { DType::F32 };
    (cast(x, wide_type(d), Location::caller()), d)
}

/// The result of what was computed in another element type.
#[track_caller]
pub(crate) fn narrowed(y: &Tensor, d: DType) -> Tensor {
    cast(y, d, Location::caller())
}

/// An operand without a batch axis gets one, as ops want; true if so. Another rank is reported.
#[track_caller]
pub(crate) fn batched(x: &Tensor, rank: usize, what: &str, at: At) -> Option<(Tensor, bool)> {
    match x.dim() {
        _ if x.failed() => None,
        r if r == rank => Some((x.clone(), false)),
        r if r + 1 == rank => Some((x.unsqueeze(0), true)),
        r => {
            let m = format!("{what} of a tensor of rank {r}: {x:#}");
            let help =
                format!("give rank {rank} (batch, channels, space), or {} without the batch", rank - 1);
            refuse("E-NN-080", m, &help, at);
            None
        }
    }
}

/// The result without the batch axis that the operand did not have.
#[track_caller]
pub(crate) fn unbatched(y: Tensor, lone: bool) -> Tensor {
    if lone && !y.failed() { squeezed(&y, 0) } else { y }
}

/// A tensor of one axis laid along axis `axis` of `rank` axes.
#[track_caller]
pub(crate) fn along(t: &Tensor, axis: usize, rank: usize) -> Tensor {
    let at = Location::caller();
    if t.failed() {
        return Tensor::FAILED;
    }
    let mut shape = vec![Dim::from(1); rank];
    shape[axis] = t.numel();
    super::shape::reshaped(t, &shape, at)
}

/// `x` without an axis of extent 1.
#[track_caller]
pub(crate) fn squeezed(x: &Tensor, dim: i64) -> Tensor {
    let at = Location::caller();
    let Some(a) = x.axis(dim, at) else { return Tensor::FAILED };
    let mut shape = x.shape();
    shape.remove(a);
    super::shape::reshaped(x, &shape, at)
}

/// One number for every axis, or one each: what strides, kernels and paddings are written as.
pub trait PerAxis<const N: usize> {
    /// One number an axis.
    fn per_axis(self) -> [i64; N];
}

macro_rules! per_axis {
    ($($t:ty),*) => { $(
        impl<const N: usize> PerAxis<N> for $t {
            fn per_axis(self) -> [i64; N] {
                [self as i64; N]
            }
        }
        impl<const N: usize> PerAxis<N> for [$t; N] {
            fn per_axis(self) -> [i64; N] {
                self.map(|n| n as i64)
            }
        }
    )* };
}
per_axis!(i32, i64, usize);
