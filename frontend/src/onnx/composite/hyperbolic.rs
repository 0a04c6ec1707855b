//! `Sinh`, `Cosh` and the inverse functions `Asinh`, `Acosh`, `Atanh`, as formulas that keep their digits near 0 and do
//! not overflow before the result does. Narrow floats are computed in f32 and rounded once.

use super::activation::{like, log_1p, odd, polynomial, scaled, unary};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use std::f64::consts::LN_2;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, Div, Eq, Exp, Log, Lt, Min, Mul, Select, Sqrt, Sub};
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[
    ("Sinh", 9, ANY, |cx| unary(cx, sinh)),
    ("Cosh", 9, ANY, |cx| unary(cx, cosh)),
    ("Asinh", 9, ANY, |cx| unary(cx, asinh)),
    ("Acosh", 9, ANY, |cx| unary(cx, acosh)),
    ("Atanh", 9, ANY, |cx| unary(cx, atanh)),
];

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
fn beyond(cx: &NodeCx<'_, '_>, x: Value) -> f64 {
    if cx.dtype(x) == DType::F64 { (1u64 << 28) as f64 } else { 8192.0 }
}

fn sinh(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let (a, one) = (cx.op(Abs {}, &[x])?, like(cx, x, 1.0)?);
    let large = exponentials(cx, a, |cx, up, down| cx.op(Sub {}, &[up, down]))?;
    let z = cx.op(Mul {}, &[a, a])?;
    let terms = if cx.dtype(x) == DType::F64 { SINH.len() } else { 5 };
    let p = polynomial(cx, z, &SINH[..terms])?;
    let p = cx.op(Mul {}, &[p, z])?;
    let p = cx.op(Mul {}, &[p, a])?;
    let near = cx.op(Add {}, &[a, p])?;
    let inside = cx.op(Lt {}, &[a, one])?;
    let y = cx.op(Select {}, &[inside, near, large])?;
    odd(cx, x, y)
}

fn cosh(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let a = cx.op(Abs {}, &[x])?;
    exponentials(cx, a, |cx, up, down| cx.op(Add {}, &[up, down]))
}

/// `f(exp(a) / 2, exp(-a) / 2)`; where exp(a) may overflow though its half does not, only the first, by `exp(a / 2)`.
fn exponentials(
    cx: &mut NodeCx<'_, '_>,
    a: Value,
    f: impl FnOnce(&mut NodeCx<'_, '_>, Value, Value) -> Res<Value>,
) -> Res<Value> {
    let limit = like(cx, a, if cx.dtype(a) == DType::F64 { 700.0 } else { 80.0 })?;
    let half = like(cx, a, 0.5)?;
    let big = cx.op(Lt {}, &[limit, a])?;
    let less = scaled(cx, a, 0.5)?;
    let arg = cx.op(Select {}, &[big, less, a])?;
    let e = cx.op(Exp {}, &[arg])?;
    let (up, down) = (scaled(cx, e, 0.5)?, cx.op(Div {}, &[half, e])?);
    let whole = cx.op(Mul {}, &[up, e])?;
    let y = f(cx, up, down)?;
    cx.op(Select {}, &[big, whole, y])
}

/// `log(2 a)` where `a` is beyond the limit, else `log(1 + e)`.
fn log_sum(cx: &mut NodeCx<'_, '_>, a: Value, e: Value) -> Res<Value> {
    let (limit, two) = (like(cx, a, beyond(cx, a))?, like(cx, a, LN_2)?);
    let far = cx.op(Lt {}, &[limit, a])?;
    let l = cx.op(Log {}, &[a])?;
    let l = cx.op(Add {}, &[l, two])?;
    let near = log_1p(cx, e)?;
    cx.op(Select {}, &[far, l, near])
}

/// `log(1 + e)` with `e = a + a^2 / (1 + sqrt(1 + a^2))`.
fn asinh(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let (a, one) = (cx.op(Abs {}, &[x])?, like(cx, x, 1.0)?);
    let limit = like(cx, x, beyond(cx, x))?;
    let b = cx.op(Min {}, &[a, limit])?;
    let z = cx.op(Mul {}, &[b, b])?;
    let r = cx.op(Add {}, &[z, one])?;
    let r = cx.op(Sqrt {}, &[r])?;
    let r = cx.op(Add {}, &[r, one])?;
    let q = cx.op(Div {}, &[z, r])?;
    let e = cx.op(Add {}, &[b, q])?;
    let y = log_sum(cx, a, e)?;
    odd(cx, x, y)
}

/// `log(1 + e)` with `e = t + sqrt(t) * sqrt(t + 2)` and `t = x - 1`; the roots make it NaN below 1.
fn acosh(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let (one, two) = (like(cx, x, 1.0)?, like(cx, x, 2.0)?);
    let limit = like(cx, x, beyond(cx, x))?;
    let b = cx.op(Min {}, &[x, limit])?;
    let t = cx.op(Sub {}, &[b, one])?;
    let s = cx.op(Add {}, &[t, two])?;
    let (r, s) = (cx.op(Sqrt {}, &[t])?, cx.op(Sqrt {}, &[s])?);
    let r = cx.op(Mul {}, &[r, s])?;
    let e = cx.op(Add {}, &[t, r])?;
    log_sum(cx, x, e)
}

/// `log(1 + 2 a / (1 - a)) / 2`, infinite at 1 and NaN beyond.
fn atanh(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let (a, one) = (cx.op(Abs {}, &[x])?, like(cx, x, 1.0)?);
    let inf = like(cx, x, f64::INFINITY)?;
    let (twice, rest) = (cx.op(Add {}, &[a, a])?, cx.op(Sub {}, &[one, a])?);
    let e = cx.op(Div {}, &[twice, rest])?;
    let l = log_1p(cx, e)?;
    let y = scaled(cx, l, 0.5)?;
    let end = cx.op(Eq {}, &[a, one])?;
    let y = cx.op(Select {}, &[end, inf, y])?;
    odd(cx, x, y)
}
