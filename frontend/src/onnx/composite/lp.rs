//! Norms over windows: `LpPool`, `GlobalLpPool`, and `LRN`, whose windows lie along the channels. The sum over a window is
//! that of an average pool with padding counted, times the window's size.

use super::conv::{kernel, padded, window};
use super::pool::spatial;
use crate::limits::MAX_WINDOW;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, AvgPool, Div, Mul, Pow, ReduceSum, Sqrt};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Dim;

pub(crate) const ROWS: &[Row] =
    &[("LpPool", 2, ANY, lp_pool), ("GlobalLpPool", 2, ANY, global_lp_pool), ("LRN", 1, ANY, lrn)];

/// Attribute `p`.
fn exponent(cx: &NodeCx<'_, '_>) -> Res<i64> {
    let p = cx.attrs.int("p", 2)?;
    if p >= 1 {
        return Ok(p);
    }
    Err(cx.fail("E-ONNX-007", format!("p = {p}; allowed are numbers of at least 1")).into())
}

/// `|x|^p`.
fn powers(cx: &mut NodeCx<'_, '_>, x: Value, p: i64) -> Res<Value> {
    match p {
        1 => cx.op(Abs {}, &[x]),
        2 => cx.op(Mul {}, &[x, x]),
        _ => {
            let (a, d) = (cx.op(Abs {}, &[x])?, cx.dtype(x));
            let p = cx.num(d, p as f64)?;
            cx.op(Pow {}, &[a, p])
        }
    }
}

/// `x^(1/p)`.
fn root(cx: &mut NodeCx<'_, '_>, x: Value, p: i64) -> Res<Value> {
    match p {
        1 => Ok(x),
        2 => cx.op(Sqrt {}, &[x]),
        _ => {
            let d = cx.dtype(x);
            let p = cx.num(d, 1.0 / p as f64)?;
            cx.op(Pow {}, &[x, p])
        }
    }
}

fn lp_pool(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let p = exponent(cx)?;
    cx.attrs.only("ceil_mode", 0, "windows that reach beyond the padding are not built")?;
    let (x, axes) = spatial(cx)?;
    let Some(kernel) = kernel(cx, axes.len())? else {
        return Err(cx.fail("E-ONNX-007", "attribute `kernel_shape` is missing").into());
    };
    let win = window(cx, &cx.shape(x)[2..], kernel)?;
    let size: f64 = win.kernel.iter().map(|k| *k as f64).product();
    Ok(vec![cx.wide(x, |cx, x| {
        let d = cx.dtype(x);
        let y = powers(cx, x, p)?;
        let (y, pads) = padded(cx, y, win.padding, Scalar::from_int(d, 0))?;
        let op = AvgPool {
            kernel: win.kernel,
            strides: win.strides,
            pads,
            dilations: win.dilations,
            ceil: false,
            count_include_pad: true,
            channels_last: false,
        };
        let (y, size) = (cx.op(op, &[y])?, cx.num(d, size)?);
        let y = cx.op(Mul {}, &[y, size])?;
        root(cx, y, p)
    })?])
}

fn global_lp_pool(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let p = exponent(cx)?;
    let (x, axes) = spatial(cx)?;
    Ok(vec![cx.wide(x, |cx, x| {
        let y = powers(cx, x, p)?;
        let y = cx.op(ReduceSum { axes, keepdims: true }, &[y])?;
        root(cx, y, p)
    })?])
}

/// `x / (bias + alpha * mean(x^2))^beta`; what lies beyond the channels counts as 0 in the mean.
fn lrn(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (alpha, beta, bias) =
        (cx.attrs.float("alpha", 1e-4)?, cx.attrs.float("beta", 0.75)?, cx.attrs.float("bias", 1.0)?);
    let Some(size) = cx.attrs.opt_int("size")?.filter(|s| (1..=MAX_WINDOW).contains(s)) else {
        let m = format!("attribute `size` must be a number of 1 to {MAX_WINDOW}");
        return Err(cx.fail("E-ONNX-007", m).into());
    };
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    if shape.len() < 2 {
        return Err(cx.fail("E-ONNX-022", "the operand needs rank 2 or more").into());
    }
    let rest: Dim = shape[2..].iter().cloned().product();
    let rows = vec![shape[0].clone(), Dim::from(1), shape[1].clone(), rest];
    let before = (size - 1) / 2;
    let op = AvgPool {
        kernel: vec![size, 1],
        strides: vec![1, 1],
        pads: vec![before, 0, size - 1 - before, 0],
        dilations: vec![1, 1],
        ceil: false,
        count_include_pad: true,
        channels_last: false,
    };
    Ok(vec![cx.wide(x, |cx, x| {
        let d = cx.dtype(x);
        let y = cx.op(Mul {}, &[x, x])?;
        let y = cx.reshape(y, rows)?;
        let y = cx.op(op, &[y])?;
        let y = cx.reshape(y, shape)?;
        let (alpha, beta, bias) = (cx.num(d, alpha)?, cx.num(d, beta)?, cx.num(d, bias)?);
        let y = cx.op(Mul {}, &[y, alpha])?;
        let y = cx.op(Add {}, &[y, bias])?;
        let y = cx.op(Pow {}, &[y, beta])?;
        cx.op(Div {}, &[x, y])
    })?])
}
