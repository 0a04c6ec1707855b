//! Arithmetic and comparison of two operands, with PyTorch's promotion of element types and numpy's broadcasting.

use super::tape::{Failed, Tape, V, computed, formula};
use crate::formula::{angle, special};
use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor, promote};
use std::panic::Location;
use tgc_ir::ops::{self, Op};
use tgc_ir::types::DType;

type At = &'static Location<'static>;

/// Both operands in one element type, as the op takes them.
#[track_caller]
pub(crate) fn pair(op: impl Into<Op>, a: &Tensor, b: &Tensor, at: At) -> Tensor {
    let d = promote(a, b);
    apply(op, &[&cast(a, d, at), &cast(b, d, at)], at)
}

/// [`pair`], with another op for two bools.
#[track_caller]
fn pair_or(op: impl Into<Op>, bools: impl Into<Op>, a: &Tensor, b: &Tensor, at: At) -> Tensor {
    match promote(a, b) {
        DType::Bool => pair(bools, a, b, at),
        _ => pair(op, a, b, at),
    }
}

#[track_caller]
pub(crate) fn cast(t: &Tensor, d: DType, at: At) -> Tensor {
    match t.failed() || t.dtype() == d {
        true => t.clone(),
        false => apply(ops::Cast { to: d }, &[t], at),
    }
}

/// A float of the same value: integers and bool become f32.
#[track_caller]
pub(crate) fn float(t: &Tensor, at: At) -> Tensor {
    if t.dtype().is_float() { t.clone() } else { cast(t, DType::F32, at) }
}

/// `f` of both operands as floats of one type.
#[track_caller]
fn floats(a: &Tensor, b: &Tensor, at: At, f: impl FnOnce(&mut Tape, &[V]) -> Result<V, Failed>) -> Tensor {
    let d = promote(a, b);
    let d = if d.is_float() { d } else { DType::F32 };
    formula(&[&cast(a, d, at), &cast(b, d, at)], at, f)
}

/// Division of integers truncates and is mended by the remainder; that of floats is exact but for the last rounding.
#[track_caller]
fn floor_quotient(a: &Tensor, b: &Tensor, at: At) -> Tensor {
    if a.failed() || b.failed() {
        return Tensor::FAILED;
    }
    let d = promote(a, b);
    let inner = computed(d);
    let (a, b) = (cast(a, inner, at), cast(b, inner, at));
    let rest = apply(ops::Rem {}, &[&a, &b], at);
    let whole = if d.is_float() { a.sub(&rest).div(&b) } else { apply(ops::Div {}, &[&a, &b], at) };
    let down = rest.lt(0).ne(b.lt(0)).logical_and(rest.ne(0));
    let q = whole.sub(down.to_dtype(inner));
    if !d.is_float() {
        return q;
    }
    let plain = apply(ops::Div {}, &[&a, &b], at);
    cast(&b.eq(0).where_(plain, q.round()), d, at)
}

/// `both`, or the one that is a number.
#[track_caller]
fn choose_number(a: &Tensor, b: &Tensor, both: &Tensor, at: At) -> Tensor {
    let d = both.dtype();
    if both.failed() || !d.is_float() {
        return both.clone();
    }
    let (a, b) = (cast(a, d, at), cast(b, d, at));
    let y = apply(ops::Select {}, &[&apply(ops::IsNan {}, &[&a], at), &b, both], at);
    apply(ops::Select {}, &[&apply(ops::IsNan {}, &[&b], at), &a, &y], at)
}

#[track_caller]
fn heaviside(x: &Tensor, values: &Tensor, at: At) -> Tensor {
    let d = promote(x, values);
    let (x, values) = (cast(x, d, at), cast(values, d, at));
    let step = x.gt(0).to_dtype(d);
    x.eq(0).where_(values, step)
}

