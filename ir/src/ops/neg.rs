//! `neg(x)`: elementwise `-x`. Integers wrap; a float's sign bit flips, NaN's too.
//!
//! Constraints: neg.c1 the element type is a number.
//!
//! `%y = neg %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise negation.
    Neg, Un::Neg, Accuracy::Exact, Onnx::Op("Neg", 6, i64::MAX), Grad::FromExpr
}
