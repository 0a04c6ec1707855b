//! `cos(x)`: elementwise cosine, exact reduction of huge arguments included.
//!
//! Constraints: cos.c1 the element type is a float type.
//!
//! `%y = cos %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise cosine.
    Cos, Un::Cos, Accuracy::Ulp(2), Onnx::Op("Cos", 7, i64::MAX), Grad::FromExpr
}
