//! `Acos`, `Asin`, `Atan`. Narrow floats are computed in f32 and rounded once.

use super::activation::unary;
use crate::formula::angle::{acos, asin, atan};
use crate::onnx::registry::{ANY, Row};

pub(crate) const ROWS: &[Row] = &[
    ("Acos", 7, ANY, |cx| unary(cx, acos)),
    ("Asin", 7, ANY, |cx| unary(cx, asin)),
    ("Atan", 7, ANY, |cx| unary(cx, atan)),
];
