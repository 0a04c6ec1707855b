//! `LpPool`, `GlobalLpPool` and `LRN`: sums of powers over windows, taken as averages times the window's size. Narrow
//! floats are computed in f32 and rounded once.

use crate::formula::{like, scaled};
use super::conv::{Padding, Window, kernel, window};
use super::pool::spatial;
use crate::limits::MAX_WINDOW;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, AvgPool, Div, Mul, Pad, Pow, ReduceSum, Slice, Sqrt};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Dim;

pub(crate) const ROWS: &[Row] = &[
    ("LpPool", 1, ANY, lp_pool),
    ("GlobalLpPool", 1, ANY, |cx| {
        let (x, axes) = spatial(cx)?;
        let p = exponent(cx)?;
        Ok(vec![cx.wide(x, |cx, x| {
            let t = power(cx, x, p)?;
            let s = cx.op(ReduceSum { axes, keepdims: true }, &[t])?;
            root(cx, s, p)
        })?])
    }),
    ("LRN", 1, ANY, lrn),
];

/// Attribute `p`, in opset 1 a number of the other kind.
fn exponent(cx: &NodeCx<'_, '_>) -> Res<f64> {
    let p = if cx.opset < 2 { cx.attrs.float("p", 2.0)? } else { cx.attrs.int("p", 2)? as f64 };
    if p > 0.0 && p.is_finite() {
        return Ok(p);
    }
    Err(cx.fail("E-ONNX-007", format!("p = {p}; allowed are numbers above 0")).into())
}

/// `|x|^p`.
fn power(cx: &mut NodeCx<'_, '_>, x: Value, p: f64) -> Res<Value> {
    if p == 2.0 {
        return cx.op(Mul {}, &[x, x]);
    }
    let a = cx.op(Abs {}, &[x])?;
    if p == 1.0 {
        return Ok(a);
    }
    let p = like(cx, x, p)?;
    cx.op(Pow {}, &[a, p])
}

/// `s^(1/p)`.
fn root(cx: &mut NodeCx<'_, '_>, s: Value, p: f64) -> Res<Value> {
    if p == 1.0 {
        return Ok(s);
    }
    if p == 2.0 {
        return cx.op(Sqrt {}, &[s]);
    }
    let p = like(cx, s, 1.0 / p)?;
    cx.op(Pow {}, &[s, p])
}

fn lp_pool(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (x, axes) = spatial(cx)?;
    let p = exponent(cx)?;
    let Some(kernel) = kernel(cx, axes.len())? else {
        return Err(cx.fail("E-ONNX-007", "attribute `kernel_shape` is missing").into());
    };
    let win = window(cx, &cx.shape(x)[2..], kernel)?;
    let ceil = cx.opset >= 18 && cx.attrs.flag("ceil_mode", false)?;
    Ok(vec![cx.wide(x, |cx, x| {
        let t = power(cx, x, p)?;
        let s = sums(cx, t, win, ceil)?;
        root(cx, s, p)
    })?])
}

/// The sum of each window, padding counting as 0.
fn sums(cx: &mut NodeCx<'_, '_>, t: Value, win: Window, ceil: bool) -> Res<Value> {
    let shape = cx.shape(t);
    let n = win.kernel.len();
    let (before, mut after) = match win.padding {
        Padding::Fixed(p) => {
            let dims = |v: &[i64]| v.iter().map(|p| Dim::from(*p)).collect::<Vec<_>>();
            (dims(&p[..n]), dims(&p[n..]))
        }
        Padding::Sizes(b, a) => (b, a),
    };
    let mut keep = shape[..2].to_vec();
    for i in 0..if ceil { n } else { 0 } {
        // so far behind that rounding down counts what rounding up would, but no window starts there
        after[i] = after[i].clone() + Dim::from(win.strides[i] - 1);
        let starts = shape[2 + i].clone() + before[i].clone() - Dim::from(1);
        keep.push(starts.floordiv(&Dim::from(win.strides[i])) + Dim::from(1));
    }
    let mut padded = t;
    if before.iter().chain(&after).any(|d| !d.is(0)) {
        let lead = |v: Vec<Dim>| [vec![Dim::from(0); 2], v].concat();
        let value = Scalar::from_int(cx.dtype(t), 0);
        padded = cx.op(Pad { before: lead(before), after: lead(after), value }, &[t])?;
    }
    let elements: f64 = win.kernel.iter().map(|k| *k as f64).product();
    let y = average(cx, padded, win.kernel, win.strides, vec![0; 2 * n], win.dilations)?;
    let y = cut(cx, y, &keep)?;
    scaled(cx, y, elements)
}

/// At most `keep` elements an axis, where it has an entry.
fn cut(cx: &mut NodeCx<'_, '_>, y: Value, keep: &[Dim]) -> Res<Value> {
    let mut sizes = cx.shape(y);
    for (d, k) in sizes.iter_mut().zip(keep) {
        *d = cx.simplify(d.dmin(k));
    }
    if sizes == cx.shape(y) {
        return Ok(y);
    }
    let rank = sizes.len();
    cx.op(Slice { starts: vec![Dim::from(0); rank], sizes, steps: vec![1; rank] }, &[y])
}

fn average(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    pads: Vec<i64>,
    dilations: Vec<i64>,
) -> Res<Value> {
    let (ceil, count_include_pad, channels_last) = (false, true, false);
    cx.op(AvgPool { kernel, strides, pads, dilations, ceil, count_include_pad, channels_last }, &[x])
}

/// `x / (bias + alpha / size * s)^beta` with `s` the sum of squares over `size` channels, the others counting as 0: an
/// average over windows of channels.
fn lrn(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (alpha, beta) = (cx.attrs.float("alpha", 0.0001)?, cx.attrs.float("beta", 0.75)?);
    let bias = cx.attrs.float("bias", 1.0)?;
    let Some(size) = cx.attrs.opt_int("size")?.filter(|s| (1..=MAX_WINDOW).contains(s)) else {
        let m = format!("attribute `size` must be a number from 1 to {MAX_WINDOW}");
        return Err(cx.fail("E-ONNX-007", m).into());
    };
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let [batch, channels, rest @ ..] = &shape[..] else {
        return Err(cx.fail("E-ONNX-022", "the operand needs rank 2 or more").into());
    };
    let inner: Dim = rest.iter().cloned().product();
    let lines = vec![batch.clone(), Dim::from(1), channels.clone(), inner];
    let pads = vec![(size - 1) / 2, 0, size / 2, 0];
    Ok(vec![cx.wide(x, |cx, x| {
        let square = cx.op(Mul {}, &[x, x])?;
        let square = cx.reshape(square, lines)?;
        let mean = average(cx, square, vec![size, 1], vec![1, 1], pads, vec![1, 1])?;
        let mean = cx.reshape(mean, shape)?;
        let (bias, beta) = (like(cx, x, bias)?, like(cx, x, beta)?);
        let d = scaled(cx, mean, alpha)?;
        let d = cx.op(Add {}, &[d, bias])?;
        let d = cx.op(Pow {}, &[d, beta])?;
        cx.op(Div {}, &[x, d])
    })?])
}
