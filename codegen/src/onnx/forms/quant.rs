//! Quantization.

use super::{Form, one};
use crate::onnx::build::{Cx, Val, int};
use crate::onnx::graph::Node;
use crate::onnx::types::takes;
use tgc_ir::ops::{Dequantize, Quantize};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;

/// Opset from which on scales may be f16 and bf16.
const NARROW_SCALES: i64 = 19;

fn scale_fits(cx: &Cx<'_>, d: DType) -> bool {
    d == DType::F32 || (matches!(d, DType::F16 | DType::BF16) && cx.opset >= NARROW_SCALES)
}

pub(super) fn quantize(cx: &mut Cx<'_>, n: &Node<'_>, op: &Quantize) -> Form {
    if !takes("QuantizeLinear", cx.opset, op.to) || !scale_fits(cx, n.ins[1].dtype) {
        return Ok(None);
    }
    let mut ins: Vec<Val> = n.ins.clone();
    if ins.len() == 2 && op.to != DType::U8 {
        // the zero point says which type is wanted
        let shape = n.in_types[1].as_fixed();
        let Some(shape) = shape else { return Ok(None) };
        let numel = shape.iter().product();
        ins.push(cx.constant(&Tensor::from_ints(op.to, &shape, &vec![0; numel]), "zero_point"));
    }
    let attrs = op.axis.map(|a| int("axis", a)).into_iter().collect();
    one(Ok(cx.node("QuantizeLinear", &ins.iter().collect::<Vec<_>>(), attrs, op.to)))
}

pub(super) fn dequantize(cx: &mut Cx<'_>, n: &Node<'_>, op: &Dequantize) -> Form {
    if !takes("DequantizeLinear", cx.opset, n.ins[0].dtype) || !scale_fits(cx, n.ins[1].dtype) {
        return Ok(None);
    }
    let attrs = op.axis.map(|a| int("axis", a)).into_iter().collect();
    one(Ok(cx.node("DequantizeLinear", &n.ins.iter().collect::<Vec<_>>(), attrs, n.outs[0].dtype)))
}
