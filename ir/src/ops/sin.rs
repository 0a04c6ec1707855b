//! `sin(x)`: elementwise sine, exact reduction of huge arguments included.
//!
//! Constraints: sin.c1 the element type is a float type.
//!
//! `%y = sin %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise sine.
    Sin, Un::Sin, Accuracy::Ulp(2), Onnx::Op("Sin", 7, i64::MAX), Grad::FromExpr
}
