//! Functions of one operand, element by element. Functions of floats take integers as f32, as PyTorch does.

use super::arith::{cast, float, pair};
use super::tape::{Failed, Tape, V, computed, formula};
use crate::formula::{angle, hyperbolic, logarithm, special};
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

type At = &'static Location<'static>;

macro_rules! functions {
    ($($(#[$doc:meta])* pub fn $name:ident($x:ident, $at:ident) $body:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                let $at = Location::caller();
                let $x = self;
                $body
            }
        )* }
    };
}
functions! {
    /// `-x`.
    pub fn neg(x, at) apply(ops::Neg {}, &[x], at);
    /// `|x|`.
    pub fn abs(x, at) apply(ops::Abs {}, &[x], at);
    /// -1, 0 or 1; 0 for NaN.
    pub fn sign(x, at) match x.dtype() {
        DType::Bool => x.clone(),
        d if d.is_float() => x.isnan().where_(0, apply(ops::Sign {}, &[x], at)),
        _ => apply(ops::Sign {}, &[x], at),
    };
    /// `e^x`.
    pub fn exp(x, at) apply(ops::Exp {}, &[&float(x, at)], at);
    /// Natural logarithm.
    pub fn log(x, at) apply(ops::Log {}, &[&float(x, at)], at);
    /// Square root.
    pub fn sqrt(x, at) apply(ops::Sqrt {}, &[&float(x, at)], at);
    /// `1 / sqrt(x)`.
    pub fn rsqrt(x, at) apply(ops::Reciprocal {}, &[&apply(ops::Sqrt {}, &[&float(x, at)], at)], at);
    /// `1 / x`.
    pub fn reciprocal(x, at) apply(ops::Reciprocal {}, &[&float(x, at)], at);
    /// `x * x`.
    pub fn square(x, _at) x.mul(x);
    /// Sine.
    pub fn sin(x, at) apply(ops::Sin {}, &[&float(x, at)], at);
    /// Cosine.
    pub fn cos(x, at) apply(ops::Cos {}, &[&float(x, at)], at);
    /// Tangent.
    pub fn tan(x, at) apply(ops::Tan {}, &[&float(x, at)], at);
    /// Hyperbolic tangent.
    pub fn tanh(x, at) apply(ops::Tanh {}, &[&float(x, at)], at);
    /// `1 / (1 + e^-x)`.
    pub fn sigmoid(x, at) apply(ops::Sigmoid {}, &[&float(x, at)], at);
    /// Error function.
    pub fn erf(x, at) apply(ops::Erf {}, &[&float(x, at)], at);
    /// Greatest integer not above.
    pub fn floor(x, at) if x.dtype().is_float() { apply(ops::Floor {}, &[x], at) } else { x.clone() };
    /// Least integer not below.
    pub fn ceil(x, at) if x.dtype().is_float() { apply(ops::Ceil {}, &[x], at) } else { x.clone() };
    /// Nearest integer, halves to even.
    pub fn round(x, at) if x.dtype().is_float() { apply(ops::Round {}, &[x], at) } else { x.clone() };
    /// The integer part.
    pub fn trunc(x, at) match x.dtype().is_float() {
        true => {
            let (up, down) = (apply(ops::Ceil {}, &[x], at), apply(ops::Floor {}, &[x], at));
            x.lt(0).where_(up, down)
        }
        false => x.clone(),
    };
    /// [`Tensor::trunc`].
    pub fn fix(x, _at) x.trunc();
    /// What [`Tensor::trunc`] leaves.
    pub fn frac(x, _at) x.sub(x.trunc());
    /// [`Tensor::sign`]: there are no complex numbers.
    pub fn sgn(x, _at) x.sign();
    /// The tensor itself.
    pub fn positive(x, _at) x.clone();
    /// [`Tensor::neg`].
    pub fn negative(x, at) apply(ops::Neg {}, &[x], at);
    /// [`Tensor::abs`].
    pub fn absolute(x, at) apply(ops::Abs {}, &[x], at);
    /// `2^x`.
    pub fn exp2(x, at) { let x = float(x, at); pair(ops::Pow {}, &Tensor::number(x.dtype(), 2.0), &x, at) };
    /// `e^x - 1`, with the digits that the subtraction would lose near 0.
    pub fn expm1(x, at) via(x, at, logarithm::exp_m1);
    /// `log(1 + x)`, with the digits that the addition would lose near 0.
    pub fn log1p(x, at) via(x, at, logarithm::log_1p_any);
    /// Logarithm to the base 2, computed in f64: exact for powers of 2.
    pub fn log2(x, at) logarithm_to(x, std::f64::consts::LN_2, at);
    /// Logarithm to the base 10, computed in f64: exact for powers of 10.
    pub fn log10(x, at) logarithm_to(x, std::f64::consts::LN_10, at);
    /// Inverse sine, NaN outside -1 to 1.
    pub fn asin(x, at) via(x, at, angle::asin);
    /// Inverse cosine, NaN outside -1 to 1.
    pub fn acos(x, at) via(x, at, angle::acos);
    /// Inverse tangent.
    pub fn atan(x, at) via(x, at, angle::atan);
    /// Hyperbolic sine.
    pub fn sinh(x, at) via(x, at, hyperbolic::sinh);
    /// Hyperbolic cosine.
    pub fn cosh(x, at) via(x, at, hyperbolic::cosh);
    /// Inverse hyperbolic sine.
    pub fn asinh(x, at) via(x, at, hyperbolic::asinh);
    /// Inverse hyperbolic cosine, NaN below 1.
    pub fn acosh(x, at) via(x, at, hyperbolic::acosh);
    /// Inverse hyperbolic tangent, NaN outside -1 to 1.
    pub fn atanh(x, at) via(x, at, hyperbolic::atanh);
    /// [`Tensor::asin`].
    pub fn arcsin(x, _at) x.asin();
    /// [`Tensor::acos`].
    pub fn arccos(x, _at) x.acos();
    /// [`Tensor::atan`].
    pub fn arctan(x, _at) x.atan();
    /// [`Tensor::asinh`].
    pub fn arcsinh(x, _at) x.asinh();
    /// [`Tensor::acosh`].
    pub fn arccosh(x, _at) x.acosh();
    /// [`Tensor::atanh`].
    pub fn arctanh(x, _at) x.atanh();
    /// `1 - erf(x)`, with its digits where it is small. Computed in f64.
    pub fn erfc(x, at) via(x, at, special::erfc);
    /// The inverse of erf. Computed in f64.
    pub fn erfinv(x, at) via(x, at, special::erfinv);
    /// Degrees as radians.
    pub fn deg2rad(x, _at) x.mul(std::f64::consts::PI / 180.0);
    /// Radians as degrees.
    pub fn rad2deg(x, _at) x.mul(180.0 / std::f64::consts::PI);
    /// `sin(pi x) / (pi x)`, 1 at 0.
    pub fn sinc(x, at) {
        let d = float(x, at).dtype();
        let x = cast(x, computed(d), at).mul(std::f64::consts::PI);
        cast(&x.eq(0).where_(1.0, x.sin().div(&x)), d, at)
    };
    /// True where an element is NaN.
    pub fn isnan(x, at) match x.dtype().is_float() {
        true => apply(ops::IsNan {}, &[x], at),
        false => x.ne(x),
    };
    /// True where an element is infinite.
    pub fn isinf(x, at) match x.dtype().is_float() {
        true => apply(ops::Abs {}, &[x], at).eq(f64::INFINITY),
        false => x.ne(x),
    };
    /// True where an element is neither NaN nor infinite.
    pub fn isfinite(x, at) match x.dtype().is_float() {
        true => apply(ops::Abs {}, &[x], at).lt(f64::INFINITY),
        false => x.eq(x),
    };
    /// True where an element is minus infinity.
    pub fn isneginf(x, _at) if x.dtype().is_float() { x.eq(f64::NEG_INFINITY) } else { x.ne(x) };
    /// True where an element is plus infinity.
    pub fn isposinf(x, _at) if x.dtype().is_float() { x.eq(f64::INFINITY) } else { x.ne(x) };
    /// True where an element is negative or -0. Of NaN it is false.
    pub fn signbit(x, at) match x.dtype() {
        DType::Bool => x.ne(x),
        d if d.is_float() => formula(&[x], at, |t, x| crate::formula::negative(t, x[0])),
        _ => x.lt(0),
    };
}

