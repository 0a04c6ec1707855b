//! `erf(x)`: elementwise error function.
//!
//! Constraints: erf.c1 the element type is a float type.
//!
//! `%y = erf %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise error function.
    Erf, Un::Erf, Accuracy::Ulp(2), Onnx::Op("Erf", 9, i64::MAX), Grad::FromExpr
}
