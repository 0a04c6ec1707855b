//! Error bounds through scalar operations: given how far operands may be off, how far the result of a correct
//! lower-precision evaluation may be. A term is (value, bound). Steps and selections give the hull of what the error
//! could reach; what has no hull is infinite.

use super::expr::float_to_int;
use crate::accuracy::{greatest, normal, pow_ulps, smallest, ulp_at, ulps};
use crate::scalar::{Bin, Un, float_un};
use crate::types::DType;

/// A value and its error bound.
pub(crate) type Term = (f64, f64);

const FAR: f64 = f64::INFINITY;

/// A propagated error with the roundings of both sides added: of what is evaluated and of the reference.
fn rounded(d: DType, r: f64, prop: f64, always: bool) -> f64 {
    if prop == 0.0 && !always {
        return 0.0; // the same operands round to the same result
    }
    prop + 2.0 * d.epsilon() * (r.abs() + prop) + smallest(d)
}

/// Infinite where arithmetic on bounds gave no number.
fn settle(e: f64) -> f64 {
    if e.is_nan() { FAR } else { e }
}

/// Bound of a result that is not finite: none if it follows from exact operands or from an infinity or NaN among them.
fn special(terms: &[Term]) -> f64 {
    let given = terms.iter().any(|t| !t.0.is_finite());
    let exact = terms.iter().all(|t| t.1 == 0.0);
    if exact || (given && terms.iter().all(|t| t.1.is_finite())) { 0.0 } else { FAR }
}

/// Unary operation.
pub(crate) fn un(op: Un, d: DType, x: Term, r: f64, always: bool) -> f64 {
    let (x, dx) = x;
    if op == Un::IsNan {
        return if dx == FAR { 1.0 } else { 0.0 };
    }
    if !r.is_finite() {
        return special(&[(x, dx)]);
    }
    let nearest = (x.abs() - dx).max(0.0);
    let prop = match op {
        _ if dx == 0.0 => 0.0,
        Un::Neg | Un::Abs | Un::IsNan => dx,
        Un::Not if d == DType::Bool || d.is_int() => dx,
        Un::Not => FAR,
        Un::Exp => r * dx.exp_m1(),
        Un::Log if dx < x => -(-dx / x).ln_1p(),
        // below zero the function is NaN
        Un::Sqrt if dx <= x => x.sqrt() - (x - dx).sqrt(),
        Un::Log | Un::Sqrt => FAR,
        // greatest slope in reach
        Un::Tanh => dx * (1.0 - nearest.tanh().powi(2)),
        Un::Erf => dx * std::f64::consts::FRAC_2_SQRT_PI * (-nearest * nearest).exp(),
        Un::Sin | Un::Cos => dx.min(2.0),
        Un::Floor | Un::Ceil | Un::Round | Un::Trunc => {
            return settle((float_un(op, x + dx) - r).abs().max((r - float_un(op, x - dx)).abs()));
        }
    };
    settle(match op {
        Un::Neg | Un::Abs | Un::Not => prop,
        Un::Sqrt => rounded(d, r, prop, always),
        // the reference is itself rounded: half a unit
        _ => prop + (ulps(op, d) + 0.5) * ulp_at(d, r.abs() + prop),
    })
}

/// Binary operation on operands of type `d`.
pub(crate) fn bin(op: Bin, d: DType, a: Term, b: Term, r: f64, always: bool) -> f64 {
    let ((x, dx), (y, dy)) = (a, b);
    let sure = dx == 0.0 && dy == 0.0;
    if !d.is_float() {
        return integer(op, d, a, b, sure);
    }
    match op {
        Bin::Eq | Bin::Lt | Bin::Le => return decision(a, b),
        Bin::Min | Bin::Max => return dx.max(dy),
        _ => {}
    }
    if !r.is_finite() {
        return special(&[a, b]);
    }
    let prop = match op {
        _ if sure => 0.0,
        Bin::Add | Bin::Sub => dx + dy,
        Bin::Mul => x.abs() * dy + y.abs() * dx + dx * dy,
        Bin::Div if y.is_infinite() => 0.0,
        Bin::Div if dy < y.abs() => (dx + r.abs() * dy) / (y.abs() - dy),
        // within one period the remainder moves with the dividend
        Bin::Rem | Bin::Mod if dy == 0.0 && (r.abs() - dx > 0.0) && (r.abs() + dx < y.abs()) => dx,
        Bin::Rem | Bin::Mod if dy == 0.0 => 2.0 * y.abs(),
        Bin::Pow => power(a, b, r),
        _ => FAR,
    };
    settle(match op {
        Bin::Pow => prop + (pow_ulps(d) + 0.5) * ulp_at(d, r.abs() + prop),
        // a remainder is exact; that of floored division adds the divisor where the signs differ
        Bin::Rem => prop,
        _ => rounded(d, r, prop, always),
    })
}

fn power((x, dx): Term, (y, dy): Term, r: f64) -> f64 {
    if dx < x.abs() && (x > 0.0 || dy == 0.0) {
        let log = x.abs().ln().abs();
        let slip = -(-dx / x.abs()).ln_1p();
        let exponent = (y.abs() + dy) * slip + log * dy;
        return r.abs() * exponent.exp_m1();
    }
    if dy == 0.0 && y > 0.0 && y.fract() == 0.0 {
        return (x.abs() + dx).powf(y) + r.abs();
    }
    FAR
}

