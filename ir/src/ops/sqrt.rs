//! `sqrt(x)`: elementwise square root, correctly rounded; negative operands give NaN.
//!
//! Constraints: sqrt.c1 the element type is a float type.
//!
//! `%y = sqrt %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise square root.
    Sqrt, Un::Sqrt, Accuracy::Exact, Onnx::Op("Sqrt", 6, i64::MAX), Grad::FromExpr
}
