//! `Constant` in all its forms.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[("Constant", 1, ANY, constant)];

fn constant(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let mut found: Vec<Tensor> = Vec::new();
    if let Some(t) = cx.attrs.tensor("value")? {
        found.push(cx.im.reader.tensor(t)?);
    }
    if let Some(v) = cx.attrs.opt_float("value_float")? {
        found.push(Tensor::from_f64(DType::F32, &[], &[v]));
    }
    if let Some(v) = cx.attrs.floats("value_floats")? {
        let v: Vec<f64> = v.into_iter().map(f64::from).collect();
        found.push(Tensor::from_f64(DType::F32, &[v.len()], &v));
    }
    if let Some(v) = cx.attrs.opt_int("value_int")? {
        found.push(Tensor::from_ints(DType::I64, &[], &[v]));
    }
    if let Some(v) = cx.attrs.ints("value_ints")? {
        found.push(Tensor::from_ints(DType::I64, &[v.len()], &v));
    }
    for (name, what) in [("value_string", "text"), ("value_strings", "text"), ("sparse_value", "a sparse tensor")] {
        if cx.attrs.raw(name).is_some() {
            return Err(cx.fail("E-ONNX-008", format!("{what} (attribute `{name}`) is not supported")).into());
        }
    }
    let (Some(t), true) = (found.pop(), found.is_empty()) else {
        return Err(cx.fail("E-ONNX-007", "exactly one value attribute is wanted").into());
    };
    let name = cx.node.output.first().map_or("", |o| o.as_str()).to_string();
    Ok(vec![cx.im.tensor(cx.g, &name, t, &cx.loc)?])
}
