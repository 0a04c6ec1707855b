//! The complementary error function and the inverse error function, which compute in f64, whatever the operand, since
//! `e^(-x^2)` and `1 - x` need the digits; and functions of two operands.

use super::logarithm::log_1p;
use super::{Build, R, like, negative, odd, polynomial, scaled};
use std::f64::consts::{FRAC_2_SQRT_PI, PI};
use tgc_ir::ops::{
    Abs, Add, And, Div, Eq, Erf, Exp, IsNan, Log, Lt, Max, Min, Mul, Neg, Or, Select, Sqrt, Sub,
};
use tgc_ir::types::DType;

/// `(1 + 2 x) e^(x^2) erfc(x)` for x from 0 to 28, as a polynomial in `(x - 4) / (x + 4)`: interpolated at Chebyshev
/// nodes, with a relative error of 2e-18.
const SCALED: [f64; 24] = [
    1.232_995_118_625_552_6,
    -0.139_621_116_840_562_53,
    0.015_379_652_102_619_558,
    0.068_097_054_254_693_23,
    -0.101_039_066_036_294_59,
    0.093_732_834_998_330_23,
    -0.066_330_365_812_409_5,
    0.037_167_515_537_770_26,
    -0.016_197_734_055_994_49,
    0.005_031_969_975_753_176,
    -0.000_757_773_297_366_914_7,
    -0.000_199_256_684_323_891_53,
    0.000_150_621_697_046_783_55,
    -2.439_924_428_312_988e-5,
    -1.122_204_631_666_900_5e-5,
    5.709_784_760_966_506e-6,
    2.937_785_494_344_377_6e-7,
    -8.254_699_744_871_162e-7,
    7.471_952_780_500_971e-8,
    1.100_599_619_864_005_7e-7,
    -1.799_947_545_903_142e-8,
    -1.409_198_282_255_575_5e-8,
    1.868_487_385_473_519e-9,
    1.263_782_858_042_137e-9,
];

/// Beyond it erfc is 0 in every type.
const END: f64 = 28.0;

/// `1 - erf(x)`.
pub(crate) fn erfc<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let d = b.dtype(x);
    let x = b.cast(x, DType::F64)?;
    let a = b.op(Abs {}, &[x])?;
    let tail = upper(b, a)?;
    let (zero, two) = (like(b, x, 0.0)?, like(b, x, 2.0)?);
    let (below, rest) = (b.op(Lt {}, &[x, zero])?, b.op(Sub {}, &[two, tail])?);
    let y = b.op(Select {}, &[below, rest, tail])?;
    b.cast(y, d)
}

/// `erfc(a)` for f64 `a` that is not negative. `a^2` is split, the square of its leading digits being exact.
fn upper<B: Build>(b: &mut B, a: B::V) -> R<B> {
    let end = like(b, a, END)?;
    let a = b.op(Min {}, &[a, end])?;
    let head = b.cast(a, DType::F32)?;
    let head = b.cast(head, DType::F64)?;
    let (less, more) = (b.op(Sub {}, &[head, a])?, b.op(Add {}, &[head, a])?);
    let (square, rest) = (b.op(Mul {}, &[head, head])?, b.op(Mul {}, &[less, more])?);
    let square = b.op(Neg {}, &[square])?;
    let (e, f) = (b.op(Exp {}, &[square])?, b.op(Exp {}, &[rest])?);
    let e = b.op(Mul {}, &[e, f])?;
    let (four, one) = (like(b, a, 4.0)?, like(b, a, 1.0)?);
    let (num, den) = (b.op(Sub {}, &[a, four])?, b.op(Add {}, &[a, four])?);
    let z = b.op(Div {}, &[num, den])?;
    let p = polynomial(b, z, &SCALED)?;
    let p = b.op(Mul {}, &[p, e])?;
    let twice = b.op(Add {}, &[a, a])?;
    let den = b.op(Add {}, &[twice, one])?;
    b.op(Div {}, &[p, den])
}

/// `y` with `erf(y) = x`: an estimate and two steps of Halley's method, infinite at 1 and NaN beyond.
pub(crate) fn erfinv<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let d = b.dtype(x);
    let x = b.cast(x, DType::F64)?;
    let (a, one) = (b.op(Abs {}, &[x])?, like(b, x, 1.0)?);
    let (half, inf) = (like(b, x, 0.5)?, like(b, x, f64::INFINITY)?);
    let rest = b.op(Sub {}, &[one, a])?;
    let inner = b.op(Lt {}, &[a, half])?;
    let (near, far) = (estimate_near(b, a)?, estimate_far(b, a)?);
    let mut y = b.op(Select {}, &[inner, near, far])?;
    for _ in 0..2 {
        // near 1 the tail is compared, which keeps the digits of 1 - x
        let (e, t) = (b.op(Erf {}, &[y])?, upper(b, y)?);
        let (low, high) = (b.op(Sub {}, &[e, a])?, b.op(Sub {}, &[rest, t])?);
        let off = b.op(Select {}, &[inner, low, high])?;
        let square = b.op(Mul {}, &[y, y])?;
        let slope = b.op(Exp {}, &[square])?;
        let u = b.op(Mul {}, &[off, slope])?;
        let u = scaled(b, u, 1.0 / FRAC_2_SQRT_PI)?;
        let bend = b.op(Mul {}, &[u, y])?;
        let bend = b.op(Add {}, &[bend, one])?;
        let step = b.op(Div {}, &[u, bend])?;
        y = b.op(Sub {}, &[y, step])?;
    }
    let end = b.op(Eq {}, &[a, one])?;
    let y = b.op(Select {}, &[end, inf, y])?;
    let y = odd(b, x, y)?;
    b.cast(y, d)
}

