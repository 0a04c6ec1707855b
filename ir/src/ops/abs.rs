//! `abs(x)`: elementwise absolute value. The integer minimum wraps to itself.
//!
//! Constraints: abs.c1 the element type is a number.
//!
//! `%y = abs %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise absolute value.
    Abs, Un::Abs, Accuracy::Exact, Onnx::Op("Abs", 6, i64::MAX), Grad::FromExpr
}
