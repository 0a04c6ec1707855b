//! Normalisations: batch and layer norm are IR ops, the others formulas. Narrow floats are computed in f32.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, BatchNorm, Div, Eq, LayerNorm, Mul, Op, Reciprocal, ReduceMean, ReduceSum};
use tgc_ir::ops::{Select, Sqrt, Sub};
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[
    ("BatchNormalization", 6, ANY, batch_norm),
    ("LayerNormalization", 17, ANY, layer_norm),
    ("InstanceNormalization", 6, ANY, instance_norm),
    ("GroupNormalization", 18, ANY, group_norm),
    ("MeanVarianceNormalization", 9, ANY, mean_variance),
    ("RMSNormalization", 23, ANY, rms_norm),
    ("LpNormalization", 1, ANY, lp_norm),
];

/// Epsilon as the number the decimal in the file means: exporters write it through f32.
fn epsilon(cx: &NodeCx<'_, '_>) -> Res<f64> {
    cx.attrs.float("epsilon", 1e-5)
}

fn batch_norm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let epsilon = epsilon(cx)?;
    cx.attrs.ignore(&["momentum", "consumed_inputs"]);
    let training = match cx.opset {
        ..7 => !cx.attrs.flag("is_test", false)?,
        7..14 => (1..5).any(|i| cx.wants(i)),
        _ => cx.attrs.flag("training_mode", false)?,
    };
    if training {
        let m = "training mode is not supported";
        return Err(cx.fail("E-ONNX-023", m).help("export the model in inference mode (model.eval())").into());
    }
    if cx.opset < 9 {
        cx.attrs.only("spatial", 1, "statistics for every activation are not built")?;
    }
    let ins = (0..5).map(|i| cx.x(i)).collect::<Res<Vec<_>>>()?;
    let d = cx.dtype(ins[0]);
    // statistics may have a wider type than the data
    let widest = ins.iter().map(|&v| cx.dtype(v)).fold(d, |a, b| if b.bits() > a.bits() { b } else { a });
    let ins = ins.into_iter().map(|v| cx.cast(v, widest)).collect::<Res<Vec<_>>>()?;
    let y = cx.op(BatchNorm { epsilon }, &ins)?;
    Ok(vec![cx.cast(y, d)?])
}

fn layer_norm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let epsilon = epsilon(cx)?;
    let stash = cx.attrs.int("stash_type", 1)?;
    let (x, scale) = (cx.x(0)?, cx.x(1)?);
    let rank = cx.rank(x);
    let axis = cx.attrs.int("axis", -1)?;
    let axis = cx.axis(axis, rank)?;
    let axes: Vec<i64> = (axis as i64..rank as i64).collect();
    let ins: Vec<Value> = [x, scale].into_iter().chain(cx.opt(2)).collect();
    let y = cx.op(LayerNorm { axes: axes.clone(), epsilon }, &ins)?;
    if !cx.wants(1) && !cx.wants(2) {
        return Ok(vec![y]);
    }
    let stash = crate::onnx::weights::dtype_of(i32::try_from(stash).unwrap_or(-1))?;
    let x = cx.cast(x, stash)?;
    let (mean, centred) = centre(cx, x, &axes)?;
    let dev = deviation(cx, centred, &axes, epsilon)?;
    let inv = cx.op(Reciprocal {}, &[dev])?;
    Ok(vec![y, mean, inv])
}

/// The mean over axes (kept as 1), and `x - mean`.
fn centre(cx: &mut NodeCx<'_, '_>, x: Value, axes: &[i64]) -> Res<(Value, Value)> {
    let mean = cx.op(ReduceMean { axes: axes.to_vec(), keepdims: true }, &[x])?;
    Ok((mean, cx.op(Sub {}, &[x, mean])?))
}

/// `sqrt(mean(x^2) + eps)` over axes.
fn deviation(cx: &mut NodeCx<'_, '_>, x: Value, axes: &[i64], eps: f64) -> Res<Value> {
    let sq = cx.op(Mul {}, &[x, x])?;
    let var = cx.op(ReduceMean { axes: axes.to_vec(), keepdims: true }, &[sq])?;
    let d = cx.dtype(x);
    let e = cx.num(d, eps)?;
    let v = cx.op(Add {}, &[var, e])?;
    cx.op(Sqrt {}, &[v])
}

fn normalised(cx: &mut NodeCx<'_, '_>, x: Value, axes: &[i64], eps: f64) -> Res<Value> {
    let (_, c) = centre(cx, x, axes)?;
    let dev = deviation(cx, c, axes, eps)?;
    cx.op(Div {}, &[c, dev])
}

