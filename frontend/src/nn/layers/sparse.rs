//! Embedding and dropout.

use crate::nn::ops::functional;
use crate::nn::{F32, Forward, Module, Param, Tensor, Training, enter, init};

/// Rows of a table by index.
#[derive(Clone, Module)]
pub struct Embedding {
    /// [rows, width].
    pub weight: Param,
}

impl Embedding {
    /// A table of normal random numbers.
    pub fn new(rows: usize, width: usize) -> Embedding {
        Embedding { weight: Param::new(init::normal(&[rows, width], 0.0, 1.0)) }
    }

    /// The rows.
    #[track_caller]
    pub fn forward(&self, indices: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::embedding(indices, &self.weight)
    }
}

impl Forward for Embedding {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        Embedding::forward(self, x)
    }
}

/// Zeros with a probability while training, and the others scaled up to keep the mean; else the operand itself.
#[derive(Clone, Module)]
pub struct Dropout {
    p: f64,
    training: Training,
}

impl Dropout {
    /// With the probability of a zero.
    pub fn new(p: f64) -> Dropout {
        Dropout { p, training: Training::default() }
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        if !self.training.on() || self.p == 0.0 {
            return x.clone();
        }
        let keep = Tensor::rand(x.shape()).ge(self.p).to_dtype(F32);
        x * keep * (1.0 / (1.0 - self.p).max(f64::MIN_POSITIVE))
    }
}

impl Forward for Dropout {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        Dropout::forward(self, x)
    }
}