impl Tensor {
    /// `log(x / (1 - x))`, of x cut to `eps ..= 1 - eps` if it is given.
    #[track_caller]
    pub fn logit(&self, eps: Option<f64>) -> Tensor {
        let at = Location::caller();
        let d = float(self, at).dtype();
        let mut x = cast(self, computed(d), at);
        if let Some(eps) = eps {
            x = x.clamp(eps, 1.0 - eps);
        }
        let y = x.div(1.0 - &x).log();
        cast(&y, d, at)
    }

    /// Numbers for NaN and the infinities: of those not given, 0 for NaN, and the type's greatest and lowest number.
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Tensor {
        let at = Location::caller();
        let d = self.dtype();
        if self.failed() || !d.is_float() {
            return self.clone();
        }
        let most = largest(d);
        let (up, down) = (posinf.unwrap_or(most), neginf.unwrap_or(-most));
        let x = self.eq(f64::INFINITY).where_(up, self);
        let x = x.eq(f64::NEG_INFINITY).where_(down, &x);
        apply(ops::IsNan {}, &[self], at).where_(nan, &x)
    }

    /// Rounded to this many decimals (before the point, if negative), halves to even: `torch.round(x, decimals=..)`.
    #[track_caller]
    pub fn round_to(&self, decimals: i32) -> Tensor {
        if !self.dtype().is_float() {
            return self.clone();
        }
        let scale = 10f64.powi(decimals.abs());
        if decimals < 0 { self.div(scale).round().mul(scale) } else { self.mul(scale).round().div(scale) }
    }
}

/// A formula of one operand, of which integers are taken as f32.
#[track_caller]
fn via(x: &Tensor, at: At, f: impl FnOnce(&mut Tape, V) -> Result<V, Failed>) -> Tensor {
    formula(&[&float(x, at)], at, |t, ins| f(t, ins[0]))
}

#[track_caller]
fn logarithm_to(x: &Tensor, ln: f64, at: At) -> Tensor {
    let x = float(x, at);
    let wide = cast(&x, DType::F64, at);
    let y = apply(ops::Log {}, &[&wide], at).div(ln);
    cast(&y, x.dtype(), at)
}

/// The greatest finite number of a float type.
fn largest(d: DType) -> f64 {
    match d {
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(f32::from_bits(0x7F7F_0000)),
        DType::F64 => f64::MAX,
        _ => f64::from(f32::MAX),
    }
}
