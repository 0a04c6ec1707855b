//! `relu(x)`: elementwise `x < 0 ? 0 : x`. NaN stays NaN and -0 stays -0.
//!
//! Constraints: relu.c1 the element type is a number.
//!
//! `%y = relu %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx, map};
use crate::scalar::Bin;

crate::expr_op! {
    /// Elementwise rectifier.
    Relu, Accuracy::Exact, Onnx::Op("Relu", 6, i64::MAX), map::infer_number, |e, x| {
        let zero = e.num(x, 0.0);
        let negative = e.bin(Bin::Lt, x, zero);
        e.select(negative, zero, x)
    }, Grad::FromExpr
}
