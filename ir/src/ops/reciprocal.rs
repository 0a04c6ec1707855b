//! `reciprocal(x)`: elementwise `1 / x`, correctly rounded; 1 / 0 is infinite.
//!
//! Constraints: reciprocal.c1 the element type is a float type.
//!
//! `%y = reciprocal %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx, map};
use crate::scalar::Bin;

crate::expr_op! {
    /// Elementwise reciprocal.
    Reciprocal, Accuracy::Exact, Onnx::Op("Reciprocal", 6, i64::MAX), map::infer_float, |e, x| {
        let one = e.num(x, 1.0);
        e.bin(Bin::Div, one, x)
    }, Grad::FromExpr
}
