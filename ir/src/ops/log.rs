//! `log(x)`: elementwise natural logarithm; log(0) = -inf, negative operands give NaN.
//!
//! Constraints: log.c1 the element type is a float type.
//!
//! `%y = log %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise natural logarithm.
    Log, Un::Log, Accuracy::Ulp(2), Onnx::Op("Log", 6, i64::MAX), Grad::FromExpr
}
