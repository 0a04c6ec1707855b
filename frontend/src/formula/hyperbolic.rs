//! The hyperbolic functions and their inverses, as formulas that keep their digits near 0 and do not overflow before the
//! result does.

use super::logarithm::log_1p;
use super::{Build, R, like, odd, polynomial, scaled};
use std::f64::consts::LN_2;
use tgc_ir::ops::{Abs, Add, Div, Eq, Exp, Log, Lt, Min, Mul, Select, Sqrt, Sub};
use tgc_ir::types::DType;

/// `(sinh(x) / x - 1) / z` as a power series in `z = x * x`: 1/3!, 1/5! and so on.
const SINH: [f64; 9] = [
    1.0 / 6.0,
    1.0 / 120.0,
    1.0 / 5_040.0,
    1.0 / 362_880.0,
    1.0 / 39_916_800.0,
    1.0 / 6_227_020_800.0,
    1.0 / 1_307_674_368_000.0,
    1.0 / 355_687_428_096_000.0,
    1.0 / 121_645_100_408_832_000.0,
];

/// Where 1 is lost beside x^2, so that `x + sqrt(x^2 + 1)` is `2 * x`.
fn beyond<B: Build>(b: &B, x: B::V) -> f64 {
    if b.dtype(x) == DType::F64 { (1u64 << 28) as f64 } else { 8192.0 }
}

pub(crate) fn sinh<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let (a, one) = (b.op(Abs {}, &[x])?, like(b, x, 1.0)?);
    let large = exponentials(b, a, |b, up, down| b.op(Sub {}, &[up, down]))?;
    let z = b.op(Mul {}, &[a, a])?;
    let terms = if b.dtype(x) == DType::F64 { SINH.len() } else { 5 };
    let p = polynomial(b, z, &SINH[..terms])?;
    let p = b.op(Mul {}, &[p, z])?;
    let p = b.op(Mul {}, &[p, a])?;
    let near = b.op(Add {}, &[a, p])?;
    let inside = b.op(Lt {}, &[a, one])?;
    let y = b.op(Select {}, &[inside, near, large])?;
    odd(b, x, y)
}

pub(crate) fn cosh<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let a = b.op(Abs {}, &[x])?;
    exponentials(b, a, |b, up, down| b.op(Add {}, &[up, down]))
}

/// `f(exp(a) / 2, exp(-a) / 2)`; where exp(a) may overflow though its half does not, only the first, by `exp(a / 2)`.
fn exponentials<B: Build>(b: &mut B, a: B::V, f: impl FnOnce(&mut B, B::V, B::V) -> R<B>) -> R<B> {
    let limit = like(b, a, if b.dtype(a) == DType::F64 { 700.0 } else { 80.0 })?;
    let half = like(b, a, 0.5)?;
    let big = b.op(Lt {}, &[limit, a])?;
    let less = scaled(b, a, 0.5)?;
    let arg = b.op(Select {}, &[big, less, a])?;
    let e = b.op(Exp {}, &[arg])?;
    let (up, down) = (scaled(b, e, 0.5)?, b.op(Div {}, &[half, e])?);
    let whole = b.op(Mul {}, &[up, e])?;
    let y = f(b, up, down)?;
    b.op(Select {}, &[big, whole, y])
}

/// `log(2 a)` where `a` is beyond the limit, else `log(1 + e)`.
fn log_sum<B: Build>(b: &mut B, a: B::V, e: B::V) -> R<B> {
    let (limit, two) = (like(b, a, beyond(b, a))?, like(b, a, LN_2)?);
    let far = b.op(Lt {}, &[limit, a])?;
    let l = b.op(Log {}, &[a])?;
    let l = b.op(Add {}, &[l, two])?;
    let near = log_1p(b, e)?;
    b.op(Select {}, &[far, l, near])
}

/// `log(1 + e)` with `e = a + a^2 / (1 + sqrt(1 + a^2))`.
pub(crate) fn asinh<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let (a, one) = (b.op(Abs {}, &[x])?, like(b, x, 1.0)?);
    let limit = like(b, x, beyond(b, x))?;
    let m = b.op(Min {}, &[a, limit])?;
    let z = b.op(Mul {}, &[m, m])?;
    let r = b.op(Add {}, &[z, one])?;
    let r = b.op(Sqrt {}, &[r])?;
    let r = b.op(Add {}, &[r, one])?;
    let q = b.op(Div {}, &[z, r])?;
    let e = b.op(Add {}, &[m, q])?;
    let y = log_sum(b, a, e)?;
    odd(b, x, y)
}

/// `log(1 + e)` with `e = t + sqrt(t) * sqrt(t + 2)` and `t = x - 1`; the roots make it NaN below 1.
pub(crate) fn acosh<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let (one, two) = (like(b, x, 1.0)?, like(b, x, 2.0)?);
    let limit = like(b, x, beyond(b, x))?;
    let m = b.op(Min {}, &[x, limit])?;
    let t = b.op(Sub {}, &[m, one])?;
    let s = b.op(Add {}, &[t, two])?;
    let (r, s) = (b.op(Sqrt {}, &[t])?, b.op(Sqrt {}, &[s])?);
    let r = b.op(Mul {}, &[r, s])?;
    let e = b.op(Add {}, &[t, r])?;
    log_sum(b, x, e)
}

/// `log(1 + 2 a / (1 - a)) / 2`, infinite at 1 and NaN beyond.
pub(crate) fn atanh<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let (a, one) = (b.op(Abs {}, &[x])?, like(b, x, 1.0)?);
    let inf = like(b, x, f64::INFINITY)?;
    let (twice, rest) = (b.op(Add {}, &[a, a])?, b.op(Sub {}, &[one, a])?);
    let e = b.op(Div {}, &[twice, rest])?;
    let l = log_1p(b, e)?;
    let y = scaled(b, l, 0.5)?;
    let end = b.op(Eq {}, &[a, one])?;
    let y = b.op(Select {}, &[end, inf, y])?;
    odd(b, x, y)
}
