//! Normalisations over the last axes and over groups of channels, which act alike while training.

use super::plain::plain_layers;
use crate::nn::ops::functional;
use crate::nn::{Forward, Module, Param, Tensor, enter, init};

/// Normalisation over the last axes.
#[derive(Clone, Module)]
pub struct LayerNorm {
    /// Of the normalised shape.
    pub weight: Option<Param>,
    /// Of the normalised shape.
    pub bias: Option<Param>,
    #[module(skip)]
    shape: Vec<i64>,
    eps: f64,
}

impl LayerNorm {
    /// Over the last axis, of this size.
    pub fn new(size: usize) -> LayerNorm {
        LayerNorm::with(&[size], 1e-5, true, true)
    }

    /// Over the last axes, of this shape.
    pub fn with(shape: &[usize], eps: f64, affine: bool, bias: bool) -> LayerNorm {
        LayerNorm {
            weight: affine.then(|| Param::new(init::constant(shape, 1.0))),
            bias: (affine && bias).then(|| Param::new(init::constant(shape, 0.0))),
            shape: shape.iter().map(|s| *s as i64).collect(),
            eps,
        }
    }

    /// Another epsilon (1e-5 else).
    pub fn eps(mut self, eps: f64) -> LayerNorm {
        self.eps = eps;
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::layer_norm(x, &self.shape, self.weight.as_deref(), self.bias.as_deref(), self.eps)
    }
}

/// Division by the root of the mean square over the last axes.
#[derive(Clone, Module)]
pub struct RMSNorm {
    /// Of the normalised shape.
    pub weight: Option<Param>,
    #[module(skip)]
    shape: Vec<i64>,
    #[module(skip)]
    eps: Option<f64>,
}

impl RMSNorm {
    /// Over the last axis, of this size.
    pub fn new(size: usize) -> RMSNorm {
        RMSNorm::with(&[size], None, true)
    }

    /// Over the last axes, of this shape. The epsilon is the element type's own if not given.
    pub fn with(shape: &[usize], eps: Option<f64>, affine: bool) -> RMSNorm {
        RMSNorm {
            weight: affine.then(|| Param::new(init::constant(shape, 1.0))),
            shape: shape.iter().map(|s| *s as i64).collect(),
            eps,
        }
    }

    /// Another epsilon.
    pub fn eps(mut self, eps: f64) -> RMSNorm {
        self.eps = Some(eps);
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::rms_norm(x, &self.shape, self.weight.as_deref(), self.eps)
    }
}

/// Normalisation of groups of channels.
#[derive(Clone, Module)]
pub struct GroupNorm {
    /// [channels].
    pub weight: Option<Param>,
    /// [channels].
    pub bias: Option<Param>,
    groups: i64,
    eps: f64,
}

impl GroupNorm {
    /// As many groups of all channels.
    pub fn new(groups: i64, channels: usize) -> GroupNorm {
        GroupNorm::with(groups, channels, 1e-5, true)
    }

    /// With another epsilon, and with or without weight and bias.
    pub fn with(groups: i64, channels: usize, eps: f64, affine: bool) -> GroupNorm {
        GroupNorm {
            weight: affine.then(|| Param::new(init::constant(&[channels], 1.0))),
            bias: affine.then(|| Param::new(init::constant(&[channels], 0.0))),
            groups,
            eps,
        }
    }

    /// Another epsilon (1e-5 else).
    pub fn eps(mut self, eps: f64) -> GroupNorm {
        self.eps = eps;
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::group_norm(x, self.groups, self.weight.as_deref(), self.bias.as_deref(), self.eps)
    }
}

macro_rules! forward {
    ($($name:ident)*) => { $(
        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                $name::forward(self, x)
            }
        }
    )* };
}
forward!(LayerNorm RMSNorm GroupNorm);

plain_layers! {
    /// Division by a power of the mean square of neighbouring channels.
    LocalResponseNorm(size: i64) { alpha: f64 = 1e-4, beta: f64 = 0.75, k: f64 = 1.0 }
        (self, x) functional::local_response_norm(x, self.size, self.alpha, self.beta, self.k);
}
