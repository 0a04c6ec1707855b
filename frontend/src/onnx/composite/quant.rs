//! Quantization: linear with a scale for the tensor, one an axis entry or one a block of an axis, and the dynamic form.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use crate::onnx::weights::dtype_of;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Cast, Dequantize, Div, Eq, Max, Min, Mul, Quantize, ReduceMax, ReduceMin, Round, Select};
use tgc_ir::ops::{Slice, Sub};
use tgc_ir::types::{DType, Dim, Pred};

pub(crate) const ROWS: &[Row] = &[
    ("QuantizeLinear", 10, ANY, quantize),
    ("DequantizeLinear", 10, ANY, dequantize),
    ("DynamicQuantizeLinear", 11, ANY, dynamic),
];

/// The operands x, scale and zero point (when given), and the axis; per-tensor parameters have rank 0.
fn operands(cx: &mut NodeCx<'_, '_>) -> Res<(Vec<Value>, Option<i64>)> {
    let axis = if cx.opset < 13 { 1 } else { cx.attrs.int("axis", 1)? };
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

/// A scale or zero point with one element a block of `size` along the axis, as one an element of x.
fn blocks(cx: &mut NodeCx<'_, '_>, v: Value, x: Value, axis: usize, size: i64) -> Res<Value> {
    let (to, mut shape) = (cx.shape(x), cx.shape(v));
    if shape.len() != to.len() {
        let m = "with block_size, scale and zero point must have the rank of the operand";
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let n = Dim::from(size);
    for (a, (d, k)) in to.iter().zip(&mut shape).enumerate() {
        let want = if a == axis { (d.clone() + n.clone() - Dim::from(1)).floordiv(&n) } else { d.clone() };
        cx.require(Pred::Eq(k.clone(), want.clone()), "there must be one scale and zero point a block")?;
        *k = want;
    }
    let with = |n: Dim| {
        let mut s = shape.clone();
        s.insert(axis + 1, n);
        s
    };
    let v = cx.reshape(v, with(Dim::from(1)))?;
    let v = cx.expand(v, with(n.clone()))?;
    let mut long = shape.clone();
    long[axis] = shape[axis].clone() * n;
    let v = cx.reshape(v, long.clone())?;
    if long == to {
        return Ok(v);
    }
    // the last block may be longer than what is left of the axis
    let (starts, steps) = (vec![Dim::from(0); to.len()], vec![1; to.len()]);
    cx.op(Slice { starts, sizes: to, steps }, &[v])
}

/// The operands x, scale and zero point (when given), both of these of x's shape, where attribute `block_size` is given.
fn blocked(cx: &mut NodeCx<'_, '_>) -> Res<Option<(Value, Value, Option<Value>)>> {
    let size = if cx.opset >= 21 { cx.attrs.int("block_size", 0)? } else { 0 };
    if size == 0 {
        return Ok(None);
    }
    if size < 0 {
        return Err(cx.fail("E-ONNX-007", format!("block_size = {size}; allowed are 0 and more")).into());
    }
    let (x, scale) = (cx.x(0)?, cx.x(1)?);
    let axis = cx.attrs.int("axis", 1)?;
    let axis = cx.axis(axis, cx.rank(x))?;
    let scale = blocks(cx, scale, x, axis, size)?;
    let zero = cx.opt(2).map(|z| blocks(cx, z, x, axis, size)).transpose()?;
    Ok(Some((x, scale, zero)))
}

/// The type to compute in, with `q` the quantized type: f32 holds all values of 16 bits, f64 all of 32.
fn inner(cx: &NodeCx<'_, '_>, q: DType, float: Value) -> Res<DType> {
    let d = cx.dtype(float);
    if !matches!(q, DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32) || !d.is_float() {
        let m = format!("the quantized type must be i8, u8, i16, u16 or i32, and the scale a float; found {q} and {d}");
        return Err(cx.fail("E-ONNX-008", m).into());
    }
    Ok(if q == DType::I32 || d == DType::F64 { DType::F64 } else { DType::F32 })
}

fn quantize_blocks(cx: &mut NodeCx<'_, '_>, (x, scale, zero): (Value, Value, Option<Value>), to: DType) -> Res<Value> {
    let wide = inner(cx, to, scale)?;
    let (x, scale) = (cx.cast(x, wide)?, cx.cast(scale, wide)?);
    let y = cx.op(Div {}, &[x, scale])?;
    let mut y = cx.op(Round {}, &[y])?;
    if let Some(z) = zero {
        let z = cx.cast(z, wide)?;
        y = cx.op(Add {}, &[y, z])?;
    }
    cx.op(Cast { to }, &[y])
}

fn dequantize_blocks(cx: &mut NodeCx<'_, '_>, (x, scale, zero): (Value, Value, Option<Value>)) -> Res<Value> {
    let (d, wide) = (cx.dtype(scale), inner(cx, cx.dtype(x), scale)?);
    let mut y = cx.cast(x, wide)?;
    if let Some(z) = zero {
        let z = cx.cast(z, wide)?;
        y = cx.op(Sub {}, &[y, z])?;
    }
    let scale = cx.cast(scale, wide)?;
    let y = cx.op(Mul {}, &[y, scale])?;
    cx.cast(y, d)
}

fn quantize(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    cx.attrs.ignore(&["saturate"]);
    let blocked = blocked(cx)?;
    let named = if cx.opset >= 21 { cx.attrs.int("output_dtype", 0)? } else { 0 };
    if cx.opset >= 23 {
        cx.attrs.only("precision", 0, "the precision of the division is that of the scale")?;
    }
    let to = match (cx.opt(2), named) {
        (Some(z), _) => cx.dtype(z),
        (None, 0) => DType::U8,
        (None, code) => dtype_of(i32::try_from(code).unwrap_or(-1))?,
    };
    if let Some(b) = blocked {
        return Ok(vec![quantize_blocks(cx, b, to)?]);
    }
    let (mut ins, axis) = operands(cx)?;
    if cx.dtype(ins[0]).is_int() {
        let d = cx.dtype(ins[1]);
        ins[0] = cx.cast(ins[0], d)?;
    }
    Ok(vec![cx.op(Quantize { axis, to }, &ins)?])
}

fn dequantize(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let named = if cx.opset >= 23 { cx.attrs.int("output_dtype", 0)? } else { 0 };
    let y = match blocked(cx)? {
        Some(b) => dequantize_blocks(cx, b)?,
        None => {
            let (ins, axis) = operands(cx)?;
            cx.op(Dequantize { axis }, &ins)?
        }
    };
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