/// The first terms of the power series.
fn estimate_near<B: Build>(b: &mut B, a: B::V) -> R<B> {
    let series = [1.0, PI / 12.0, 7.0 * PI * PI / 480.0, 127.0 * PI * PI * PI / 40_320.0];
    let z = b.op(Mul {}, &[a, a])?;
    let p = polynomial(b, z, &series)?;
    let y = b.op(Mul {}, &[p, a])?;
    scaled(b, y, 1.0 / FRAC_2_SQRT_PI)
}

/// The inverse of Winitzki's approximation of erf, within 1%.
fn estimate_far<B: Build>(b: &mut B, a: B::V) -> R<B> {
    const A: f64 = 0.147;
    let square = b.op(Mul {}, &[a, a])?;
    let minus = b.op(Neg {}, &[square])?;
    let l = log_1p(b, minus)?;
    let (shift, half) = (like(b, a, 2.0 / (PI * A))?, scaled(b, l, 0.5)?);
    let s = b.op(Add {}, &[shift, half])?;
    let (t, q) = (b.op(Mul {}, &[s, s])?, scaled(b, l, 1.0 / A)?);
    let r = b.op(Sub {}, &[t, q])?;
    let r = b.op(Sqrt {}, &[r])?;
    let r = b.op(Sub {}, &[r, s])?;
    b.op(Sqrt {}, &[r])
}

/// `sqrt(x^2 + y^2)`: the greater size times the root of 1 + the square of the ratio.
pub(crate) fn hypot<B: Build>(b: &mut B, x: B::V, y: B::V) -> R<B> {
    let (p, q) = (b.op(Abs {}, &[x])?, b.op(Abs {}, &[y])?);
    let (most, least) = (b.op(Max {}, &[p, q])?, b.op(Min {}, &[p, q])?);
    let (zero, one, inf) = (like(b, x, 0.0)?, like(b, x, 1.0)?, like(b, x, f64::INFINITY)?);
    let none = b.op(Eq {}, &[most, zero])?;
    let safe = b.op(Select {}, &[none, one, most])?;
    let r = b.op(Div {}, &[least, safe])?;
    let z = b.op(Mul {}, &[r, r])?;
    let z = b.op(Add {}, &[z, one])?;
    let z = b.op(Sqrt {}, &[z])?;
    let y = b.op(Mul {}, &[z, most])?;
    // infinite if one is, though the other were NaN
    let (p, q) = (b.op(Eq {}, &[p, inf])?, b.op(Eq {}, &[q, inf])?);
    let far = b.op(Or {}, &[p, q])?;
    b.op(Select {}, &[far, inf, y])
}

/// `|x|` with the sign of `y`.
pub(crate) fn copysign<B: Build>(b: &mut B, x: B::V, y: B::V) -> R<B> {
    let size = b.op(Abs {}, &[x])?;
    let (minus, below) = (b.op(Neg {}, &[size])?, negative(b, y)?);
    b.op(Select {}, &[below, minus, size])
}

/// `x * log(y)`, 0 where x is 0 and y is a number.
pub(crate) fn xlogy<B: Build>(b: &mut B, x: B::V, y: B::V) -> R<B> {
    let zero = like(b, x, 0.0)?;
    let l = b.op(Log {}, &[y])?;
    let product = b.op(Mul {}, &[x, l])?;
    let none = b.op(Eq {}, &[x, zero])?;
    let z = b.op(Select {}, &[none, zero, product])?;
    let nan = b.op(IsNan {}, &[y])?;
    b.op(Select {}, &[nan, y, z])
}

/// `log(e^x + e^y)`.
pub(crate) fn log_add_exp<B: Build>(b: &mut B, x: B::V, y: B::V) -> R<B> {
    let (most, least) = (b.op(Max {}, &[x, y])?, b.op(Min {}, &[x, y])?);
    let gap = b.op(Sub {}, &[least, most])?;
    let e = b.op(Exp {}, &[gap])?;
    let l = log_1p(b, e)?;
    let sum = b.op(Add {}, &[most, l])?;
    // the gap of equal infinities is no number
    let (size, inf) = (b.op(Abs {}, &[x])?, like(b, x, f64::INFINITY)?);
    let (same, far) = (b.op(Eq {}, &[x, y])?, b.op(Eq {}, &[size, inf])?);
    let both = b.op(And {}, &[same, far])?;
    b.op(Select {}, &[both, x, sum])
}
