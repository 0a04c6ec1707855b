//! `Einsum`. Narrow floats are computed in f32 and rounded once.

use crate::formula::einsum;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[("Einsum", 12, ANY, product)];

fn product(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let ins = cx.all()?;
    let text = cx.attrs.string("equation", "")?.replace(' ', "");
    let ranks: Vec<usize> = ins.iter().map(|v| cx.rank(*v)).collect();
    let eq = einsum::equation(&text, &ranks)
        .map_err(|why| cx.fail("E-ONNX-007", format!("equation = `{text}`: {why}")))?;
    let d = cx.dtype(ins[0]);
    let inner = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
    let ins = ins.into_iter().map(|v| cx.cast(v, inner)).collect::<Res<Vec<Value>>>()?;
    let y = einsum::einsum(cx, &eq, &ins)?;
    Ok(vec![cx.cast(y, d)?])
}
