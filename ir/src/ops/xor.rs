//! `xor(a, b)`: elementwise exclusive or of bools, bitwise on integers.
//!
//! Constraints: xor.c1 one element type, bool or an integer type; xor.c2 the shapes broadcast.
//!
//! `%y = xor %a, %b : bool[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise exclusive or.
    Xor, Bin::Xor, Accuracy::Exact, Onnx::Op("Xor", 7, i64::MAX), commutative: true, Grad::Zero
}
