//! `mul(a, b)`: elementwise product with numpy broadcasting. Integers wrap.
//!
//! Constraints: mul.c1 one element type, a number; mul.c2 the shapes broadcast.
//!
//! `%y = mul %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise product.
    Mul, Bin::Mul, Accuracy::Exact, Onnx::Op("Mul", 7, i64::MAX), commutative: true, Grad::FromExpr
}
