//! Random zeros while training. The random numbers of a trace are constants, so a trace of training holds one mask.

use super::{any_failed, refuse};
use crate::nn::dim::Dim;
use crate::nn::tensor::Tensor;
use std::panic::Location;

/// Ones with probability `1 - p` and zeros, of a shape.
#[track_caller]
fn kept(shape: &[Dim], p: f64, like: &Tensor) -> Tensor {
    Tensor::rand(shape).ge(p).to_dtype(like.dtype())
}

/// Zeros with probability `p` while training, the rest scaled by `1 / (1 - p)`; else the operand itself.
#[track_caller]
pub fn dropout(x: &Tensor, p: f64, training: bool) -> Tensor {
    masked(x, p, training, x.dim())
}

/// As [`dropout`], whole channels at once: x is [n, c, space..], or [c, space..] for a rank below `rank`.
#[track_caller]
pub(crate) fn channel_dropout(x: &Tensor, p: f64, training: bool, rank: usize) -> Tensor {
    masked(x, p, training, if x.dim() < rank { 1 } else { 2 })
}

/// As [`dropout`], with one random number for all that is beyond the first `axes` axes.
#[track_caller]
fn masked(x: &Tensor, p: f64, training: bool, axes: usize) -> Tensor {
    let at = Location::caller();
    if !(0.0..=1.0).contains(&p) {
        return refuse("E-NN-091", format!("dropout with the probability {p}"), "give 0 to 1", at);
    }
    if any_failed(&[x]) || !training || p == 0.0 {
        return x.clone();
    }
    if p == 1.0 {
        return x * 0.0;
    }
    let mut shape = x.shape();
    for d in shape.iter_mut().skip(axes) {
        *d = Dim::from(1);
    }
    x * (kept(&shape, p, x) * (1.0 / (1.0 - p)))
}

macro_rules! channels {
    ($($name:ident $rank:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[track_caller]
        pub fn $name(x: &Tensor, p: f64, training: bool) -> Tensor {
            channel_dropout(x, p, training, $rank)
        }
    )* };
}
channels! {
    dropout1d 3 "[`dropout`] of whole channels of x [n, c, l] or [c, l].";
    dropout2d 4 "[`dropout`] of whole channels of x [n, c, h, w] or [c, h, w].";
    dropout3d 5 "[`dropout`] of whole channels of x [n, c, d, h, w] or [c, d, h, w].";
}

/// Dropout that keeps mean and variance of what SELU gives: dropped elements become its lowest value.
#[track_caller]
pub fn alpha_dropout(x: &Tensor, p: f64, training: bool) -> Tensor {
    let at = Location::caller();
    if !(0.0..=1.0).contains(&p) {
        return refuse("E-NN-091", format!("dropout with the probability {p}"), "give 0 to 1", at);
    }
    if any_failed(&[x]) || !training || p == 0.0 {
        return x.clone();
    }
    if p == 1.0 {
        return x * 0.0;
    }
    let low = -super::SELU_ALPHA * super::SELU_SCALE;
    let a = 1.0 / ((low * low * p + 1.0) * (1.0 - p)).sqrt();
    let keep = kept(&x.shape(), p, x);
    let dropped = (1.0 - &keep) * low;
    (x * keep + dropped) * a - a * low * p
}
