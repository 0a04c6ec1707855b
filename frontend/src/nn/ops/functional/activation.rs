//! Activations. Narrow floats are computed in f32 and rounded once, as PyTorch does.

use super::{along, any_failed, bounded, choose, narrowed, refuse, widened};
use crate::nn::tensor::Tensor;
use std::panic::Location;

/// `alpha` of SELU.
pub(crate) const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
/// `scale` of SELU.
pub(crate) const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

macro_rules! wide {
    ($($(#[$doc:meta])* $name:ident($x:ident $(, $p:ident: $t:ty)*) $body:expr;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name($x: &Tensor $(, $p: $t)*) -> Tensor {
            let ($x, d) = widened($x);
            let $x = &$x;
            narrowed(&$body, d)
        }
    )* };
}
wide! {
    /// `x` where positive, else `slope * x`.
    leaky_relu(x, slope: f64) choose(&x.gt(0.0), x, x * slope, x);
    /// `x` where positive, else `alpha * (e^x - 1)`.
    elu(x, alpha: f64) choose(&x.gt(0.0), x, (x.minimum(0.0).exp() - 1.0) * alpha, x);
    /// ELU with the constants that keep mean 0 and variance 1.
    selu(x) choose(&x.gt(0.0), x, (x.minimum(0.0).exp() - 1.0) * SELU_ALPHA, x) * SELU_SCALE;
    /// `x` where positive, else `alpha * (e^(x / alpha) - 1)`.
    celu(x, alpha: f64) choose(&x.gt(0.0), x, ((x.minimum(0.0) * (1.0 / alpha)).exp() - 1.0) * alpha, x);
    /// `x * sigmoid(x)`.
    silu(x) x * x.sigmoid();
    /// `x * tanh(softplus(x))`.
    mish(x) x * softplus(x, 1.0, 20.0).tanh();
    /// `log(1 + e^(beta x)) / beta`; `x` itself where `beta x` is above the threshold.
    softplus(x, beta: f64, threshold: f64) softplus_wide(x, beta, threshold);
    /// `x / (1 + |x|)`.
    softsign(x) x / (x.abs() + 1.0);
    /// `x` less `lambda` towards zero.
    softshrink(x, lambda: f64) x - bounded(x, -lambda, lambda);
    /// `(x + 3) / 6` between 0 and 1.
    hardsigmoid(x) bounded(&(x + 3.0), 0.0, 6.0) / 6.0;
    /// `x * hardsigmoid(x)`.
    hardswish(x) x * bounded(&(x + 3.0), 0.0, 6.0) / 6.0;
    /// `log(sigmoid(x))`.
    logsigmoid(x) x.minimum(0.0) - ((-x.abs()).exp() + 1.0).log();
    /// `x - tanh(x)`.
    tanhshrink(x) x - x.tanh();
    /// `1 / (1 + e^-x)`.
    sigmoid(x) x.sigmoid();
    /// Hyperbolic tangent.
    tanh(x) x.tanh();
}

#[track_caller]
fn softplus_wide(x: &Tensor, beta: f64, threshold: f64) -> Tensor {
    let t = x * beta;
    let soft = (t.maximum(0.0) + ((-t.abs()).exp() + 1.0).log()) / beta;
    choose(&t.gt(threshold), x, soft, x)
}

/// `max(x, 0)`.
#[track_caller]
pub fn relu(x: &Tensor) -> Tensor {
    x.relu()
}

/// `x` between 0 and 6.
#[track_caller]
pub fn relu6(x: &Tensor) -> Tensor {
    bounded(x, 0.0, 6.0)
}

/// Gaussian error linear unit: exact by erf, or approximated by tanh.
#[track_caller]
pub fn gelu(x: &Tensor, approximate_tanh: bool) -> Tensor {
    if approximate_tanh { x.gelu_tanh() } else { x.gelu() }
}

/// `x` where positive, else `weight * x`, with one weight, or one a channel (axis 1).
#[track_caller]
pub fn prelu(x: &Tensor, weight: &Tensor) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x, weight]) {
        return Tensor::FAILED;
    }
    let one = weight.numel().as_known() == Some(1);
    if weight.dim() > 1 || !(one || x.dim() >= 2) {
        let m = format!("prelu of {x:#} with the weight {weight:#}");
        return refuse(
            "E-NN-094",
            m,
            "give a weight of one axis: one number, or one a channel of axis 1",
            at,
        );
    }
    let w = if x.dim() < 2 { weight.reshape(-1) } else { along(weight, 1, x.dim()) };
    let w = if x.dim() == 0 { w.reshape(()) } else { w };
    choose(&x.gt(0.0), x, x * w, x)
}

/// `x` where it is not from `-lambda` to `lambda`, else 0.
#[track_caller]
pub fn hardshrink(x: &Tensor, lambda: f64) -> Tensor {
    choose(&x.abs().le(lambda), 0.0, x, x)
}

/// `x` between two bounds.
#[track_caller]
pub fn hardtanh(x: &Tensor, min: f64, max: f64) -> Tensor {
    bounded(x, min, max)
}

/// `x` where above the threshold, else `value`.
#[track_caller]
pub fn threshold(x: &Tensor, threshold: f64, value: f64) -> Tensor {
    choose(&x.le(threshold), value, x, x)
}

/// Normalised exponentials along an axis.
#[track_caller]
pub fn softmax(x: &Tensor, dim: i64) -> Tensor {
    x.softmax(dim)
}

/// Logarithm of the softmax.
#[track_caller]
pub fn log_softmax(x: &Tensor, dim: i64) -> Tensor {
    x.log_softmax(dim)
}

/// Softmax of `-x`.
#[track_caller]
pub fn softmin(x: &Tensor, dim: i64) -> Tensor {
    (-x).softmax(dim)
}

/// The first half of an axis times the sigmoid of the second.
#[track_caller]
pub fn glu(x: &Tensor, dim: i64) -> Tensor {
    let [a, b] = x.chunk(dim);
    a * b.sigmoid()
}
