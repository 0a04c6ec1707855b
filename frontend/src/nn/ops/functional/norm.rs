//! Normalisations.

use super::{At, along, any_failed, narrowed, refuse, widened};
use crate::nn::dim::Dim;
use crate::nn::exec::apply;
use crate::nn::ops::arith::cast;
use crate::nn::ops::shape::reshaped;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

/// The axes that a normalised shape names, the last ones; an operand that it does not fit is reported.
#[track_caller]
fn last_axes(x: &Tensor, shape: &[i64], what: &str, at: At) -> Option<Vec<i64>> {
    let dims = x.shape();
    let fits = dims.len() >= shape.len()
        && dims[dims.len() - shape.len()..].iter().zip(shape).all(|(d, s)| d.as_known() == Some(*s));
    if !fits {
        let m = format!("{what} over {shape:?} of {x:#}");
        refuse("E-NN-081", m, "the last dims of the operand must be the normalised shape", at);
        return None;
    }
    Some((1..=shape.len() as i64).map(|i| -i).rev().collect())
}

/// Normalisation over the last axes, as many as `shape` has, which names their sizes.
#[track_caller]
pub fn layer_norm(
    x: &Tensor,
    shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    let Some(axes) = last_axes(x, shape, "layer_norm", at) else { return Tensor::FAILED };
    let d = x.dtype();
    let scale = match weight {
        Some(w) => cast(w, d, at),
        None => Tensor::ones(shape, d),
    };
    let mut ins = vec![x.clone(), scale];
    ins.extend(bias.map(|b| cast(b, d, at)));
    apply(ops::LayerNorm { axes, epsilon: eps }, &ins.iter().collect::<Vec<_>>(), at)
}

/// Division by the root of the mean square over the last axes; `eps` is the element type's own if not given.
#[track_caller]
pub fn rms_norm(x: &Tensor, shape: &[i64], weight: Option<&Tensor>, eps: Option<f64>) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    let Some(axes) = last_axes(x, shape, "rms_norm", at) else { return Tensor::FAILED };
    let eps = eps.unwrap_or(match x.dtype() {
        DType::F64 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    });
    let (x, d) = widened(x);
    let mut y = &x * ((&x * &x).mean(&axes, true) + eps).rsqrt();
    if let Some(w) = weight {
        y *= cast(w, x.dtype(), at);
    }
    narrowed(&y, d)
}

/// Normalisation of each channel of x [n, c, ..] by given statistics, or by those of `x` itself.
#[track_caller]
pub fn batch_norm(
    x: &Tensor,
    statistics: Option<(&Tensor, &Tensor)>,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    if x.dim() < 2 {
        let m = format!("batch_norm of {x:#}");
        return refuse("E-NN-090", m, "give rank 2 or more: batch, channels, space", at);
    }
    let own;
    let (mean, var) = match statistics {
        Some(s) => s,
        None => {
            own = batch_statistics(x);
            (&own.0, &own.1)
        }
    };
    let c = x.size(1);
    let d = mean.dtype();
    let scale = match weight {
        Some(w) => w.clone(),
        None => Tensor::ones(c, d),
    };
    let shift = match bias {
        Some(b) => b.clone(),
        None => Tensor::zeros(c, d),
    };
    apply(ops::BatchNorm { epsilon: eps }, &[x, &scale, &shift, mean, var], at)
}

/// Mean and variance (of the elements themselves, not an estimate) of each channel of x [n, c, ..].
#[track_caller]
pub(crate) fn batch_statistics(x: &Tensor) -> (Tensor, Tensor) {
    let at = Location::caller();
    if x.failed() || x.dim() < 2 {
        return (Tensor::FAILED, Tensor::FAILED);
    }
    let x = cast(x, super::wide_type(x.dtype()), at);
    let axes: Vec<i64> = (0..x.dim() as i64).filter(|a| *a != 1).collect();
    let mean = x.mean(&axes, true);
    let centred = &x - &mean;
    let var = (&centred * &centred).mean(&axes, false);
    (mean.reshape(-1), var)
}

/// Normalisation of each group of channels of x [n, c, ..], over these channels and the space.
#[track_caller]
pub fn group_norm(
    x: &Tensor,
    groups: i64,
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    let rank = x.dim();
    let channels = x.shape().get(1).copied();
    let fits = groups >= 1 && channels.is_some_and(|c| c.as_known().is_none_or(|c| c % groups == 0));
    let Some(c) = channels.filter(|_| fits) else {
        let m = format!("group_norm with {groups} groups of {x:#}");
        return refuse("E-NN-090", m, "give rank 2 or more and groups that divide the channels", at);
    };
    let shape = x.shape();
    let space = shape[2..].iter().fold(Dim::from(1), |n, d| n * *d);
    let (x, d) = widened(x);
    let g = reshaped(&x, &[shape[0], Dim::from(groups), c / groups * space], at);
    let centred = &g - g.mean(&[-1], true);
    let var = (&centred * &centred).mean(&[-1], true);
    let mut y = reshaped(&(centred * (var + eps).rsqrt()), &shape, at);
    if let Some(w) = weight {
        y *= along(&cast(w, x.dtype(), at), 1, rank);
    }
    if let Some(b) = bias {
        y += along(&cast(b, x.dtype(), at), 1, rank);
    }
    narrowed(&y, d)
}

/// Normalisation of each channel of each operand of x [n, c, space..] over the space.
#[track_caller]
pub fn instance_norm(x: &Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    let channels = x.shape().get(1).and_then(|c| c.as_known());
    match channels.filter(|_| x.dim() > 2) {
        Some(c) => group_norm(x, c, weight, bias, eps),
        None => {
            let m = format!("instance_norm of {x:#}");
            refuse("E-NN-090", m, "give rank 3 or more and a known number of channels", at)
        }
    }
}

/// Division by `(k + alpha * mean of the squares of size neighbouring channels)^beta`.
#[track_caller]
pub fn local_response_norm(x: &Tensor, size: i64, alpha: f64, beta: f64, k: f64) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    if x.dim() < 3 || size < 1 {
        let m = format!("local_response_norm over {size} channels of {x:#}");
        return refuse("E-NN-090", m, "give rank 3 or more, and a size of 1 or more", at);
    }
    let c = x.size(1);
    let (x, d) = widened(x);
    let squares = super::zeros_around(&(&x * &x), 1, size / 2, (size - 1) / 2, at);
    let mut sum = squares.narrow(1, 0, c);
    for i in 1..size {
        sum += squares.narrow(1, i, c);
    }
    narrowed(&(x / (sum * (alpha / size as f64) + k).pow(beta)), d)
}

/// `x / max(norm, eps)` with the `p`-norm along an axis.
#[track_caller]
pub fn normalize(x: &Tensor, p: f64, dim: i64, eps: f64) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) || x.axis(dim, at).is_none() {
        return Tensor::FAILED;
    }
    let (x, d) = widened(x);
    narrowed(&(&x / super::p_norm(&x, p, dim, true).maximum(eps)), d)
}
