//! `lt(a, b)`: elementwise `a < b`; gives bool. False where either is NaN.
//!
//! Constraints: lt.c1 one element type, a number or bool; lt.c2 the shapes broadcast.
//!
//! `%y = lt %a, %b : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise `a < b`.
    Lt, Bin::Lt, Accuracy::Exact, Onnx::Op("Less", 7, i64::MAX), commutative: false, Grad::Zero
}
