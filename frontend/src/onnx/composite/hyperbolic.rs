//! `Sinh`, `Cosh` and the inverse functions `Asinh`, `Acosh`, `Atanh`. Narrow floats are computed in f32 and rounded once.

use super::activation::unary;
use crate::formula::hyperbolic::{acosh, asinh, atanh, cosh, sinh};
use crate::onnx::registry::{ANY, Row};

pub(crate) const ROWS: &[Row] = &[
    ("Sinh", 9, ANY, |cx| unary(cx, sinh)),
    ("Cosh", 9, ANY, |cx| unary(cx, cosh)),
    ("Asinh", 9, ANY, |cx| unary(cx, asinh)),
    ("Acosh", 9, ANY, |cx| unary(cx, acosh)),
    ("Atanh", 9, ANY, |cx| unary(cx, atanh)),
];
