//! `or(a, b)`: elementwise disjunction of bools, bitwise on integers.
//!
//! Constraints: or.c1 one element type, bool or an integer type; or.c2 the shapes broadcast.
//!
//! `%y = or %a, %b : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise disjunction.
    Or, Bin::Or, Accuracy::Exact, Onnx::Op("Or", 7, i64::MAX), commutative: true, Grad::Zero
}
