//! `tanh(x)`: elementwise hyperbolic tangent.
//!
//! Constraints: tanh.c1 the element type is a float type.
//!
//! `%y = tanh %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise hyperbolic tangent.
    Tanh, Un::Tanh, Accuracy::Ulp(2), Onnx::Op("Tanh", 6, i64::MAX), Grad::FromExpr
}
