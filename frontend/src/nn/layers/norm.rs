//! Normalisations.

use crate::nn::ops::functional;
use crate::nn::{Buffer, Forward, Module, Param, Tensor, Training, enter, init};

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

impl Forward for LayerNorm {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        LayerNorm::forward(self, x)
    }
}

/// Normalisation of each channel over the batch and `N` axes of space.
#[derive(Clone, Module)]
pub struct BatchNorm<const N: usize> {
    /// [channels].
    pub weight: Param,
    /// [channels].
    pub bias: Param,
    /// [channels].
    pub running_mean: Buffer,
    /// [channels].
    pub running_var: Buffer,
    num_batches_tracked: Buffer,
    eps: f64,
    momentum: f64,
    training: Training,
}

/// Over [n, c] or [n, c, l].
pub type BatchNorm1d = BatchNorm<1>;
/// Over [n, c, h, w].
pub type BatchNorm2d = BatchNorm<2>;
/// Over [n, c, d, h, w].
pub type BatchNorm3d = BatchNorm<3>;

impl<const N: usize> BatchNorm<N> {
    /// With PyTorch's defaults: eps 1e-5, momentum 0.1.
    pub fn new(channels: usize) -> Self {
        BatchNorm {
            weight: Param::new(init::constant(&[channels], 1.0)),
            bias: Param::new(init::constant(&[channels], 0.0)),
            running_mean: Buffer::new(init::constant(&[channels], 0.0)),
            running_var: Buffer::new(init::constant(&[channels], 1.0)),
            num_batches_tracked: Buffer::new(Tensor::scalar(0i64)).optional(),
            eps: 1e-5,
            momentum: 0.1,
            training: Training::default(),
        }
    }

    /// Another epsilon.
    pub fn eps(mut self, eps: f64) -> Self {
        self.eps = eps;
        self
    }

    /// The result. While training, the batch's own statistics count, and the running ones follow them.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        if !self.training.on() {
            let (mean, var) = (&self.running_mean, &self.running_var);
            return functional::batch_norm(x, mean, var, &self.weight, &self.bias, self.eps);
        }
        let axes: Vec<i64> = (0..x.dim() as i64).filter(|a| *a != 1).collect();
        let mean = x.mean(&axes, true);
        let centred = x - &mean;
        let var = (&centred * &centred).mean(&axes, true);
        let flat = |t: &Tensor| t.reshape(-1);
        let count = x.numel() / x.size(1);
        let unbiased = flat(&var) * count / (count - 1).max(1);
        self.running_mean.set(&(&self.running_mean * (1.0 - self.momentum) + flat(&mean) * self.momentum));
        self.running_var.set(&(&self.running_var * (1.0 - self.momentum) + unbiased * self.momentum));
        self.num_batches_tracked.set(&(&self.num_batches_tracked + 1));
        functional::batch_norm(x, &flat(&mean), &flat(&var), &self.weight, &self.bias, self.eps)
    }
}

impl<const N: usize> Forward for BatchNorm<N> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        BatchNorm::forward(self, x)
    }
}
