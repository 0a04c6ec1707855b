//! Elements around a tensor.

use super::At;
use crate::nn::ops::arrange::bordered;
use crate::nn::tensor::Tensor;

pub use crate::nn::ops::arrange::PadMode;

/// [`Tensor::pad`].
#[track_caller]
pub fn pad(x: &Tensor, pads: &[i64], mode: PadMode) -> Tensor {
    x.pad(pads, mode)
}

/// Zeros before and after one axis.
#[track_caller]
pub(crate) fn zeros_around(x: &Tensor, axis: usize, before: i64, after: i64, at: At) -> Tensor {
    bordered(x, &[(axis, before.into(), after.into())], 0.0, at)
}
