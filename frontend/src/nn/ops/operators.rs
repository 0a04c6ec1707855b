//! The operators `+ - * / % & | ^ << >> !` on tensors, as the methods of PyTorch's names.

use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor};
use std::ops::{Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign};
use std::ops::{Div, DivAssign, Mul, MulAssign, Neg, Not, Rem, Shl, Shr, Sub, SubAssign};
use std::panic::Location;
use tgc_ir::ops;

macro_rules! operators {
    ($($trait:ident $method:ident $assign:ident $assign_method:ident $name:ident ($($left:ty)*);)*) => { $(
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
        operators!(@left $trait $method $name $($left)*);
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
    Add add AddAssign add_assign add (f64 f32 i64 i32);
    Sub sub SubAssign sub_assign sub (f64 f32 i64 i32);
    Mul mul MulAssign mul_assign mul (f64 f32 i64 i32);
    Div div DivAssign div_assign div (f64 f32 i64 i32);
    Rem rem none none remainder (f64 f32 i64 i32);
    BitAnd bitand BitAndAssign bitand_assign bitwise_and ();
    BitOr bitor BitOrAssign bitor_assign bitwise_or ();
    BitXor bitxor BitXorAssign bitxor_assign bitwise_xor ();
    Shl shl none none bitwise_left_shift ();
    Shr shr none none bitwise_right_shift ();
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

impl Not for &Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}

impl Not for Tensor {
    type Output = Tensor;
    #[track_caller]
    fn not(self) -> Tensor {
        self.bitwise_not()
    }
}