/// Methods of two operands, the second a tensor, a parameter, a number or a dim.
macro_rules! binary {
    ($($(#[$doc:meta])* pub fn $name:ident($a:ident, $b:ident, $at:ident) $body:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Tensor {
                let $at = Location::caller();
                let ($a, $b) = (self, &other.operand(self));
                $body
            }
        )* }
    };
}
binary! {
    /// Sum; of bools, whether one is true.
    pub fn add(a, b, at) pair_or(ops::Add {}, ops::Or {}, a, b, at);
    /// Difference.
    pub fn sub(a, b, at) pair(ops::Sub {}, a, b, at);
    /// Product; of bools, whether both are true.
    pub fn mul(a, b, at) pair_or(ops::Mul {}, ops::And {}, a, b, at);
    /// Quotient; of integers in f32.
    pub fn div(a, b, at) pair(ops::Div {}, &float(a, at), &float(b, at), at);
    /// Remainder with the divisor's sign, as Python's `%`.
    pub fn remainder(a, b, at) pair(ops::Modulo {}, a, b, at);
    /// Power.
    pub fn pow(a, b, at) pair(ops::Pow {}, a, b, at);
    /// The greater of two elements; NaN wins.
    pub fn maximum(a, b, at) pair_or(ops::Max {}, ops::Or {}, a, b, at);
    /// The smaller of two elements; NaN wins.
    pub fn minimum(a, b, at) pair_or(ops::Min {}, ops::And {}, a, b, at);
    /// Equality.
    pub fn eq(a, b, at) pair(ops::Eq {}, a, b, at);
    /// Inequality.
    pub fn ne(a, b, at) apply(ops::Not {}, &[&pair(ops::Eq {}, a, b, at)], at);
    /// Less than.
    pub fn lt(a, b, at) pair(ops::Lt {}, a, b, at);
    /// Less than or equal.
    pub fn le(a, b, at) pair(ops::Le {}, a, b, at);
    /// Greater than.
    pub fn gt(a, b, at) pair(ops::Lt {}, b, a, at);
    /// Greater than or equal.
    pub fn ge(a, b, at) pair(ops::Le {}, b, a, at);
    /// [`Tensor::div`].
    pub fn true_divide(a, b, _at) a.div(b);
    /// [`Tensor::sub`].
    pub fn subtract(a, b, _at) a.sub(b);
    /// [`Tensor::mul`].
    pub fn multiply(a, b, _at) a.mul(b);
    /// [`Tensor::div`].
    pub fn divide(a, b, _at) a.div(b);
    /// Quotient rounded down.
    pub fn floor_divide(a, b, at) floor_quotient(a, b, at);
    /// Quotient rounded toward 0, of integers in integers: `torch.div(a, b, rounding_mode="trunc")`.
    pub fn trunc_divide(a, b, at) {
        let q = pair(ops::Div {}, a, b, at);
        q.trunc()
    };
    /// Remainder with the dividend's sign, as C's `fmod`.
    pub fn fmod(a, b, at) pair(ops::Rem {}, a, b, at);
    /// The greater of two elements; a number wins over NaN.
    pub fn fmax(a, b, at) choose_number(a, b, &a.maximum(b), at);
    /// The smaller of two elements; a number wins over NaN.
    pub fn fmin(a, b, at) choose_number(a, b, &a.minimum(b), at);
    /// The angle of the point `(other, self)`, from -pi to pi.
    pub fn atan2(a, b, at) floats(a, b, at, |t, x| angle::atan2(t, x[0], x[1]));
    /// `sqrt(a^2 + b^2)` without overflow.
    pub fn hypot(a, b, at) floats(a, b, at, |t, x| special::hypot(t, x[0], x[1]));
    /// The first operand's size with the second's sign. The sign of NaN counts as plus.
    pub fn copysign(a, b, at) floats(a, b, at, |t, x| special::copysign(t, x[0], x[1]));
    /// `x * log(y)`, 0 where x is 0 and y is not NaN.
    pub fn xlogy(a, b, at) floats(a, b, at, |t, x| special::xlogy(t, x[0], x[1]));
    /// `x * 2^other`.
    pub fn ldexp(a, b, _at) a.mul(b.exp2());
    /// 0 below 0, 1 above it, and at 0 the element of `other`.
    pub fn heaviside(a, b, at) heaviside(a, b, at);
    /// [`Tensor::atan2`].
    pub fn arctan2(a, b, _at) a.atan2(b);
    /// [`Tensor::gt`].
    pub fn greater(a, b, _at) a.gt(b);
    /// [`Tensor::ge`].
    pub fn greater_equal(a, b, _at) a.ge(b);
    /// [`Tensor::lt`].
    pub fn less(a, b, _at) a.lt(b);
    /// [`Tensor::le`].
    pub fn less_equal(a, b, _at) a.le(b);
    /// [`Tensor::ne`].
    pub fn not_equal(a, b, _at) a.ne(b);
    /// The other operand less this one.
    pub fn rsub(a, b, _at) b.sub(a);
    /// Power, in f64.
    pub fn float_power(a, b, at) pair(ops::Pow {}, &cast(a, DType::F64, at), &cast(b, DType::F64, at), at);
    /// Logarithm of the sum of the exponentials of two elements.
    pub fn logaddexp(a, b, at) floats(a, b, at, |t, x| special::log_add_exp(t, x[0], x[1]));
}
