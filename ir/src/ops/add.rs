//! `add(a, b)`: elementwise sum with numpy broadcasting. Integers wrap.
//!
//! Constraints: add.c1 one element type, a number; add.c2 the shapes broadcast.
//!
//! `%y = add %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise sum.
    Add, Bin::Add, Accuracy::Exact, Onnx::Op("Add", 7, i64::MAX), commutative: true, Grad::FromExpr
}
