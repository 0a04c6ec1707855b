//! `sub(a, b)`: elementwise difference with numpy broadcasting. Integers wrap.
//!
//! Constraints: sub.c1 one element type, a number; sub.c2 the shapes broadcast.
//!
//! `%y = sub %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise difference.
    Sub, Bin::Sub, Accuracy::Exact, Onnx::Op("Sub", 7, i64::MAX), commutative: false, Grad::FromExpr
}
