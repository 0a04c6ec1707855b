//! Tensors made from sizes: `ConstantOfShape`, `Range`, `OneHot`, `EyeLike`.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use crate::onnx::weights::dtype_of;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Constant, Eq, Iota, Lt, Mul, Select, Slice, Sub};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{DType, Dim, MAX_KNOWN, Pred};

pub(crate) const ROWS: &[Row] = &[
    ("ConstantOfShape", 9, ANY, constant_of_shape),
    ("Range", 11, ANY, range),
    ("OneHot", 9, ANY, one_hot),
    ("EyeLike", 9, ANY, eye_like),
];

fn constant_of_shape(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let value = match cx.attrs.tensor("value")? {
        None => Scalar::from_f64(DType::F32, 0.0),
        Some(t) => {
            let t = cx.im.reader.tensor(t)?;
            if t.numel() != 1 {
                return Err(cx.fail("E-ONNX-007", format!("`value` must have one element, found {}", t.ty())).into());
            }
            t.get(0)
        }
    };
    let shape = cx.sizes(0, "the shape")?;
    for d in &shape {
        cx.require(Pred::Le(Dim::from(0), d.clone()), "an element of the shape must be a size")?;
    }
    if shape.is_empty() {
        return Ok(vec![cx.op(Constant::scalar(value), &[])?]);
    }
    let value = Constant::scalar(value).value;
    Ok(vec![cx.op(Constant { value, shape: Some(shape) }, &[])?])
}

/// `start + i * delta` for `ceil((limit - start) / delta)` elements.
fn range(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (start, delta) = (cx.x(0)?, cx.x(2)?);
    let d = cx.dtype(start);
    let count = if d.is_float() {
        let at = |i| cx.known_scalar(i).map(Scalar::as_f64);
        let (Some(s), Some(l), Some(k)) = (at(0), at(1), at(2)) else {
            let unknown = (0..3).find(|i| at(*i).is_none()).unwrap_or(0);
            let name = cx.node.input.get(unknown).map_or("", |n| n.as_str());
            let m = format!("start, limit and delta must be constants when they are floats; (operand {unknown}, `{name}`) is data");
            let help = "compute the range in integers and convert it, or fix an input with --const";
            return Err(cx.fail("E-ONNX-016", m).help(help).into());
        };
        let n = ((l - s) / k).ceil().max(0.0);
        if !n.is_finite() || n > 1e9 {
            return Err(cx.fail("E-ONNX-017", format!("a range of {n} elements is too long")).into());
        }
        Dim::from(n as i64)
    } else {
        let (s, l, k) = (one_size(cx, 0, "start")?, one_size(cx, 1, "limit")?, one_size(cx, 2, "delta")?);
        let n = count(cx, s.clone(), l, k.clone())?;
        if let Some(n) = n.as_const().filter(|n| *n <= MAX_KNOWN as i64) {
            let dims: Vec<Dim> = (0..n).map(|i| s.clone() + k.clone() * Dim::from(i)).collect();
            let v = cx.dims_value(dims)?;
            return Ok(vec![cx.cast(v, d)?]);
        }
        n
    };
    let start = cx.reshape(start, Vec::new())?;
    let delta = cx.reshape(delta, Vec::new())?;
    let i = cx.op(Iota { axis: 0, shape: vec![count], dtype: d }, &[])?;
    let scaled = if cx.known_scalar(2).is_some_and(|s| s.as_f64() == 1.0) { i } else { cx.op(Mul {}, &[i, delta])? };
    if cx.known_scalar(0).is_some_and(|s| s.as_int() == Some(0)) {
        return Ok(vec![scaled]);
    }
    Ok(vec![cx.op(Add {}, &[scaled, start])?])
}

fn one_size(cx: &NodeCx<'_, '_>, i: usize, what: &str) -> Res<Dim> {
    let m = || cx.fail("E-ONNX-022", format!("{what} (operand {i}) must be one number"));
    Ok(cx.sizes(i, what)?.pop().ok_or_else(m)?)
}

fn count(cx: &mut NodeCx<'_, '_>, start: Dim, limit: Dim, delta: Dim) -> Res<Dim> {
    let (lo, hi) = cx.range(&delta);
    let (span, step) = match (lo, hi) {
        (1.., _) => (limit - start, delta),
        (_, ..0) => (start - limit, -delta),
        (0, 0) => return Err(cx.fail("E-ONNX-022", "delta is 0; allowed are other numbers").into()),
        _ => {
            cx.require(Pred::Le(Dim::from(1), delta.clone()), "a computed delta must be at least 1")?;
            (limit - start, delta)
        }
    };
    let span = cx.simplify(span.dmax(&Dim::from(0)));
    Ok(cx.simplify((span + step.clone() - Dim::from(1)).floordiv(&step)))
}

fn one_hot(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (indices, values) = (cx.x(0)?, cx.x(2)?);
    let depth = match cx.known_scalar(1) {
        Some(d) if d.dtype.is_float() => vec![Dim::from(d.as_f64() as i64)],
        _ => cx.sizes(1, "the depth")?,
    };
    let [depth] = &depth[..] else { return Err(cx.fail("E-ONNX-022", "the depth must be one number").into()) };
    cx.require(Pred::Le(Dim::from(0), depth.clone()), "the depth must not be negative")?;
    let mut shape = cx.shape(indices);
    let axis = cx.attrs.int("axis", -1)?;
    let axis = cx.axis(axis, shape.len() + 1)?;
    let ix = cx.cast(indices, DType::I64)?;
    shape.insert(axis, Dim::from(1));
    let ix = cx.reshape(ix, shape.clone())?;
    let (n, zero) = (cx.dim_value(depth.clone())?, cx.num(DType::I64, 0.0)?);
    let back = cx.op(Add {}, &[ix, n])?;
    let negative = cx.op(Lt {}, &[ix, zero])?;
    let ix = cx.op(Select {}, &[negative, back, ix])?;
    let mut along = vec![Dim::from(1); shape.len()];
    along[axis] = depth.clone();
    let i = cx.op(Iota { axis: axis as i64, shape: along, dtype: DType::I64 }, &[])?;
    let hit = cx.op(Eq {}, &[ix, i])?;
    let mut pick = |at: usize| {
        let s = Slice { starts: vec![Dim::from(at)], sizes: vec![Dim::from(1)], steps: vec![1] };
        let v = cx.op(s, &[values])?;
        cx.reshape(v, Vec::new())
    };
    let (off, on) = (pick(0)?, pick(1)?);
    Ok(vec![cx.op(Select {}, &[hit, on, off])?])
}

fn eye_like(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let d = match cx.attrs.opt_int("dtype")? {
        Some(code) => dtype_of(i32::try_from(code).unwrap_or(-1))?,
        None => cx.dtype(x),
    };
    let k = cx.attrs.int("k", 0)?;
    let shape = cx.shape(x);
    let [rows, cols] = &shape[..] else { return Err(cx.fail("E-ONNX-022", "the operand must have rank 2").into()) };
    let one = Dim::from(1);
    let row = cx.op(Iota { axis: 0, shape: vec![rows.clone(), one.clone()], dtype: DType::I64 }, &[])?;
    let col = cx.op(Iota { axis: 1, shape: vec![one, cols.clone()], dtype: DType::I64 }, &[])?;
    let off = cx.op(Sub {}, &[col, row])?;
    let k = cx.op(Constant::scalar(Scalar::from_int(DType::I64, k.into())), &[])?;
    let hit = cx.op(Eq {}, &[off, k])?;
    Ok(vec![cx.cast(hit, d)?])
}
