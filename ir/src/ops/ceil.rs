//! `ceil(x)`: elementwise smallest integer not below x.
//!
//! Constraints: ceil.c1 the element type is a float type.
//!
//! `%y = ceil %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise rounding up.
    Ceil, Un::Ceil, Accuracy::Exact, Onnx::Op("Ceil", 6, i64::MAX), Grad::Zero
}
