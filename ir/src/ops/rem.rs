//! `rem(a, b)`: elementwise remainder of truncated division (sign of `a`), C's `%` and `fmod`. Integer x rem 0 = 0.
//! ONNX writes it as Mod with fmod = 1.
//!
//! Constraints: rem.c1 one element type, a number; rem.c2 the shapes broadcast.
//!
//! `%y = rem %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise remainder of truncated division.
    Rem, Bin::Rem, Accuracy::Exact, Onnx::Op("Mod", 10, i64::MAX), commutative: false, Grad::FromExpr
}
