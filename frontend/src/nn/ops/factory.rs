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

    /// [`Tensor::zeros`]: there is no memory without values.
    #[track_caller]
    pub fn empty(shape: impl IntoShape, dtype: DType) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(dtype, 0.0), Location::caller())
    }

    /// Zeros of another tensor's type.
    #[track_caller]
    pub fn empty_like(&self) -> Tensor {
        self.zeros_like()
    }

    /// One value in another tensor's type.
    #[track_caller]
    pub fn full_like(&self, value: f64) -> Tensor {
        filled(&self.shape(), Scalar::from_f64(self.dtype(), value), Location::caller())
    }

    /// Uniform random numbers of another tensor's type, whose shape must be known.
    #[track_caller]
    pub fn rand_like(&self) -> Tensor {
        random(self.shape(), "rand_like", Location::caller(), Stream::uniform).to_dtype(self.dtype())
    }

    /// Normal random numbers of another tensor's type, whose shape must be known.
    #[track_caller]
    pub fn randn_like(&self) -> Tensor {
        random(self.shape(), "randn_like", Location::caller(), Stream::normal).to_dtype(self.dtype())
    }

    /// Uniform random integers in `low..high` in another tensor's type, whose shape must be known.
    #[track_caller]
    pub fn randint_like(&self, low: i64, high: i64) -> Tensor {
        Tensor::randint(low, high, self.shape()).to_dtype(self.dtype())
    }

    /// 1 with each element's probability, else 0.
    #[track_caller]
    pub fn bernoulli(&self) -> Tensor {
        let d = self.dtype();
        self.rand_like().lt(self).to_dtype(d)
    }

    /// Normal random numbers with a mean and a deviation, in f32.
    #[track_caller]
    pub fn normal(mean: f64, std: f64, shape: impl IntoShape) -> Tensor {
        random(shape, "normal", Location::caller(), move |s, i| s.normal(i) * std + mean)
    }

    /// The integers below `n` in random order, in i64.
    #[track_caller]
    pub fn randperm(n: usize) -> Tensor {
        let s = Stream::next_call();
        let mut all: Vec<i64> = (0..n as i64).collect();
        for i in (1..n).rev() {
            let pick = (u128::from(s.word(i)) * (i as u128 + 1)) >> 64;
            all.swap(i, pick as usize);
        }
        Tensor::from(all)
    }

    /// `n` ones on the diagonal of a matrix [n, n].
    #[track_caller]
    pub fn eye(n: impl Into<Dim>, dtype: DType) -> Tensor {
        let n = n.into();
        Tensor::eye_of(n, n, dtype)
    }

    /// Ones on the diagonal of a matrix [rows, columns]: `torch.eye(n, m)`.
    #[track_caller]
    pub fn eye_of(rows: impl Into<Dim>, columns: impl Into<Dim>, dtype: DType) -> Tensor {
        let (rows, columns) = (rows.into(), columns.into());
        Tensor::arange(rows).unsqueeze(1).eq(Tensor::arange(columns).unsqueeze(0)).to_dtype(dtype)
    }

    /// The integers from `start` on, `step` apart, before `end`, in i64.
    #[track_caller]
    pub fn arange_step(start: impl Into<Dim>, end: impl Into<Dim>, step: i64) -> Tensor {
        let at = Location::caller();
        let (start, end) = (start.into(), end.into());
        if step == 0 {
            report(
                Diag::error("E-NN-079", "arange_step by 0").help("give a step of 1 or more, or -1 or less"),
                at,
            );
            return Tensor::FAILED;
        }
        let span = if step > 0 { end - start } else { start - end };
        let by = step.unsigned_abs();
        let count = ((span + by) - 1) / by;
        if span.as_known().is_some_and(|n| n < 0) {
            let d = Diag::error("E-NN-079", format!("arange_step from {start} to {end} by {step}"));
            report(d.help("a step of the other sign leads there"), at);
            return Tensor::FAILED;
        }
        let line = Tensor::arange(count).mul(step);
        let start = start.operand(&line);
        line + start
    }

    /// `steps` numbers from `start` to `end`, both included, evenly spaced, in f32.
    #[track_caller]
    pub fn linspace(start: f64, end: f64, steps: usize) -> Tensor {
        Tensor::from(spaced(start, end, steps).into_iter().map(|x| x as f32).collect::<Vec<f32>>())
    }

    /// `steps` powers of `base`, the exponents from `start` to `end` evenly spaced, in f32. PyTorch's default is 10.
    #[track_caller]
    pub fn logspace(start: f64, end: f64, steps: usize, base: f64) -> Tensor {
        Tensor::from(spaced(start, end, steps).into_iter().map(|x| base.powf(x) as f32).collect::<Vec<f32>>())
    }

    /// Row and column indices of the lower triangle of a matrix up to its `offset`-th diagonal, i64 [2, n].
    #[track_caller]
    pub fn tril_indices(rows: usize, columns: usize, offset: i64) -> Tensor {
        triangle(rows, columns, |r, c| c - r <= offset)
    }

    /// Row and column indices of the upper triangle of a matrix from its `offset`-th diagonal on, i64 [2, n].
    #[track_caller]
    pub fn triu_indices(rows: usize, columns: usize, offset: i64) -> Tensor {
        triangle(rows, columns, |r, c| c - r >= offset)
    }

    /// Zeros of another shape in this tensor's element type.
    #[track_caller]
    pub fn new_zeros(&self, shape: impl IntoShape) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(self.dtype(), 0.0), Location::caller())
    }

    /// Ones of another shape in this tensor's element type.
    #[track_caller]
    pub fn new_ones(&self, shape: impl IntoShape) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(self.dtype(), 1.0), Location::caller())
    }

    /// One value of another shape in this tensor's element type.
    #[track_caller]
    pub fn new_full(&self, shape: impl IntoShape, value: f64) -> Tensor {
        filled(&shape.into_shape(), Scalar::from_f64(self.dtype(), value), Location::caller())
    }

    /// Powers of a vector's elements as columns, `n` of them, the greatest first unless `increasing`.
    #[track_caller]
    pub fn vander(&self, n: usize, increasing: bool) -> Tensor {
        let up = Tensor::arange(n);
        let powers = if increasing { up } else { up.flip(&[0]) };
        self.unsqueeze(-1).pow(powers.to_dtype(self.dtype()))
    }
}

/// From both ends inward, so that the last one is exact.
fn spaced(start: f64, end: f64, steps: usize) -> Vec<f64> {
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    let at = |i: usize| {
        if i < steps / 2 || steps == 1 {
            start + step * i as f64
        } else {
            end - step * (steps - 1 - i) as f64
        }
    };
    (0..steps).map(at).collect()
}

fn triangle(rows: usize, columns: usize, keep: impl Fn(i64, i64) -> bool) -> Tensor {
    let places = (0..rows as i64).flat_map(|r| (0..columns as i64).map(move |c| (r, c)));
    let (r, c): (Vec<i64>, Vec<i64>) = places.filter(|(r, c)| keep(*r, *c)).unzip();
    let n = r.len();
    Tensor::from(Data::from_ints(DType::I64, &[2, n], &[r, c].concat()))
}
