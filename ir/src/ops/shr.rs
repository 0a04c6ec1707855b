//! `shr(a, b)`: elementwise right shift of integers, arithmetic for signed ones; a shift by the width or more
//! (or a negative one) gives 0, or -1 for a negative `a`.
//!
//! Constraints: shr.c1 one element type, an integer type; shr.c2 the shapes broadcast.
//!
//! `%y = shr %a, %b : u8[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise right shift.
    Shr, Bin::Shr, Accuracy::Exact, Onnx::Op("BitShift", 11, i64::MAX), commutative: false, Grad::Zero
}
