//! `Softmax`, `LogSoftmax` and `Hardmax`: before opset 13 over all axes from one on, taken as a matrix.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{ArgMax, Eq, Iota, LogSoftmax, Softmax};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[
    ("Softmax", 1, ANY, |cx| softmax(cx, |cx, x, axis| cx.op(Softmax { axis }, &[x]))),
    ("LogSoftmax", 1, ANY, |cx| softmax(cx, |cx, x, axis| cx.op(LogSoftmax { axis }, &[x]))),
    ("Hardmax", 1, ANY, |cx| softmax(cx, hardmax)),
];

fn softmax(
    cx: &mut NodeCx<'_, '_>,
    f: impl FnOnce(&mut NodeCx<'_, '_>, Value, i64) -> Res<Value>,
) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    if cx.opset >= 13 {
        let axis = cx.attrs.int("axis", -1)?;
        let axis = cx.axis(axis, shape.len())? as i64;
        return Ok(vec![f(cx, x, axis)?]);
    }
    let axis = cx.attrs.int("axis", 1)?;
    // the description allows an axis after the last one up to opset 10
    let at = if cx.opset < 11 && axis == shape.len() as i64 { shape.len() } else { cx.axis(axis, shape.len())? };
    if at + 1 == shape.len() {
        return Ok(vec![f(cx, x, at as i64)?]);
    }
    let (rows, cols) = shape.split_at(at);
    let flat: Vec<Dim> = vec![rows.iter().cloned().product(), cols.iter().cloned().product()];
    let y = cx.reshape(x, flat)?;
    let y = f(cx, y, 1)?;
    Ok(vec![cx.reshape(y, shape)?])
}

/// 1 at the first of the greatest elements along the axis, else 0.
fn hardmax(cx: &mut NodeCx<'_, '_>, x: Value, axis: i64) -> Res<Value> {
    let d = cx.dtype(x);
    let best = cx.op(ArgMax { axis, keepdims: true, last: false, smallest: false }, &[x])?;
    let shape = cx.shape(x).into_iter().enumerate();
    let along: Vec<Dim> = shape.map(|(i, n)| if i as i64 == axis { n } else { Dim::from(1) }).collect();
    let at = cx.op(Iota { axis, shape: along, dtype: DType::I64 }, &[])?;
    let hit = cx.op(Eq {}, &[at, best])?;
    cx.cast(hit, d)
}
