//! Linear and bilinear layers.

use crate::nn::ops::functional;
use crate::nn::{Forward, Module, Param, Tensor, enter, init};

/// `x w^T + b` over the last axis.
#[derive(Clone, Module)]
pub struct Linear {
    /// [out, in].
    pub weight: Param,
    /// [out].
    pub bias: Option<Param>,
}

impl Linear {
    /// With bias.
    pub fn new(in_features: usize, out_features: usize) -> Linear {
        Linear::with_bias(in_features, out_features, true)
    }

    /// With or without bias.
    pub fn with_bias(in_features: usize, out_features: usize, bias: bool) -> Linear {
        let weight = init::kaiming_uniform(&[out_features, in_features], 5f64.sqrt());
        let bound = 1.0 / (in_features.max(1) as f64).sqrt();
        Linear {
            weight: Param::new(weight),
            bias: bias.then(|| Param::new(init::uniform(&[out_features], -bound, bound))),
        }
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::linear(x, &self.weight, self.bias.as_deref())
    }
}

impl Forward for Linear {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        Linear::forward(self, x)
    }
}

/// `x1 w x2 + b` for each output.
#[derive(Clone, Module)]
pub struct Bilinear {
    /// [out, in1, in2].
    pub weight: Param,
    /// [out].
    pub bias: Option<Param>,
}

impl Bilinear {
    /// With bias.
    pub fn new(in1_features: usize, in2_features: usize, out_features: usize) -> Bilinear {
        let bound = 1.0 / (in1_features.max(1) as f64).sqrt();
        Bilinear {
            weight: Param::new(init::uniform(&[out_features, in1_features, in2_features], -bound, bound)),
            bias: Some(Param::new(init::uniform(&[out_features], -bound, bound))),
        }
    }

    /// Without bias.
    pub fn no_bias(mut self) -> Bilinear {
        self.bias = None;
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x1: &Tensor, x2: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::bilinear(x1, x2, &self.weight, self.bias.as_deref())
    }
}
