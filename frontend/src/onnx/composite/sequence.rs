//! Sequences of a batch, each with a length or place of its own: `ReverseSequence` and `TensorScatter`. The place of each
//! element along the axis is computed; one that is out of range becomes one that the gather or scatter refuses.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, GatherElements, Iota, Lt, Modulo, ScatterElements, Select, Sub, UpdateSlice};
use tgc_ir::types::{DType, Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("ReverseSequence", 10, 27, reverse), ("TensorScatter", 24, ANY, tensor_scatter)];

/// `0, 1 ..` along an axis of `rank`, 1 on the others.
fn count(cx: &mut NodeCx<'_, '_>, rank: usize, axis: usize, n: &Dim) -> Res<Value> {
    let mut shape = vec![Dim::from(1); rank];
    shape[axis] = n.clone();
    cx.op(Iota { axis: axis as i64, shape, dtype: DType::I64 }, &[])
}

/// A vector with one number a batch entry, laid along `axis` of `rank`.
fn per_entry(cx: &mut NodeCx<'_, '_>, v: Value, rank: usize, axis: usize, batch: &Dim) -> Res<Value> {
    let shape = cx.shape(v);
    let [n] = &shape[..] else {
        return Err(cx.fail("E-ONNX-022", "lengths and places must have rank 1").into());
    };
    cx.require(Pred::Eq(n.clone(), batch.clone()), "there must be one length or place a batch entry")?;
    let mut to = vec![Dim::from(1); rank];
    to[axis] = batch.clone();
    let v = cx.cast(v, DType::I64)?;
    cx.reshape(v, to)
}

fn reverse(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (batch, time) = (cx.attrs.int("batch_axis", 1)?, cx.attrs.int("time_axis", 0)?);
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    if !matches!((batch, time), (0, 1) | (1, 0)) || shape.len() < 2 {
        let m = "batch_axis and time_axis must be 0 and 1, or 1 and 0, and the rank at least 2";
        return Err(cx.fail("E-ONNX-007", m).into());
    }
    let (batch, time) = (batch as usize, time as usize);
    let lens = cx.x(1)?;
    let len = per_entry(cx, lens, shape.len(), batch, &shape[batch])?;
    let at = count(cx, shape.len(), time, &shape[time])?;
    let one = cx.dim_value(Dim::from(1))?;
    let last = cx.op(Sub {}, &[len, one])?;
    let back = cx.op(Sub {}, &[last, at])?;
    let inside = cx.op(Lt {}, &[at, len])?;
    let at = cx.op(Select {}, &[inside, back, at])?;
    let at = cx.expand(at, shape)?;
    Ok(vec![cx.op(GatherElements { axis: time as i64 }, &[x, at])?])
}

fn tensor_scatter(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let circular = match cx.attrs.string("mode", "linear")?.as_str() {
        "linear" => false,
        "circular" => true,
        other => {
            let m = format!("mode = `{other}` is not known (allowed: linear, circular)");
            return Err(cx.fail("E-ONNX-007", m).into());
        }
    };
    let (x, new) = (cx.x(0)?, cx.x(1)?);
    let (xs, us) = (cx.shape(x), cx.shape(new));
    let axis = cx.attrs.int("axis", -2)?;
    let axis = cx.axis(axis, xs.len())?;
    if axis == 0 || us.len() != xs.len() {
        let m = "the axis must not be 0, and the update must have the cache's rank";
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    for (n, (d, k)) in xs.iter().zip(&us).enumerate() {
        let pred = if n == axis { Pred::Le(k.clone(), d.clone()) } else { Pred::Eq(k.clone(), d.clone()) };
        cx.require(pred, "the update must have the cache's shape, and be no longer on the axis")?;
    }
    let start = match cx.opt(2) {
        Some(v) => per_entry(cx, v, xs.len(), 0, &xs[0])?,
        None => cx.dim_value(Dim::from(0))?,
    };
    if !circular && (xs[0].is(1) || cx.opt(2).is_none()) {
        return one_run(cx, (x, new), start, axis, &xs[axis]);
    }
    let at = count(cx, xs.len(), axis, &us[axis])?;
    let at = cx.op(Add {}, &[at, start])?;
    let size = cx.dim_value(xs[axis].clone())?;
    let at = if circular { cx.op(Modulo {}, &[at, size])? } else { not_negative(cx, at, size)? };
    let mut to = us;
    to[0] = xs[0].clone();
    let at = cx.expand(at, to)?;
    let op = ScatterElements { axis: axis as i64, reduction: "none".to_string() };
    Ok(vec![cx.op(op, &[x, at, new])?])
}

/// The update at one place for the whole batch.
fn one_run(cx: &mut NodeCx<'_, '_>, (x, new): (Value, Value), start: Value, axis: usize, size: &Dim) -> Res<Vec<Value>> {
    let start = cx.reshape(start, Vec::new())?;
    let one = cx.dim_value(size.clone() + Dim::from(1))?;
    let start = not_negative(cx, start, one)?;
    Ok(vec![cx.op(UpdateSlice { axis: axis as i64 }, &[x, start, new])?])
}

/// A negative place would count from the end: `beyond`, which is out of range, instead.
fn not_negative(cx: &mut NodeCx<'_, '_>, at: Value, beyond: Value) -> Res<Value> {
    let zero = cx.dim_value(Dim::from(0))?;
    let low = cx.op(Lt {}, &[at, zero])?;
    cx.op(Select {}, &[low, beyond, at])
}
