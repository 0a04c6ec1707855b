//! Tensors from nothing: filled, counted, random. Filled and counted ones are recorded in a trace and may have symbolic
//! sizes; random ones are values, so in a trace they are constants.

use super::shape::ir_sizes;
use crate::nn::dim::{Dim, IntoShape};
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::random::Stream;
use crate::nn::tensor::{Operand, Tensor};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops::{Constant, Iota};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor as Data;
use tgc_ir::types::DType;

type At = &'static Location<'static>;

#[track_caller]
fn filled(shape: &[Dim], value: Scalar, at: At) -> Tensor {
    match ir_sizes(shape, at) {
        Some(shape) => {
            let value = Data::from_scalars(value.dtype, &[], [value]);
            apply(Constant { value, shape: Some(shape) }, &[], at)
        }
        None => Tensor::FAILED,
    }
}

#[track_caller]
fn random(shape: impl IntoShape, what: &str, at: At, f: impl Fn(&Stream, usize) -> f64) -> Tensor {
    let shape = shape.into_shape();
    let known: Option<Vec<usize>> =
        shape.iter().map(|d| d.as_known().and_then(|n| usize::try_from(n).ok())).collect();
    let Some(known) = known else {
        let m = format!("{what} takes a known shape, not {shape:?}");
        report(
            Diag::error("E-NN-067", m).help("random numbers of a trace are constants: give fixed sizes"),
            at,
        );
        return Tensor::FAILED;
    };
    let s = Stream::next_call();
    let n: usize = known.iter().product();
    let all = (0..n).map(|i| Scalar::from_f64(DType::F32, f(&s, i)));
    Tensor::from(Data::from_scalars(DType::F32, &known, all))
}

impl Tensor {
    /// A tensor of zeros.
    #[track_caller]
    pub fn zeros(shape: impl IntoShape, dtype: DType) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(dtype, 0.0), Location::caller())
    }

    /// A tensor of ones.
    #[track_caller]
    pub fn ones(shape: impl IntoShape, dtype: DType) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(dtype, 1.0), Location::caller())
    }

    /// A tensor of one value.
    #[track_caller]
    pub fn full(shape: impl IntoShape, value: f64, dtype: DType) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(dtype, value), Location::caller())
    }

    /// Zeros of another tensor's type.
    #[track_caller]
    pub fn zeros_like(&self) -> Tensor {
        filled(&self.shape(), Scalar::from_f64(self.dtype(), 0.0), Location::caller())
    }

    /// Ones of another tensor's type.
    #[track_caller]
    pub fn ones_like(&self) -> Tensor {
        filled(&self.shape(), Scalar::from_f64(self.dtype(), 1.0), Location::caller())
    }

    /// The integers 0, 1 .. below `end`, in i64.
    #[track_caller]
    pub fn arange(end: impl Into<Dim>) -> Tensor {
        let at = Location::caller();
        match ir_sizes(&[end.into()], at) {
            Some(shape) => apply(Iota { axis: 0, shape, dtype: DType::I64 }, &[], at),
            None => Tensor::FAILED,
        }
    }

    /// The integers from `start` on, below `end`, in i64.
    #[track_caller]
    pub fn arange_from(start: impl Into<Dim>, end: impl Into<Dim>) -> Tensor {
        let (start, end) = (start.into(), end.into());
        let line = Tensor::arange(end - start);
        let start = start.operand(&line);
        line + start
    }

    /// Normal random numbers with mean 0 and deviation 1, in f32.
    #[track_caller]
    pub fn randn(shape: impl IntoShape) -> Tensor {
        random(shape, "randn", Location::caller(), Stream::normal)
    }

    /// Uniform random numbers in [0, 1), in f32.
    #[track_caller]
    pub fn rand(shape: impl IntoShape) -> Tensor {
        random(shape, "rand", Location::caller(), Stream::uniform)
    }

    /// Uniform random integers in `low..high`, in i64.
    #[track_caller]
    pub fn randint(low: i64, high: i64, shape: impl IntoShape) -> Tensor {
        let at = Location::caller();
        if low >= high {
            report(Diag::error("E-NN-073", format!("randint from {low} to {high} has no numbers")), at);
            return Tensor::FAILED;
        }
        let span = high.wrapping_sub(low) as u64;
        let pick =
            |s: &Stream, i: usize| ((u128::from(s.word(i)) * u128::from(span)) >> 64) as f64 + low as f64;
        random(shape, "randint", at, pick).to_dtype(DType::I64)
    }
}
