//! `shl(a, b)`: elementwise left shift of integers; a shift by the width or more (or a negative one) gives 0.
//!
//! Constraints: shl.c1 one element type, an integer type; shl.c2 the shapes broadcast.
//!
//! `%y = shl %a, %b : u8[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise left shift.
    Shl, Bin::Shl, Accuracy::Exact, Onnx::Op("BitShift", 11, i64::MAX), commutative: false, Grad::Zero
}
