//! `sign(x)`: elementwise -1, 0 or 1; NaN stays NaN.
//!
//! Constraints: sign.c1 the element type is a number.
//!
//! `%y = sign %x : f32[n, 4]`

use super::{Accuracy, Grad, Onnx, map};
use crate::scalar::Bin;

crate::expr_op! {
    /// Elementwise sign.
    Sign, Accuracy::Exact, Onnx::Op("Sign", 9, i64::MAX), map::infer_number, |e, x| {
        let (zero, one, minus) = (e.num(x, 0.0), e.num(x, 1.0), e.num(x, -1.0));
        let negative = e.bin(Bin::Lt, x, zero);
        let positive = e.bin(Bin::Lt, zero, x);
        let none = e.bin(Bin::Eq, x, zero);
        let rest = e.select(none, zero, x);
        let up = e.select(positive, one, rest);
        e.select(negative, minus, up)
    }, Grad::Zero
}