/// 1 if the errors could flip a comparison.
fn decision((x, dx): Term, (y, dy): Term) -> f64 {
    let reach = dx + dy;
    if reach == 0.0 || x.is_nan() || y.is_nan() {
        return if reach == FAR { 1.0 } else { 0.0 };
    }
    let apart = (x - y).abs();
    if apart > reach { 0.0 } else { 1.0 }
}

fn integer(op: Bin, d: DType, a: Term, b: Term, sure: bool) -> f64 {
    let ((x, dx), (y, dy)) = (a, b);
    if sure {
        return 0.0;
    }
    match op {
        Bin::Eq | Bin::Lt | Bin::Le => decision(a, b),
        Bin::Min | Bin::Max => dx.max(dy),
        Bin::And if d == DType::Bool => {
            if (dx == 0.0 && x == 0.0) || (dy == 0.0 && y == 0.0) {
                0.0
            } else {
                1.0
            }
        }
        Bin::Or if d == DType::Bool => {
            if (dx == 0.0 && x != 0.0) || (dy == 0.0 && y != 0.0) {
                0.0
            } else {
                1.0
            }
        }
        Bin::Xor if d == DType::Bool => 1.0,
        // sums that stay far from wrapping move as on a line
        Bin::Add | Bin::Sub
            if x.abs() + y.abs() + dx + dy < 2f64.powi(d.bits() as i32 - 2) && d.is_signed() =>
        {
            dx + dy
        }
        _ => FAR,
    }
}

/// `a * b + c` with one rounding.
pub(crate) fn fma(d: DType, a: Term, b: Term, c: Term, r: f64, always: bool) -> f64 {
    if !r.is_finite() {
        return special(&[a, b, c]);
    }
    let prop = a.0.abs() * b.1 + b.0.abs() * a.1 + a.1 * b.1 + c.1;
    if !d.is_float() {
        return if prop == 0.0 { 0.0 } else { FAR };
    }
    settle(rounded(d, r, settle(prop), always))
}

/// `c ? a : b`; where `c` could flip, the other side is in reach.
pub(crate) fn select(c: Term, a: Term, b: Term) -> f64 {
    if c.1 == 0.0 {
        return if c.0 != 0.0 { a.1 } else { b.1 };
    }
    if a.0 == b.0 || (a.0.is_nan() && b.0.is_nan()) {
        return a.1.max(b.1);
    }
    settle((a.0 - b.0).abs() + a.1.max(b.1))
}

/// Conversion.
pub(crate) fn cast(from: DType, to: DType, x: Term, r: f64, always: bool) -> f64 {
    let (x, dx) = x;
    if dx == 0.0 && !(always && from.is_float() && to.is_float()) {
        return 0.0;
    }
    if to == DType::Bool {
        return if x.abs() <= dx { 1.0 } else { 0.0 };
    }
    match (from.is_float(), to.is_float()) {
        (true, true) if to.epsilon() <= from.epsilon() => dx,
        (true, true) if !r.is_finite() => special(&[(x, dx)]),
        (_, true) => settle(rounded(to, r, dx, always)),
        (true, false) => {
            let hull = |v: f64| (float_to_int(to, v) as f64 - r).abs();
            settle(hull(x + dx).max(hull(x - dx)))
        }
        // a narrower type could wrap
        (false, false) if to.bits() >= from.bits() || x.abs() + dx < 2f64.powi(to.bits() as i32 - 1) => dx,
        (false, false) => FAR,
    }
}

/// Bound of a partial result of an accumulation that is evaluated in f64 here: in its own type `d` it may overflow.
pub(crate) fn partial(d: DType, r: f64, e: f64) -> f64 {
    if d.is_float() && r.is_finite() && r.abs() + e > greatest(d) { FAR } else { e }
}

/// True where factors can overflow or vanish in type `d` in one order and not in another: `up` is the sum of the
/// logarithms of those above 1, `down` that of the others, negated (zeros left out).
pub(crate) fn order_matters(d: DType, up: f64, down: f64) -> bool {
    up > greatest(d).ln() || down > -normal(d).ln()
}

/// Bound of a sum of `k` terms accumulated in `acc` and rounded to `out`: `sum` is the result, `sum_abs` the sum of
/// magnitudes, `prop` what the terms' own errors come to.
pub(crate) fn sum(k: usize, acc: DType, out: DType, sum: f64, sum_abs: f64, prop: f64) -> f64 {
    if !acc.is_float() {
        return if prop == 0.0 { 0.0 } else { FAR };
    }
    if sum.is_finite() && sum_abs > greatest(acc) {
        return FAR; // a partial sum may overflow
    }
    if !sum.is_finite() {
        return if prop.is_nan() || prop == FAR { FAR } else { 0.0 };
    }
    let own = crate::accuracy::sum_bound(k, acc, sum_abs);
    settle(rounded(out, sum, prop + own, false))
}
