//! `not(x)`: elementwise logical negation of bools, complement of integers.
//!
//! Constraints: not.c1 the element type is bool or an integer type.
//!
//! `%y = not %x : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise negation of truth or bits.
    Not, Un::Not, Accuracy::Exact, Onnx::Op("Not", 1, i64::MAX), Grad::Zero
}
