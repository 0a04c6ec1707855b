//! `max(a, b)`: elementwise greater value; NaN wins, -0 < +0.
//!
//! Constraints: max.c1 one element type, a number or bool; max.c2 the shapes broadcast.
//!
//! `%y = max %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise maximum.
    Max, Bin::Max, Accuracy::Exact, Onnx::Op("Max", 8, i64::MAX), commutative: true, Grad::FromExpr
}
