//! Angles: all by the angle of a point in the first quadrant, which a polynomial gives after a turn by 45 or 90 degrees.

use super::{Build, R, like, negative, odd, polynomial, scaled};
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
use tgc_ir::ops::{Abs, Add, And, Div, Eq, Lt, Max, Mul, Neg, Select, Sqrt, Sub};
use tgc_ir::types::DType;

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

pub(crate) fn atan<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let (a, one) = (b.op(Abs {}, &[x])?, like(b, x, 1.0)?);
    let y = angle(b, a, one)?;
    odd(b, x, y)
}

/// The point is `(sqrt(1 - x^2), x)`.
pub(crate) fn asin<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let (a, one) = (b.op(Abs {}, &[x])?, like(b, x, 1.0)?);
    let (less, more) = (b.op(Sub {}, &[one, a])?, b.op(Add {}, &[one, a])?);
    let square = b.op(Mul {}, &[less, more])?;
    let w = b.op(Sqrt {}, &[square])?;
    let y = angle(b, a, w)?;
    odd(b, x, y)
}

/// Twice the angle of `(sqrt(1 + x), sqrt(1 - x))`, which is exact near both ends.
pub(crate) fn acos<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let one = like(b, x, 1.0)?;
    let (less, more) = (b.op(Sub {}, &[one, x])?, b.op(Add {}, &[one, x])?);
    let (y, w) = (b.op(Sqrt {}, &[less])?, b.op(Sqrt {}, &[more])?);
    let half = angle(b, y, w)?;
    scaled(b, half, 2.0)
}

/// The angle of the point `(w, y)`, neither of them negative. NaN in either gives NaN.
fn angle<B: Build>(b: &mut B, y: B::V, w: B::V) -> R<B> {
    let eighth = FRAC_PI_4 / 2.0;
    let (low, high) = (scaled(b, w, eighth.tan())?, scaled(b, w, (3.0 * eighth).tan())?);
    let (mid, steep) = (b.op(Lt {}, &[low, y])?, b.op(Lt {}, &[high, y])?);
    let (back, sub, sum) = (b.op(Neg {}, &[w])?, b.op(Sub {}, &[y, w])?, b.op(Add {}, &[y, w])?);
    let (right, half, zero) = (like(b, y, FRAC_PI_2)?, like(b, y, FRAC_PI_4)?, like(b, y, 0.0)?);
    let pick = |b: &mut B, of: [B::V; 3]| {
        let rest = b.op(Select {}, &[mid, of[1], of[2]])?;
        b.op(Select {}, &[steep, of[0], rest])
    };
    // comparisons with NaN are false, so NaN stays in y / w
    let (num, den) = (pick(b, [back, sub, y])?, pick(b, [y, sum, w])?);
    let turn = pick(b, [right, half, zero])?;
    let q = b.op(Div {}, &[num, den])?;
    let z = b.op(Mul {}, &[q, q])?;
    let series: &[f64] = if b.dtype(y) == DType::F64 { &FINE } else { &COARSE };
    let p = polynomial(b, z, series)?;
    let p = b.op(Mul {}, &[p, z])?;
    let p = b.op(Mul {}, &[p, q])?;
    let p = b.op(Add {}, &[q, p])?;
    b.op(Add {}, &[turn, p])
}

/// The angle of the point `(x, y)` in all four quadrants; signs of zeros count.
pub(crate) fn atan2<B: Build>(b: &mut B, y: B::V, x: B::V) -> R<B> {
    let (up, right) = (b.op(Abs {}, &[y])?, b.op(Abs {}, &[x])?);
    let (zero, one) = (like(b, x, 0.0)?, like(b, x, 1.0)?);
    let inf = like(b, x, f64::INFINITY)?;
    // the corner at infinity is the one at (1, 1), and of the origin the angle is 0
    let (far_up, far_right) = (b.op(Eq {}, &[up, inf])?, b.op(Eq {}, &[right, inf])?);
    let corner = b.op(And {}, &[far_up, far_right])?;
    let most = b.op(Max {}, &[up, right])?;
    let origin = b.op(Eq {}, &[most, zero])?;
    let high = b.op(Select {}, &[corner, one, up])?;
    let wide = b.op(Select {}, &[corner, one, right])?;
    let wide = b.op(Select {}, &[origin, one, wide])?;
    let a = angle(b, high, wide)?;
    let half = like(b, x, PI)?;
    let (left, turned) = (negative(b, x)?, b.op(Sub {}, &[half, a])?);
    let a = b.op(Select {}, &[left, turned, a])?;
    let (below, minus) = (negative(b, y)?, b.op(Neg {}, &[a])?);
    b.op(Select {}, &[below, minus, a])
}
