//! `Acos`, `Asin`, `Atan`: all by the angle of a point in the first quadrant, which a polynomial gives after a turn by 45
//! or 90 degrees. Narrow floats are computed in f32 and rounded once.

use super::activation::{like, odd, polynomial, scaled, unary};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, Div, Lt, Mul, Neg, Select, Sqrt, Sub};
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[
    ("Acos", 7, ANY, |cx| unary(cx, acos)),
    ("Asin", 7, ANY, |cx| unary(cx, asin)),
    ("Atan", 7, ANY, |cx| unary(cx, atan)),
];

/// `(atan(q) / q - 1) / z` as a polynomial in `z = q * q`, for `q` up to tan(pi/8): interpolated at Chebyshev nodes, with
/// an absolute error of 2e-19.
const FINE: [f64; 12] = [
    -0.333_333_333_333_333_3,
    0.199_999_999_999_998_04,
    -0.142_857_142_856_597_8,
    0.111_111_111_051_505_88,
    -0.090_909_087_532_591_12,
    0.076_922_963_680_422_96,
    -0.066_664_247_602_005_2,
    0.058_789_275_544_738_07,
    -0.052_304_436_406_869_48,
    0.045_515_447_340_221_615,
    -0.034_569_315_063_326_09,
    0.016_284_375_050_043_393,
];

/// The same with an error of 8e-11.
const COARSE: [f64; 6] = [
    -0.333_333_332_792_245_4,
    0.199_999_772_482_335_3,
    -0.142_841_506_297_302_88,
    0.110_713_545_712_013_51,
    -0.086_245_982_151_961_26,
    0.050_479_374_320_400_91,
];

fn atan(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let (a, one) = (cx.op(Abs {}, &[x])?, like(cx, x, 1.0)?);
    let y = angle(cx, a, one)?;
    odd(cx, x, y)
}

/// The point is `(sqrt(1 - x^2), x)`.
fn asin(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let (a, one) = (cx.op(Abs {}, &[x])?, like(cx, x, 1.0)?);
    let (less, more) = (cx.op(Sub {}, &[one, a])?, cx.op(Add {}, &[one, a])?);
    let square = cx.op(Mul {}, &[less, more])?;
    let w = cx.op(Sqrt {}, &[square])?;
    let y = angle(cx, a, w)?;
    odd(cx, x, y)
}

/// Twice the angle of `(sqrt(1 + x), sqrt(1 - x))`, which is exact near both ends.
fn acos(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let one = like(cx, x, 1.0)?;
    let (less, more) = (cx.op(Sub {}, &[one, x])?, cx.op(Add {}, &[one, x])?);
    let (y, w) = (cx.op(Sqrt {}, &[less])?, cx.op(Sqrt {}, &[more])?);
    let half = angle(cx, y, w)?;
    scaled(cx, half, 2.0)
}

/// The angle of the point `(w, y)`, neither of them negative. NaN in either gives NaN.
fn angle(cx: &mut NodeCx<'_, '_>, y: Value, w: Value) -> Res<Value> {
    let eighth = FRAC_PI_4 / 2.0;
    let (low, high) = (scaled(cx, w, eighth.tan())?, scaled(cx, w, (3.0 * eighth).tan())?);
    let (mid, steep) = (cx.op(Lt {}, &[low, y])?, cx.op(Lt {}, &[high, y])?);
    let (back, sub, sum) = (cx.op(Neg {}, &[w])?, cx.op(Sub {}, &[y, w])?, cx.op(Add {}, &[y, w])?);
    let (right, half, zero) = (like(cx, y, FRAC_PI_2)?, like(cx, y, FRAC_PI_4)?, like(cx, y, 0.0)?);
    let pick = |cx: &mut NodeCx<'_, '_>, of: [Value; 3]| {
        let rest = cx.op(Select {}, &[mid, of[1], of[2]])?;
        cx.op(Select {}, &[steep, of[0], rest])
    };
    // comparisons with NaN are false, so NaN stays in y / w
    let (num, den) = (pick(cx, [back, sub, y])?, pick(cx, [y, sum, w])?);
    let turn = pick(cx, [right, half, zero])?;
    let q = cx.op(Div {}, &[num, den])?;
    let z = cx.op(Mul {}, &[q, q])?;
    let series: &[f64] = if cx.dtype(y) == DType::F64 { &FINE } else { &COARSE };
    let p = polynomial(cx, z, series)?;
    let p = cx.op(Mul {}, &[p, z])?;
    let p = cx.op(Mul {}, &[p, q])?;
    let p = cx.op(Add {}, &[q, p])?;
    cx.op(Add {}, &[turn, p])
}
