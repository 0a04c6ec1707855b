//! `le(a, b)`: elementwise `a <= b`; gives bool. False where either is NaN.
//!
//! Constraints: le.c1 one element type, a number or bool; le.c2 the shapes broadcast.
//!
//! `%y = le %a, %b : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise `a <= b`.
    Le, Bin::Le, Accuracy::Exact, Onnx::Op("LessOrEqual", 12, i64::MAX), commutative: false, Grad::Zero
}
