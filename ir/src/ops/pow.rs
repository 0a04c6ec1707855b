//! `pow(a, b)`: elementwise power. Integer powers wrap at 64 bits; a negative exponent gives the truncated reciprocal.
//!
//! Constraints: pow.c1 one element type, a number; pow.c2 the shapes broadcast.
//!
//! `%y = pow %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise power.
    Pow, Bin::Pow, Accuracy::Ulp(2), Onnx::Op("Pow", 7, i64::MAX), commutative: false, Grad::FromExpr
}
