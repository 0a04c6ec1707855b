//! Padding.

use super::{At, refuse};
use crate::nn::dim::Dim;
use crate::nn::exec::apply;
use crate::nn::ops::shape::{ir_sizes, sliced};
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::scalar::Scalar;

/// What stands beyond the ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PadMode {
    /// A number.
    Constant(f64),
    /// The elements mirrored at the end, which itself is not repeated.
    Reflect,
    /// The element at the end.
    Replicate,
    /// The elements from the other end.
    Circular,
}

/// Elements added around; `pads` holds two numbers an axis, before and after, for the last axis first, as PyTorch has
/// them. Negative numbers cut.
#[track_caller]
pub fn pad(x: &Tensor, pads: &[i64], mode: PadMode) -> Tensor {
    let at = Location::caller();
    if x.failed() {
        return Tensor::FAILED;
    }
    let rank = x.dim();
    if !pads.len().is_multiple_of(2) || pads.len() / 2 > rank {
        let m = format!("pad by {pads:?} of {x:#}");
        let help = "give two numbers an axis, before and after, for the last axis first";
        return refuse("E-NN-088", m, help, at);
    }
    let mut y = x.clone();
    for (i, side) in pads.chunks(2).enumerate() {
        y = along_axis(&y, rank - 1 - i, side[0], side[1], mode, at);
    }
    y
}

#[track_caller]
fn along_axis(x: &Tensor, axis: usize, before: i64, after: i64, mode: PadMode, at: At) -> Tensor {
    if x.failed() || (before == 0 && after == 0) {
        return x.clone();
    }
    if let PadMode::Constant(value) = mode {
        let mut y = x.clone();
        if before < 0 || after < 0 {
            let size = x.shape()[axis] + (before.min(0) + after.min(0));
            y = sliced(x, axis, Dim::from((-before).max(0)), size, 1, at);
        }
        return constant_around(&y, axis, before.max(0), after.max(0), value, at);
    }
    let n = x.shape()[axis];
    let most = match mode {
        PadMode::Reflect => n - 1,
        _ => n,
    };
    let wide = before.max(after);
    if mode != PadMode::Replicate && most.as_known().is_some_and(|m| wide > m) {
        let m = format!("pad by {before} and {after} with {mode:?} of an axis of {n} elements");
        return refuse("E-NN-088", m, &format!("at most {most} elements are there to repeat"), at);
    }
    let i = Tensor::arange(n + (before + after)) - before;
    let index = match mode {
        PadMode::Replicate => i.maximum(0).minimum(n - 1),
        PadMode::Circular => i.remainder(n),
        _ => {
            let period = ((n - 1) * 2).max(1);
            let i = i.remainder(period);
            let back = -(&i - period);
            i.minimum(back)
        }
    };
    apply(ops::Gather { axis: axis as i64 }, &[x, &index], at)
}

#[track_caller]
fn constant_around(x: &Tensor, axis: usize, before: i64, after: i64, value: f64, at: At) -> Tensor {
    if x.failed() || (before == 0 && after == 0) {
        return x.clone();
    }
    let value = Scalar::from_f64(x.dtype(), value);
    let zeros = vec![Dim::from(0); x.dim()];
    let (mut first, mut last) = (zeros.clone(), zeros);
    (first[axis], last[axis]) = (Dim::from(before), Dim::from(after));
    match (ir_sizes(&first, at), ir_sizes(&last, at)) {
        (Some(before), Some(after)) => apply(ops::Pad { before, after, value }, &[x], at),
        _ => Tensor::FAILED,
    }
}

/// Zeros before and after one axis.
#[track_caller]
pub(crate) fn zeros_around(x: &Tensor, axis: usize, before: i64, after: i64, at: At) -> Tensor {
    constant_around(x, axis, before, after, 0.0, at)
}
