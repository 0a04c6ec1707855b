//! `round(x)`: elementwise nearest integer, halves to even.
//!
//! Constraints: round.c1 the element type is a float type.
//!
//! `%y = round %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise rounding, halves to even.
    Round, Un::Round, Accuracy::Exact, Onnx::Op("Round", 11, i64::MAX), Grad::Zero
}
