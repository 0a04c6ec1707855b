//! `and(a, b)`: elementwise conjunction of bools, bitwise on integers.
//!
//! Constraints: and.c1 one element type, bool or an integer type; and.c2 the shapes broadcast.
//!
//! `%y = and %a, %b : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise conjunction.
    And, Bin::And, Accuracy::Exact, Onnx::Op("And", 7, i64::MAX), commutative: true, Grad::Zero
}
