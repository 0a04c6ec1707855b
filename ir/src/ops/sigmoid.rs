//! `sigmoid(x)`: elementwise `1 / (1 + exp(-x))`, in at least f32 and rounded once. Computed from `exp(-|x|)`, which
//! cannot overflow, so that tiny results keep their digits.
//!
//! Constraints: sigmoid.c1 the element type is a float type.
//!
//! `%y = sigmoid %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx, map};
use crate::scalar::{Bin, Un};

crate::expr_op! {
    /// Elementwise logistic function.
    Sigmoid, Accuracy::Parts, Onnx::Op("Sigmoid", 6, i64::MAX), map::infer_float, |e, x| map::wide(e, x, |e, x| {
        let (zero, one) = (e.num(x, 0.0), e.num(x, 1.0));
        let size = e.un(Un::Abs, x);
        let down = e.un(Un::Neg, size);
        let small = e.un(Un::Exp, down);
        let negative = e.bin(Bin::Lt, x, zero);
        let over = e.select(negative, small, one);
        let under = e.bin(Bin::Add, one, small);
        e.bin(Bin::Div, over, under)
    }), Grad::FromExpr
}
