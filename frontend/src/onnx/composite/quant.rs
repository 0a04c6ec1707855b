//! Quantization: linear with a scale for the tensor or one an axis entry, and the dynamic form.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use crate::onnx::weights::dtype_of;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Cast, Dequantize, Div, Eq, Max, Min, Quantize, ReduceMax, ReduceMin, Round, Select, Sub};
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[
    ("QuantizeLinear", 10, ANY, quantize),
    ("DequantizeLinear", 10, ANY, dequantize),
    ("DynamicQuantizeLinear", 11, ANY, dynamic),
];

/// The operands x, scale and zero point (when given), and the axis; per-tensor parameters have rank 0.
fn operands(cx: &mut NodeCx<'_, '_>) -> Res<(Vec<Value>, Option<i64>)> {
    let axis = if cx.opset < 13 { 1 } else { cx.attrs.int("axis", 1)? };
    if cx.opset >= 21 {
        cx.attrs.only("block_size", 0, "blocked quantization is not built")?;
    }
    let (x, mut scale) = (cx.x(0)?, cx.x(1)?);
    let mut zero = cx.opt(2);
    let one = cx.shape(scale).iter().all(|d| d.is(1));
    let per_axis = cx.opset >= 13 && cx.rank(scale) == 1 && !one;
    if !per_axis {
        if !one {
            let m = "the scale must have one element, or rank 1 from opset 13 on";
            return Err(cx.fail("E-ONNX-022", m).into());
        }
        scale = cx.reshape(scale, Vec::new())?;
        zero = zero.map(|z| cx.reshape(z, Vec::new())).transpose()?;
    }
    let axis = if per_axis { Some(cx.axis(axis, cx.rank(x))? as i64) } else { None };
    Ok(([x, scale].into_iter().chain(zero).collect(), axis))
}

fn quantize(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    cx.attrs.ignore(&["saturate"]);
    let (mut ins, axis) = operands(cx)?;
    let named = if cx.opset >= 21 { cx.attrs.int("output_dtype", 0)? } else { 0 };
    if cx.opset >= 23 {
        cx.attrs.only("precision", 0, "the precision of the division is that of the scale")?;
    }
    let to = match (ins.get(2), named) {
        (Some(&z), _) => cx.dtype(z),
        (None, 0) => DType::U8,
        (None, code) => dtype_of(i32::try_from(code).unwrap_or(-1))?,
    };
    if cx.dtype(ins[0]).is_int() {
        let d = cx.dtype(ins[1]);
        ins[0] = cx.cast(ins[0], d)?;
    }
    Ok(vec![cx.op(Quantize { axis, to }, &ins)?])
}

fn dequantize(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (ins, axis) = operands(cx)?;
    let named = if cx.opset >= 23 { cx.attrs.int("output_dtype", 0)? } else { 0 };
    let y = cx.op(Dequantize { axis }, &ins)?;
    if named == 0 {
        return Ok(vec![y]);
    }
    let to = dtype_of(i32::try_from(named).unwrap_or(-1))?;
    Ok(vec![cx.cast(y, to)?])
}

/// Scale and zero point from the operand's own range, which always holds 0.
fn dynamic(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let d = cx.dtype(x);
    let axes: Vec<i64> = (0..cx.rank(x) as i64).collect();
    let (zero, steps) = (cx.num(d, 0.0)?, cx.num(d, 255.0)?);
    let hi = cx.op(ReduceMax { axes: axes.clone(), keepdims: false }, &[x])?;
    let hi = cx.op(Max {}, &[hi, zero])?;
    let lo = cx.op(ReduceMin { axes, keepdims: false }, &[x])?;
    let lo = cx.op(Min {}, &[lo, zero])?;
    let span = cx.op(Sub {}, &[hi, lo])?;
    let scale = cx.op(Div {}, &[span, steps])?;
    // all zeros: any scale will do, and 0 would divide by zero
    let (none, one) = (cx.op(Eq {}, &[scale, zero])?, cx.num(d, 1.0)?);
    let safe = cx.op(Select {}, &[none, one, scale])?;
    let z = cx.op(Div {}, &[lo, safe])?;
    let z = cx.op(Sub {}, &[zero, z])?;
    let z = cx.op(Max {}, &[z, zero])?;
    let z = cx.op(Min {}, &[z, steps])?;
    let z = cx.op(Round {}, &[z])?;
    let z = cx.op(Cast { to: DType::U8 }, &[z])?;
    let y = cx.op(Quantize { axis: None, to: DType::U8 }, &[x, safe, z])?;
    Ok(vec![y, scale, z])
}
