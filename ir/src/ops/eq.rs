//! `eq(a, b)`: elementwise equality; gives bool. NaN equals nothing, -0 equals +0.
//!
//! Constraints: eq.c1 one element type, a number or bool; eq.c2 the shapes broadcast.
//!
//! `%y = eq %a, %b : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise equality.
    Eq, Bin::Eq, Accuracy::Exact, Onnx::Op("Equal", 7, i64::MAX), commutative: true, Grad::Zero
}
