//! `floor(x)`: elementwise greatest integer not above x.
//!
//! Constraints: floor.c1 the element type is a float type.
//!
//! `%y = floor %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx};
use crate::scalar::Un;

crate::unary_op! {
    /// Elementwise rounding down.
    Floor, Un::Floor, Accuracy::Exact, Onnx::Op("Floor", 6, i64::MAX), Grad::Zero
}
