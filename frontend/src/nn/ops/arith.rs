//! Arithmetic and comparison of two operands, with PyTorch's promotion of element types and numpy's broadcasting, and
//! the operators.

use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor, promote};
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Rem, Sub, SubAssign};
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

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident($a:ident, $b:ident, $at:ident) $body:expr;)*) => {
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
    /// Sum.
    add(a, b, at) pair(ops::Add {}, a, b, at);
    /// Difference.
    sub(a, b, at) pair(ops::Sub {}, a, b, at);
    /// Product.
    mul(a, b, at) pair(ops::Mul {}, a, b, at);
    /// Quotient; of integers in f32.
    div(a, b, at) pair(ops::Div {}, &float(a, at), &float(b, at), at);
    /// Remainder with the divisor's sign, as Python's `%`.
    remainder(a, b, at) pair(ops::Modulo {}, a, b, at);
    /// Power.
    pow(a, b, at) pair(ops::Pow {}, a, b, at);
    /// The greater of two elements; NaN wins.
    maximum(a, b, at) pair(ops::Max {}, a, b, at);
    /// The smaller of two elements; NaN wins.
    minimum(a, b, at) pair(ops::Min {}, a, b, at);
    /// Equality.
    eq(a, b, at) pair(ops::Eq {}, a, b, at);
    /// Inequality.
    ne(a, b, at) apply(ops::Not {}, &[&pair(ops::Eq {}, a, b, at)], at);
    /// Less than.
    lt(a, b, at) pair(ops::Lt {}, a, b, at);
    /// Less than or equal.
    le(a, b, at) pair(ops::Le {}, a, b, at);
    /// Greater than.
    gt(a, b, at) pair(ops::Lt {}, b, a, at);
    /// Greater than or equal.
    ge(a, b, at) pair(ops::Le {}, b, a, at);
}

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $name:ident;)*) => { $(
        impl<R: Operand> $trait<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                Tensor::$name(self, other)
            }
        }
        impl<R: Operand> $trait<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                Tensor::$name(&self, other)
            }
        }
        operators!(@cells $trait $method $name Param Buffer State);
        operators!(@left $trait $method $name f64 f32 i64 i32);
        operators!(@assign $assign $assign_method $name);
    )* };
    (@cells $trait:ident $method:ident $name:ident $($cell:ident)*) => { $(
        impl<R: Operand> $trait<R> for &crate::nn::module::$cell {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                Tensor::$name(self, other)
            }
        }
    )* };
    (@left $trait:ident $method:ident $name:ident $($t:ty)*) => { $(
        impl $trait<&Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                Tensor::$name(&self.operand(other), other)
            }
        }
        impl $trait<Tensor> for $t {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                Tensor::$name(&self.operand(&other), other)
            }
        }
    )* };
    (@assign none $method:ident $name:ident) => {};
    (@assign $assign:ident $method:ident $name:ident) => {
        /// Rebinds the variable; clones of the old handle keep the old value.
        impl<R: Operand> $assign<R> for Tensor {
            #[track_caller]
            fn $method(&mut self, other: R) {
                *self = Tensor::$name(self, other);
            }
        }
    };
}
operators! {
    Add add AddAssign add_assign add;
    Sub sub SubAssign sub_assign sub;
    Mul mul MulAssign mul_assign mul;
    Div div DivAssign div_assign div;
    Rem rem none none remainder;
}

impl Neg for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        apply(ops::Neg {}, &[self], Location::caller())
    }
}

impl Neg for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn neg(self) -> Tensor {
        -&self
    }
}
