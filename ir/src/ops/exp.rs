//! `exp(x)`: elementwise e to the power of x.
//!
//! Constraints: exp.c1 the element type is a float type.
//!
//! `%y = exp %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise exponential.
    Exp, Un::Exp, Accuracy::Ulp(2), Onnx::Op("Exp", 6, i64::MAX), Grad::FromExpr
}
