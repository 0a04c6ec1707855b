//! Quantization, and products of integers of 8 bits.

use super::{Form, one};
use crate::onnx::build::{Cx, Made, Val, int};
use crate::onnx::graph::Node;
use crate::onnx::scalar::binary;
use crate::onnx::types::takes;
use tgc_ir::ops::{Dequantize, Quantize};
use tgc_ir::scalar::Bin;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;
use tgc_proto::AttributeProto;

/// Opset from which on scales may be f16 and bf16.
const NARROW_SCALES: i64 = 19;

fn scale_fits(cx: &Cx<'_>, d: DType) -> bool {
    d == DType::F32 || (matches!(d, DType::F16 | DType::BF16) && cx.opset >= NARROW_SCALES)
}

pub(super) fn quantize(cx: &mut Cx<'_>, n: &Node<'_>, op: &Quantize) -> Form {
    let d = n.ins[1].dtype;
    if !takes("QuantizeLinear", cx.opset, op.to) || !matches!(d, DType::F32 | DType::F16 | DType::BF16) {
        return Ok(None);
    }
    let mut ins: Vec<Val> = n.ins.clone();
    if d == DType::BF16 || !scale_fits(cx, d) {
        // the quotient is one of f32 in any case
        ins = [&ins[0], &ins[1]].map(|v| cx.cast(v, DType::F32)).into_iter().chain(ins.drain(2..)).collect();
    }
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

/// Both operands as integers of 8 bits and their zero points, where they are such.
fn narrow(cx: &mut Cx<'_>, n: &Node<'_>) -> Option<Vec<Val>> {
    let origin = |v: &Val| match cx.made.get(&v.name) {
        Some(Made::Widened(x, zero)) => Some((x.clone(), zero.clone())),
        _ => None,
    };
    let ((a, za), (b, zb)) = (origin(&n.ins[0])?, origin(&n.ins[1])?);
    if za.is_none() && zb.is_none() {
        return Some(vec![a, b]);
    }
    let none = |cx: &mut Cx<'_>, zero: Option<Val>, x: &Val| match zero {
        None => cx.num(x.dtype, 0.0),
        Some(z) if cx.rank(&z) == Some(0) => z,
        Some(z) => {
            let shape = cx.ints(&[], "shape");
            cx.node("Reshape", &[&z, &shape], Vec::new(), z.dtype)
        }
    };
    let (za, zb) = (none(cx, za, &a), none(cx, zb, &b));
    Some(vec![a, b, za, zb])
}

pub(super) fn matmul(cx: &mut Cx<'_>, n: &Node<'_>) -> Form {
    if let Some(ins) = narrow(cx, n) {
        return one(Ok(cx.node("MatMulInteger", &ins.iter().collect::<Vec<_>>(), Vec::new(), DType::I32)));
    }
    one(cx.typed1("MatMul", &n.ins.iter().collect::<Vec<_>>(), Vec::new(), n.outs[0].dtype))
}

/// A convolution of such operands; the bias is added to its result.
pub(super) fn conv(cx: &mut Cx<'_>, n: &Node<'_>, attrs: &[AttributeProto]) -> Form {
    let Some(ins) = narrow(cx, n) else { return Ok(None) };
    let y = cx.node("ConvInteger", &ins.iter().collect::<Vec<_>>(), attrs.to_vec(), DType::I32);
    let Some(bias) = n.ins.get(2) else { return one(Ok(y)) };
    let mut shape = vec![1; n.outs[0].rank()];
    shape[1] = -1;
    let shape = cx.ints(&shape, "shape");
    let bias = cx.node("Reshape", &[bias, &shape], Vec::new(), bias.dtype);
    one(binary(cx, Bin::Add, &y, &bias))
}
