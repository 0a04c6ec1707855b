//! `modulo(a, b)`: elementwise remainder of floored division (sign of `b`), Python's `%`. Integer x modulo 0 = 0.
//!
//! Constraints: modulo.c1 one element type, a number; modulo.c2 the shapes broadcast.
//!
//! `%y = modulo %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise remainder of floored division.
    Modulo, Bin::Mod, Accuracy::Exact, Onnx::Op("Mod", 10, i64::MAX), commutative: false, Grad::FromExpr
}
