//! `min(a, b)`: elementwise smaller value; NaN wins, -0 < +0.
//!
//! Constraints: min.c1 one element type, a number or bool; min.c2 the shapes broadcast.
//!
//! `%y = min %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise minimum.
    Min, Bin::Min, Accuracy::Exact, Onnx::Op("Min", 8, i64::MAX), commutative: true, Grad::FromExpr
}
