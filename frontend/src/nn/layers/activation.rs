//! Activations. They hold nothing, but have a place in the module tree, so that indices are PyTorch's.

use super::plain::plain_layers;
use crate::nn::ops::functional;
use crate::nn::{Forward, Module, Param, Tensor, enter, init};

plain_layers! {
    /// The operand itself.
    Identity() (self, x) x.clone();
    /// `max(x, 0)`.
    ReLU() (self, x) x.relu();
    /// `x` between 0 and 6.
    ReLU6() (self, x) functional::relu6(x);
    /// `x` where positive, else `negative_slope * x`.
    LeakyReLU() { negative_slope: f64 = 0.01 } (self, x) functional::leaky_relu(x, self.negative_slope);
    /// `x` where positive, else `alpha * (e^x - 1)`.
    ELU() { alpha: f64 = 1.0 } (self, x) functional::elu(x, self.alpha);
    /// ELU with the constants that keep mean 0 and variance 1.
    SELU() (self, x) functional::selu(x);
    /// `x` where positive, else `alpha * (e^(x / alpha) - 1)`.
    CELU() { alpha: f64 = 1.0 } (self, x) functional::celu(x, self.alpha);
    /// Gaussian error linear unit, exact or approximated by tanh.
    GELU() { approximate_tanh: bool = false } (self, x) functional::gelu(x, self.approximate_tanh);
    /// `x * sigmoid(x)`.
    SiLU() (self, x) functional::silu(x);
    /// `x * tanh(softplus(x))`.
    Mish() (self, x) functional::mish(x);
    /// `log(1 + e^(beta x)) / beta`.
    Softplus() { beta: f64 = 1.0, threshold: f64 = 20.0 }
        (self, x) functional::softplus(x, self.beta, self.threshold);
    /// `x / (1 + |x|)`.
    Softsign() (self, x) functional::softsign(x);
    /// `x` less `lambda` towards zero.
    Softshrink() { lambda: f64 = 0.5 } (self, x) functional::softshrink(x, self.lambda);
    /// `x` where it is not from `-lambda` to `lambda`, else 0.
    Hardshrink() { lambda: f64 = 0.5 } (self, x) functional::hardshrink(x, self.lambda);
    /// `x` between two bounds.
    Hardtanh() { min_val: f64 = -1.0, max_val: f64 = 1.0 }
        (self, x) functional::hardtanh(x, self.min_val, self.max_val);
    /// `(x + 3) / 6` between 0 and 1.
    Hardsigmoid() (self, x) functional::hardsigmoid(x);
    /// `x * hardsigmoid(x)`.
    Hardswish() (self, x) functional::hardswish(x);
    /// Logarithm of the logistic function.
    LogSigmoid() (self, x) functional::logsigmoid(x);
    /// Logistic function.
    Sigmoid() (self, x) functional::sigmoid(x);
    /// Hyperbolic tangent.
    Tanh() (self, x) functional::tanh(x);
    /// `x - tanh(x)`.
    Tanhshrink() (self, x) functional::tanhshrink(x);
    /// `x` where above the threshold, else `value`.
    Threshold(threshold: f64, value: f64) (self, x) functional::threshold(x, self.threshold, self.value);
    /// Normalised exponentials along an axis.
    Softmax(dim: i64) (self, x) x.softmax(self.dim);
    /// Logarithm of the softmax.
    LogSoftmax(dim: i64) (self, x) x.log_softmax(self.dim);
    /// Softmax of `-x`.
    Softmin(dim: i64) (self, x) functional::softmin(x, self.dim);
    /// The first half of an axis times the sigmoid of the second.
    GLU() { dim: i64 = -1 } (self, x) functional::glu(x, self.dim);
}

/// `x` where positive, else `weight * x`, with a learned weight, or one a channel.
#[derive(Clone, Module)]
pub struct PReLU {
    /// [1], or [channels].
    pub weight: Param,
}

impl PReLU {
    /// One weight, which begins at 0.25.
    pub fn new() -> PReLU {
        PReLU::with(1, 0.25)
    }

    /// A weight for each channel, or one, and where they begin.
    pub fn with(num_parameters: usize, init: f64) -> PReLU {
        PReLU { weight: Param::new(init::constant(&[num_parameters], init)) }
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::prelu(x, &self.weight)
    }
}

impl Default for PReLU {
    fn default() -> PReLU {
        PReLU::new()
    }
}

impl Forward for PReLU {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        PReLU::forward(self, x)
    }
}
