//! `Softmax` and `LogSoftmax`: before opset 13 over all axes from one on, taken as a matrix; `Hardmax` likewise is refused.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{LogSoftmax, Op, Softmax};
use tgc_ir::types::Dim;

pub(crate) const ROWS: &[Row] = &[
    ("Softmax", 1, ANY, |cx| softmax(cx, |axis| Softmax { axis }.into())),
    ("LogSoftmax", 1, ANY, |cx| softmax(cx, |axis| LogSoftmax { axis }.into())),
];

fn softmax(cx: &mut NodeCx<'_, '_>, op: fn(i64) -> Op) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    if cx.opset >= 13 {
        let axis = cx.attrs.int("axis", -1)?;
        return Ok(vec![cx.op(op(axis), &[x])?]);
    }
    let axis = cx.attrs.int("axis", 1)?;
    let at = if axis == shape.len() as i64 { shape.len() } else { cx.axis(axis, shape.len())? };
    if at + 1 == shape.len() {
        return Ok(vec![cx.op(op(-1), &[x])?]);
    }
    let (rows, cols) = shape.split_at(at);
    let flat: Vec<Dim> = vec![rows.iter().cloned().product(), cols.iter().cloned().product()];
    let y = cx.reshape(x, flat)?;
    let y = cx.op(op(1), &[y])?;
    Ok(vec![cx.reshape(y, shape)?])
}
