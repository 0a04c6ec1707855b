//! `tan(x)`: elementwise tangent, `sin(x) / cos(x)` in at least f32, rounded once.
//!
//! Constraints: tan.c1 the element type is a float type.
//!
//! `%y = tan %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx, map};
use crate::scalar::{Bin, Un};

crate::expr_op! {
    /// Elementwise tangent.
    Tan, Accuracy::Parts, Onnx::Op("Tan", 7, i64::MAX), map::infer_float, |e, x| map::wide(e, x, |e, x| {
        let (sin, cos) = (e.un(Un::Sin, x), e.un(Un::Cos, x));
        e.bin(Bin::Div, sin, cos)
    }), Grad::FromExpr
}
