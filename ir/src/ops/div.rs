//! `div(a, b)`: elementwise quotient with numpy broadcasting. Integers truncate; x / 0 = 0, minimum / -1 wraps.
//!
//! Constraints: div.c1 one element type, a number; div.c2 the shapes broadcast.
//!
//! `%y = div %a, %b : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Bin;

crate::binary_op! {
    /// Elementwise quotient.
    Div, Bin::Div, Accuracy::Exact, Onnx::Op("Div", 7, i64::MAX), commutative: false, Grad::FromExpr
}
