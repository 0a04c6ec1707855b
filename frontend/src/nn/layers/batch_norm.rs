//! Normalisations with running statistics, which follow those of the batches while training.

use crate::nn::ops::functional::{self, batch_statistics};
use crate::nn::{Buffer, Forward, Module, Param, Tensor, Training, enter, init};

/// Means and variances seen so far.
#[derive(Clone)]
struct Running {
    mean: Buffer,
    var: Buffer,
    count: Buffer,
}

impl Running {
    fn new(channels: usize) -> Running {
        Running {
            mean: Buffer::new(init::constant(&[channels], 0.0)),
            var: Buffer::new(init::constant(&[channels], 1.0)),
            count: Buffer::new(Tensor::scalar(0i64)).optional(),
        }
    }

    /// Counts a batch; its share, which without momentum is that of all batches seen.
    #[track_caller]
    fn counted(&self, momentum: Option<f64>) -> Tensor {
        self.count.set(&(&self.count + 1));
        match momentum {
            Some(m) => Tensor::scalar(m as f32),
            None => self.count.to_dtype(crate::nn::F32).reciprocal(),
        }
    }

    /// Takes one more mean and (unbiased) variance in.
    #[track_caller]
    fn follow(&self, mean: &Tensor, var: &Tensor, share: &Tensor) {
        self.mean.set(&(&self.mean + (mean - &self.mean) * share));
        self.var.set(&(&self.var + (var - &self.var) * share));
    }

    #[track_caller]
    fn now(&self) -> (&Tensor, &Tensor) {
        (&self.mean, &self.var)
    }
}

impl Module for Running {
    fn visit(&self, v: &mut crate::nn::Visitor<'_>) {
        v.child("running_mean", &self.mean);
        v.child("running_var", &self.var);
        v.child("num_batches_tracked", &self.count);
    }
}

macro_rules! norms {
    ($($(#[$doc:meta])* $name:ident $affine:literal $track:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name<const N: usize> {
            /// [channels].
            pub weight: Option<Param>,
            /// [channels].
            pub bias: Option<Param>,
            running: Option<Running>,
            channels: usize,
            eps: f64,
            momentum: Option<f64>,
            training: Training,
        }

        impl<const N: usize> Module for $name<N> {
            fn visit(&self, v: &mut crate::nn::Visitor<'_>) {
                v.child("weight", &self.weight);
                v.child("bias", &self.bias);
                v.child("", &self.running);
                v.child("training", &self.training);
            }
        }

        impl<const N: usize> $name<N> {
            /// With PyTorch's defaults: eps 1e-5, momentum 0.1.
            pub fn new(channels: usize) -> Self {
                let new = $name {
                    weight: None,
                    bias: None,
                    running: None,
                    channels,
                    eps: 1e-5,
                    momentum: Some(0.1),
                    training: Training::default(),
                };
                new.affine($affine).track_running_stats($track)
            }

            /// Another epsilon.
            pub fn eps(mut self, eps: f64) -> Self {
                self.eps = eps;
                self
            }

            /// The share of a batch in the running statistics; None for the mean of all batches.
            pub fn momentum(mut self, momentum: impl Into<Option<f64>>) -> Self {
                self.momentum = momentum.into();
                self
            }

            /// With weight and bias, which begin at 1 and 0, or without.
            pub fn affine(mut self, affine: bool) -> Self {
                self.weight = affine.then(|| Param::new(init::constant(&[self.channels], 1.0)));
                self.bias = affine.then(|| Param::new(init::constant(&[self.channels], 0.0)));
                self
            }

            /// With running statistics, or by those of each operand always.
            pub fn track_running_stats(mut self, track: bool) -> Self {
                self.running = track.then(|| Running::new(self.channels));
                self
            }

            /// Mean of the running statistics.
            pub fn running_mean(&self) -> Option<&Buffer> {
                self.running.as_ref().map(|r| &r.mean)
            }

            /// Variance of the running statistics.
            pub fn running_var(&self) -> Option<&Buffer> {
                self.running.as_ref().map(|r| &r.var)
            }
        }

        impl<const N: usize> Forward for $name<N> {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                $name::forward(self, x)
            }
        }
    )* };
}
norms! {
    /// Normalisation of each channel over the batch and `N` axes of space.
    BatchNorm true true;
    /// Normalisation of each channel of each operand over `N` axes of space.
    InstanceNorm false false;
}

/// Over [n, c] or [n, c, l].
pub type BatchNorm1d = BatchNorm<1>;
/// Over [n, c, h, w].
pub type BatchNorm2d = BatchNorm<2>;
/// Over [n, c, d, h, w].
pub type BatchNorm3d = BatchNorm<3>;
/// Over [n, c, l] or [c, l].
pub type InstanceNorm1d = InstanceNorm<1>;
/// Over [n, c, h, w] or [c, h, w].
pub type InstanceNorm2d = InstanceNorm<2>;
/// Over [n, c, d, h, w] or [c, d, h, w].
pub type InstanceNorm3d = InstanceNorm<3>;

impl<const N: usize> BatchNorm<N> {
    /// The result. While training, the batch's own statistics count, and the running ones follow them.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let at = std::panic::Location::caller();
        let _entered = enter(self);
        if x.failed() {
            return Tensor::FAILED;
        }
        if x.dim() != N + 2 && !(N == 1 && x.dim() == 2) {
            let m = format!("BatchNorm{N}d of {x:#}");
            return functional::refuse(
                "E-NN-090",
                m,
                &format!("give rank {}: batch, channels, space", N + 2),
                at,
            );
        }
        let (w, b) = (self.weight.as_deref(), self.bias.as_deref());
        let Some(running) = &self.running else { return functional::batch_norm(x, None, w, b, self.eps) };
        if !self.training.on() {
            return functional::batch_norm(x, Some(running.now()), w, b, self.eps);
        }
        let (mean, var) = batch_statistics(x);
        let count = x.numel() / x.size(1);
        let share = running.counted(self.momentum);
        running.follow(&mean, &(&var * count / (count - 1).max(1)), &share);
        functional::batch_norm(x, Some((&mean, &var)), w, b, self.eps)
    }
}

impl<const N: usize> InstanceNorm<N> {
    /// The result. With running statistics these count, unless training, when they follow the operands'.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let at = std::panic::Location::caller();
        let _entered = enter(self);
        let what = format!("InstanceNorm{N}d");
        let Some((x, lone)) = functional::batched(x, N + 2, &what, at) else { return Tensor::FAILED };
        functional::unbatched(self.of_batch(&x), lone)
    }

    #[track_caller]
    fn of_batch(&self, x: &Tensor) -> Tensor {
        let (w, b) = (self.weight.as_deref(), self.bias.as_deref());
        let Some(running) = &self.running else { return functional::instance_norm(x, w, b, self.eps) };
        if !self.training.on() {
            return functional::batch_norm(x, Some(running.now()), w, b, self.eps);
        }
        let axes: Vec<i64> = (2..x.dim() as i64).collect();
        let mean = x.mean(&axes, true);
        let centred = x - &mean;
        let var = (&centred * &centred).mean(&axes, false).mean(&[0], false);
        let count = x.numel() / (x.size(0) * x.size(1));
        let mean = mean.mean(&[0], false).reshape(-1);
        // batches are not counted, as in PyTorch
        let share = Tensor::scalar(self.momentum.unwrap_or(0.0) as f32);
        running.follow(&mean, &(var * count / (count - 1).max(1)), &share);
        functional::instance_norm(x, w, b, self.eps)
    }
}