/// `x * scale + bias` with one value a channel (axis 1).
fn per_channel(cx: &mut NodeCx<'_, '_>, x: Value, scale: Value, bias: Value) -> Res<Value> {
    let rank = cx.rank(x);
    let mut y = x;
    for (v, op) in [(scale, Op::from(Mul {})), (bias, Op::from(Add {}))] {
        let mut shape = cx.shape(v);
        shape.extend(vec![Dim::from(1); rank.saturating_sub(2)]);
        let d = cx.dtype(x);
        let v = cx.cast(v, d)?;
        let v = cx.reshape(v, shape)?;
        y = cx.op(op, &[y, v])?;
    }
    Ok(y)
}

fn instance_norm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let eps = epsilon(cx)?;
    cx.attrs.ignore(&["consumed_inputs"]);
    let (x, scale, bias) = (cx.x(0)?, cx.x(1)?, cx.x(2)?);
    let axes: Vec<i64> = (2..cx.rank(x) as i64).collect();
    if axes.is_empty() {
        return Err(cx.fail("E-ONNX-022", "the operand needs rank 3 or more").into());
    }
    Ok(vec![cx.wide(x, |cx, x| {
        let y = normalised(cx, x, &axes, eps)?;
        per_channel(cx, y, scale, bias)
    })?])
}

fn group_norm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let eps = epsilon(cx)?;
    cx.attrs.ignore(&["stash_type"]);
    let Some(groups) = cx.attrs.opt_int("num_groups")?.filter(|g| *g >= 1) else {
        return Err(cx.fail("E-ONNX-007", "attribute `num_groups` must be a number of at least 1").into());
    };
    let (x, scale, bias) = (cx.x(0)?, cx.x(1)?, cx.x(2)?);
    let shape = cx.shape(x);
    if shape.len() < 3 {
        return Err(cx.fail("E-ONNX-022", "the operand needs rank 3 or more").into());
    }
    let (channels, n) = (shape[1].clone(), Dim::from(groups));
    let each = channels.div_exact(&n).unwrap_or_else(|| channels.floordiv(&n));
    let whole = Pred::Eq(each.clone() * n, channels);
    cx.require(whole, &format!("the channels must divide into {groups} groups"))?;
    let inner: Dim = each * shape[2..].iter().cloned().product::<Dim>();
    let grouped = vec![shape[0].clone(), Dim::from(groups), inner];
    let by_group = cx.opset < 21;
    Ok(vec![cx.wide(x, |cx, x| {
        let y = cx.reshape(x, grouped)?;
        let y = normalised(cx, y, &[2], eps)?;
        if by_group {
            // until opset 20 there was one scale a group
            let y = per_channel(cx, y, scale, bias)?;
            return cx.reshape(y, shape);
        }
        let y = cx.reshape(y, shape)?;
        per_channel(cx, y, scale, bias)
    })?])
}

fn mean_variance(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let axes = cx.attrs.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    cx.axes(&axes, cx.rank(x))?;
    Ok(vec![cx.wide(x, |cx, x| {
        let (_, c) = centre(cx, x, &axes)?;
        let dev = deviation(cx, c, &axes, 0.0)?;
        let d = cx.dtype(x);
        let e = cx.num(d, 1e-9)?;
        let dev = cx.op(Add {}, &[dev, e])?;
        cx.op(Div {}, &[c, dev])
    })?])
}

fn rms_norm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let eps = epsilon(cx)?;
    cx.attrs.ignore(&["stash_type"]);
    let (x, scale) = (cx.x(0)?, cx.x(1)?);
    let rank = cx.rank(x);
    let axis = cx.attrs.int("axis", -1)?;
    let axes: Vec<i64> = (cx.axis(axis, rank)? as i64..rank as i64).collect();
    let y = cx.wide(x, |cx, x| {
        let dev = deviation(cx, x, &axes, eps)?;
        cx.op(Div {}, &[x, dev])
    })?;
    let d = cx.dtype(scale);
    let y = cx.cast(y, d)?;
    Ok(vec![cx.op(Mul {}, &[y, scale])?])
}

fn lp_norm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (axis, p) = (cx.attrs.int("axis", -1)?, cx.attrs.int("p", 2)?);
    if !matches!(p, 1 | 2) {
        return Err(cx.fail("E-ONNX-007", format!("p = {p} is not known (allowed: 1, 2)")).into());
    }
    let x = cx.x(0)?;
    let axis = cx.axis(axis, cx.rank(x))? as i64;
    Ok(vec![cx.wide(x, |cx, x| {
        let t = if p == 1 { cx.op(Abs {}, &[x])? } else { cx.op(Mul {}, &[x, x])? };
        let s = cx.op(ReduceSum { axes: vec![axis], keepdims: true }, &[t])?;
        let n = if p == 1 { s } else { cx.op(Sqrt {}, &[s])? };
        // a vector of zeros stays one
        let d = cx.dtype(x);
        let (zero, one) = (cx.num(d, 0.0)?, cx.num(d, 1.0)?);
        let none = cx.op(Eq {}, &[n, zero])?;
        let n = cx.op(Select {}, &[none, one, n])?;
        cx.op(Div {}, &[x, n])
    })?])
}

