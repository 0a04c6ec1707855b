//! `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss`: the element of each target class, weighted, and reduced.
//! Narrow floats are computed in f32 and rounded once.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Div, Eq, Gather, GatherElements, LogSoftmax, Lt, Mul, Neg, Not, ReduceMean, ReduceSum, Select};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{DType, Dim, Pred};

pub(crate) const ROWS: &[Row] = &[
    ("NegativeLogLikelihoodLoss", 12, ANY, |cx| {
        let x = cx.x(0)?;
        let d = cx.dtype(x);
        let x = widened(cx, x)?;
        let y = loss(cx, x)?;
        Ok(vec![cx.cast(y, d)?])
    }),
    ("SoftmaxCrossEntropyLoss", 12, ANY, |cx| {
        let x = cx.x(0)?;
        let d = cx.dtype(x);
        let x = widened(cx, x)?;
        let log = cx.op(LogSoftmax { axis: 1 }, &[x])?;
        let y = loss(cx, log)?;
        Ok(vec![cx.cast(y, d)?, cx.cast(log, d)?])
    }),
];

fn widened(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    if cx.dtype(x) == DType::F64 { Ok(x) } else { cx.cast(x, DType::F32) }
}

/// The loss of the logarithms `x` [N, C, ..] for the classes in operand 1 [N, ..].
fn loss(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let reduction = cx.attrs.string("reduction", "mean")?;
    let classes = classes(cx, x)?;
    let (at, counted) = places(cx, x, classes)?;
    let d = cx.dtype(x);
    let zero = cx.num(d, 0.0)?;
    let mut weight = match cx.opt(2) {
        None => None,
        Some(w) => {
            cx.require(Pred::Eq(cx.shape(w).iter().cloned().product(), cx.shape(x)[1].clone()), "one weight a class is wanted")?;
            let w = cx.cast(w, d)?;
            Some(cx.op(Gather { axis: 0 }, &[w, at])?)
        }
    };
    let mut y = picked(cx, x, at)?;
    if let Some(w) = weight {
        y = cx.op(Mul {}, &[y, w])?;
    }
    if let Some(c) = counted {
        y = cx.op(Select {}, &[c, y, zero])?;
        weight = Some(match weight {
            Some(w) => cx.op(Select {}, &[c, w, zero])?,
            None => cx.cast(c, d)?,
        });
    }
    reduced(cx, y, weight, &reduction)
}

/// Operand 1 as i64, its shape checked against that of `x`.
fn classes(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let t = cx.x(1)?;
    let (xs, ts) = (cx.shape(x), cx.shape(t));
    if xs.len() < 2 || ts.len() + 1 != xs.len() {
        let m = format!("scores need rank 2 or more and classes one less, found {} and {}", xs.len(), ts.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    for (a, b) in xs.into_iter().enumerate().filter(|(i, _)| *i != 1).map(|e| e.1).zip(ts) {
        cx.require(Pred::Eq(a, b), "scores and classes must have the same dims, but for the second of the scores")?;
    }
    cx.cast(t, DType::I64)
}

/// The classes as indices, and which of them count (none: all do). An ignored one reads class 0; a negative one becomes
/// an index that a gather refuses, as it would count from the end.
fn places(cx: &mut NodeCx<'_, '_>, x: Value, classes: Value) -> Res<(Value, Option<Value>)> {
    let zero = cx.dim_value(Dim::from(0))?;
    let beyond = cx.dim_value(cx.shape(x)[1].clone())?;
    let negative = cx.op(Lt {}, &[classes, zero])?;
    let at = cx.op(Select {}, &[negative, beyond, classes])?;
    let Some(ignored) = cx.attrs.opt_int("ignore_index")? else { return Ok((at, None)) };
    let ignored = Scalar::from_int(DType::I64, ignored.into());
    let ignored = cx.op(tgc_ir::ops::Constant::scalar(ignored), &[])?;
    let skip = cx.op(Eq {}, &[classes, ignored])?;
    let at = cx.op(Select {}, &[skip, zero, at])?;
    Ok((at, Some(cx.op(Not {}, &[skip])?)))
}

/// `-x[n, at[n, ..], ..]`.
fn picked(cx: &mut NodeCx<'_, '_>, x: Value, at: Value) -> Res<Value> {
    let shape = cx.shape(at);
    let mut column = shape.clone();
    column.insert(1, Dim::from(1));
    let at = cx.reshape(at, column)?;
    let y = cx.op(GatherElements { axis: 1 }, &[x, at])?;
    let y = cx.reshape(y, shape)?;
    cx.op(Neg {}, &[y])
}

/// The mean divides by the sum of weights.
fn reduced(cx: &mut NodeCx<'_, '_>, y: Value, weight: Option<Value>, reduction: &str) -> Res<Value> {
    let axes: Vec<i64> = (0..cx.rank(y) as i64).collect();
    let sum = ReduceSum { axes: axes.clone(), keepdims: false };
    match (reduction, weight) {
        ("none", _) => Ok(y),
        ("sum", _) => cx.op(sum, &[y]),
        ("mean", None) => cx.op(ReduceMean { axes, keepdims: false }, &[y]),
        ("mean", Some(w)) => {
            let (y, w) = (cx.op(sum.clone(), &[y])?, cx.op(sum, &[w])?);
            cx.op(Div {}, &[y, w])
        }
        _ => {
            let m = format!("reduction = `{reduction}` is not known (allowed: none, sum, mean)");
            Err(cx.fail("E-ONNX-007", m).into())
        }
    }
}
