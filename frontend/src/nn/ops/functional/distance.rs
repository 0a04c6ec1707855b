//! Norms and distances of vectors.

use super::any_failed;
use crate::nn::tensor::Tensor;

/// The `p`-norm along an axis; `p` may be infinite.
#[track_caller]
pub(crate) fn p_norm(x: &Tensor, p: f64, dim: i64, keepdim: bool) -> Tensor {
    if p == 2.0 {
        (x * x).sum(&[dim], keepdim).sqrt()
    } else if p == 1.0 {
        x.abs().sum(&[dim], keepdim)
    } else if p == f64::INFINITY {
        x.abs().amax(&[dim], keepdim)
    } else if p == f64::NEG_INFINITY {
        x.abs().amin(&[dim], keepdim)
    } else if p == 0.0 {
        x.ne(0.0).to_dtype(x.dtype()).sum(&[dim], keepdim)
    } else {
        x.abs().pow(p).sum(&[dim], keepdim).pow(1.0 / p)
    }
}

/// The cosine of the angle of vectors along an axis; norms below `eps` count as `eps`.
#[track_caller]
pub fn cosine_similarity(x1: &Tensor, x2: &Tensor, dim: i64, eps: f64) -> Tensor {
    if any_failed(&[x1, x2]) {
        return Tensor::FAILED;
    }
    // the axis is the broadcast operands'
    let dim = if dim < 0 { dim } else { dim - x1.dim().max(x2.dim()) as i64 };
    let a = x1 / p_norm(x1, 2.0, dim, true).maximum(eps);
    let b = x2 / p_norm(x2, 2.0, dim, true).maximum(eps);
    (a * b).sum(&[dim], false)
}

/// The `p`-norm of `x1 - x2 + eps` along the last axis.
#[track_caller]
pub fn pairwise_distance(x1: &Tensor, x2: &Tensor, p: f64, eps: f64, keepdim: bool) -> Tensor {
    if any_failed(&[x1, x2]) {
        return Tensor::FAILED;
    }
    p_norm(&(x1 - x2 + eps), p, -1, keepdim)
}
