//! `is_nan(x)`: elementwise test for NaN; gives bool.
//!
//! Constraints: is_nan.c1 the element type is a float type.
//!
//! `%y = is_nan %x : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise test for NaN.
    IsNan, Un::IsNan, Accuracy::Exact, Onnx::Op("IsNaN", 9, i64::MAX), Grad::Zero
}
