//! `TopK` with a known k.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::TopK;
use tgc_ir::types::Dim;

pub(crate) const ROWS: &[Row] = &[("TopK", 1, ANY, top_k)];

fn top_k(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let axis = cx.attrs.int("axis", -1)?;
    let k = if cx.opset < 10 {
        match cx.attrs.opt_int("k")? {
            Some(k) => Dim::from(k),
            None => return Err(cx.fail("E-ONNX-007", "attribute `k` is missing").into()),
        }
    } else {
        let list = cx.sizes(1, "k")?;
        match &list[..] {
            [k] => k.clone(),
            _ => return Err(cx.fail("E-ONNX-022", "k must be one number").into()),
        }
    };
    let largest = cx.opset < 11 || cx.attrs.flag("largest", true)?;
    // without `sorted` any order is allowed, so the sorted one is
    cx.attrs.ignore(&["sorted"]);
    cx.op_n(TopK { axis, k, largest }, &[x], 2)
}
