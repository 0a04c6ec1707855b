//! Reductions: axes by attribute or operand, `noop_with_empty_axes`, and the reductions that are formulas over sums.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, ArgMax, Eq, Exp, Log, Mul, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum};
use tgc_ir::ops::{Op, Reshape, Select, Sqrt, Sub};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[
    ("ReduceSum", 6, ANY, |cx| reduce(cx, |cx, r, x| r.sum(cx, x))),
    ("ReduceMean", 6, ANY, |cx| reduce(cx, mean)),
    ("ReduceMax", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| r.extreme(cx, x, |axes, keepdims| ReduceMax { axes, keepdims }.into()))
    }),
    ("ReduceMin", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| r.extreme(cx, x, |axes, keepdims| ReduceMin { axes, keepdims }.into()))
    }),
    ("ReduceProd", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| cx.op(ReduceProd { axes: r.axes.clone(), keepdims: r.keepdims }, &[x]))
    }),
    ("ReduceL1", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| {
            let a = cx.op(Abs {}, &[x])?;
            r.sum(cx, a)
        })
    }),
    ("ReduceSumSquare", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| {
            let a = cx.op(Mul {}, &[x, x])?;
            r.sum(cx, a)
        })
    }),
    ("ReduceL2", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| {
            in_float(cx, x, |cx, x| {
                let a = cx.op(Mul {}, &[x, x])?;
                let s = r.sum(cx, a)?;
                cx.op(Sqrt {}, &[s])
            })
        })
    }),
    ("ReduceLogSum", 6, ANY, |cx| {
        reduce(cx, |cx, r, x| {
            in_float(cx, x, |cx, x| {
                let s = r.sum(cx, x)?;
                cx.op(Log {}, &[s])
            })
        })
    }),
    ("ReduceLogSumExp", 6, ANY, |cx| reduce(cx, log_sum_exp)),
    ("ArgMax", 6, ANY, |cx| arg(cx, false)),
    ("ArgMin", 6, ANY, |cx| arg(cx, true)),
];

/// Over what.
struct Axes {
    axes: Vec<i64>,
    keepdims: bool,
}

impl Axes {
    fn sum(&self, cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
        if self.axes.is_empty() {
            return Ok(x);
        }
        cx.op(ReduceSum { axes: self.axes.clone(), keepdims: self.keepdims }, &[x])
    }

    fn extreme(&self, cx: &mut NodeCx<'_, '_>, x: Value, op: fn(Vec<i64>, bool) -> Op) -> Res<Value> {
        if self.axes.is_empty() {
            return Ok(x);
        }
        let d = cx.dtype(x);
        let inner = if d == DType::Bool { DType::U8 } else { d };
        let x = cx.cast(x, inner)?;
        let y = cx.op(op(self.axes.clone(), self.keepdims), &[x])?;
        cx.cast(y, d)
    }
}

fn reduce(
    cx: &mut NodeCx<'_, '_>,
    f: impl FnOnce(&mut NodeCx<'_, '_>, &Axes, Value) -> Res<Value>,
) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let rank = cx.rank(x);
    let keepdims = cx.attrs.flag("keepdims", true)?;
    let since = if cx.name() == "ReduceSum" { 13 } else { 18 };
    let (list, noop) = if cx.opset < since {
        (cx.attrs.ints("axes")?, false)
    } else {
        let noop = cx.attrs.flag("noop_with_empty_axes", false)?;
        (cx.opt(1).map(|_| cx.ints(1, "axes")).transpose()?, noop)
    };
    let axes = match list {
        Some(l) if !l.is_empty() => cx.axes(&l, rank)?.into_iter().map(|a| a as i64).collect(),
        _ if noop => Vec::new(),
        _ => (0..rank as i64).collect(),
    };
    // without axes to reduce only the formula around the reduction applies, and no dim is dropped
    let y = f(cx, &Axes { axes, keepdims }, x)?;
    Ok(vec![y])
}

/// Integers are computed in f64 and truncated, narrow floats in f32.
fn in_float(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    f: impl FnOnce(&mut NodeCx<'_, '_>, Value) -> Res<Value>,
) -> Res<Value> {
    let d = cx.dtype(x);
    if d.is_float() {
        return cx.wide(x, f);
    }
    let x = cx.cast(x, DType::F64)?;
    let y = f(cx, x)?;
    cx.cast(y, d)
}

fn mean(cx: &mut NodeCx<'_, '_>, r: &Axes, x: Value) -> Res<Value> {
    if r.axes.is_empty() {
        return Ok(x);
    }
    in_float(cx, x, |cx, x| cx.op(ReduceMean { axes: r.axes.clone(), keepdims: r.keepdims }, &[x]))
}

/// Shifted by the maximum so that exp does not overflow; an infinite maximum shifts nothing.
fn log_sum_exp(cx: &mut NodeCx<'_, '_>, r: &Axes, x: Value) -> Res<Value> {
    in_float(cx, x, |cx, x| {
        if r.axes.is_empty() {
            let e = cx.op(Exp {}, &[x])?;
            return cx.op(Log {}, &[e]);
        }
        let d = cx.dtype(x);
        let m = cx.op(ReduceMax { axes: r.axes.clone(), keepdims: true }, &[x])?;
        let (zero, inf) = (cx.num(d, 0.0)?, cx.num(d, f64::INFINITY)?);
        let a = cx.op(Abs {}, &[m])?;
        let infinite = cx.op(Eq {}, &[a, inf])?;
        let m = cx.op(Select {}, &[infinite, zero, m])?;
        let s = cx.op(Sub {}, &[x, m])?;
        let e = cx.op(Exp {}, &[s])?;
        let s = cx.op(ReduceSum { axes: r.axes.clone(), keepdims: true }, &[e])?;
        let l = cx.op(Log {}, &[s])?;
        let y = cx.op(Add {}, &[l, m])?;
        if r.keepdims {
            return Ok(y);
        }
        let gone = |i: usize| r.axes.contains(&(i as i64));
        let shape: Vec<Dim> = cx.shape(y).into_iter().enumerate().filter(|(i, _)| !gone(*i)).map(|s| s.1).collect();
        cx.op(Reshape { shape }, &[y])
    })
}

fn arg(cx: &mut NodeCx<'_, '_>, smallest: bool) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let axis = cx.attrs.int("axis", 0)?;
    let axis = cx.axis(axis, cx.rank(x))? as i64;
    let keepdims = cx.attrs.flag("keepdims", true)?;
    let last = cx.opset >= 12 && cx.attrs.flag("select_last_index", false)?;
    Ok(vec![cx.op(ArgMax { axis, keepdims, last, smallest }, &[x])?])
}
