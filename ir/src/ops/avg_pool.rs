//! `avg_pool(x)`: mean of each window of x [N, C, spatial..] ([N, spatial.., C] with `channels_last`), summed in at least
//! f32. Padding counts as zeros with `count_include_pad`, else it takes no part; what `ceil` adds beyond the padding
//! never does.
//!
//! Constraints: avg_pool.c1 rank 3 or more, a float type; avg_pool.c2 one kernel extent, stride and dilation a spatial
//! axis, two pads; avg_pool.c3 kernel, strides and dilations 1 or more, pads 0 or more; avg_pool.c4 the window fits in the
//! padded operand; avg_pool.c5 pads are smaller than the window.
//!
//! `%y = avg_pool %x {kernel = [2], strides = [2], pads = [0, 0], dilations = [1]} : f32[n, 8, 8]`

use super::{
    Accuracy, Arity, Div, Expand, GVal, Grad, GradCx, InferCx, LowerCx, Lowering, Onnx, OpDef, Pad, Slice,
    Spec, parts, pool, reduce,
};
use crate::class::Reducer;
use crate::diag::Diag;
use crate::scalar::{Bin, Expr, Scalar};
use crate::types::{DType, Dim, Fact};

crate::op_struct! {
    /// Mean of windows.
    pub struct AvgPool {
        /// Extents of the window.
        kernel: Vec<i64>,
        /// Steps of the window.
        strides: Vec<i64>,
        /// Padding before each spatial axis, then after each.
        pads: Vec<i64>,
        /// Distance of the window's elements.
        dilations: Vec<i64>,
        /// Round the number of windows up.
        ceil: bool = false,
        /// Padding counts as zeros.
        count_include_pad: bool = false,
        /// Channels are the last axis.
        channels_last: bool = false,
    }
}

impl AvgPool {
    fn pool(&self) -> pool::Pool<'_> {
        pool::Pool {
            name: "avg_pool",
            kernel: &self.kernel,
            strides: &self.strides,
            pads: &self.pads,
            dilations: &self.dilations,
            ceil: self.ceil,
            channels_last: self.channels_last,
        }
    }

    /// The same op over an operand padded beforehand.
    fn unpadded(&self) -> AvgPool {
        AvgPool { pads: vec![0; self.pads.len()], count_include_pad: false, ..self.clone() }
    }

    fn includes_pad(&self) -> bool {
        self.count_include_pad && self.pads.iter().any(|p| *p > 0)
    }
}

/// Sum and count of the elements inside, divided at the end.
fn counted(d: DType) -> Reducer {
    let acc = reduce::sum_type(d);
    let zero = Scalar::from_f64(acc, 0.0);
    let mut step = Expr::default();
    let (sum, n, x) = (step.arg(0, acc), step.arg(1, acc), step.arg(2, d));
    let (x, one) = (step.cast(acc, x), step.num(sum, 1.0));
    step.roots = vec![step.bin(Bin::Add, sum, x), step.bin(Bin::Add, n, one)];
    let mut combine = Expr::default();
    let a: Vec<u32> = (0..4).map(|i| combine.arg(i, acc)).collect();
    combine.roots = vec![combine.bin(Bin::Add, a[0], a[2]), combine.bin(Bin::Add, a[1], a[3])];
    let mut finish = Expr::default();
    let (sum, n) = (finish.arg(0, acc), finish.arg(1, acc));
    let mean = finish.bin(Bin::Div, sum, n);
    finish.roots = vec![finish.cast(d, mean)];
    Reducer { init: vec![zero, zero], step, combine, finish }
}

/// Sum divided by a known count.
fn full(d: DType, count: f64) -> Reducer {
    let acc = reduce::sum_type(d);
    let mut r = Reducer::simple(Bin::Add, d, acc, Scalar::from_f64(acc, 0.0), acc);
    let sum = r.finish.roots[0];
    let n = r.finish.num(sum, count);
    let mean = r.finish.bin(Bin::Div, sum, n);
    r.finish.roots = vec![r.finish.cast(d, mean)];
    r
}

impl OpDef for AvgPool {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("AveragePool", 7, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        cx.check(cx.ty(0)?.dtype.is_float(), "avg_pool.c1", "the element type must be a float type")?;
        self.pool().infer(cx)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let (d, out, pool) = (cx.ins[0].dtype, &cx.outs[0], self.pool());
        if !self.includes_pad() {
            let count: f64 = self.kernel.iter().map(|k| *k as f64).product();
            let reducer = if pool.geometry().overhangs() { counted(d) } else { full(d, count) };
            return Ok(pool.lower(cx, reducer));
        }
        parts::decompose(cx, |b, x| {
            let ends = |side: usize| -> Vec<Dim> {
                let n = self.kernel.len();
                let spatial = self.pads[side * n..][..n].iter().map(|&p| Dim::from(p));
                pool.layout(out).order(Dim::from(0), Dim::from(0), spatial)
            };
            let zero = Scalar::from_f64(d, 0.0);
            let padded = b.op(Pad { before: ends(0), after: ends(1), value: zero }, x)?;
            let y = b.op(self.unpadded(), &[padded])?;
            if b.ty(y).shape == out.shape {
                return Ok(y);
            }
            // a window may start in the right padding of the padded operand, where this op drops it
            let (starts, steps) = (vec![Dim::from(0); out.rank()], vec![1; out.rank()]);
            b.op(Slice { starts, sizes: out.shape.clone(), steps }, &[y])
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let layout = op.pool().layout(&cx.b.ty(cx.operands[0]));
            cx.channels_second(layout);
            let g = back(&AvgPool { channels_last: false, ..op.clone() }, cx);
            vec![Some(layout.restore(cx, g))]
        })
    }
}

/// Every element of a window gets an equal part of the window's cotangent.
fn back(op: &AvgPool, cx: &mut GradCx<'_>) -> GVal {
    let pool = op.pool();
    let (x, g) = (cx.b.ty(cx.operands[0]), cx.cotangents[0]);
    let mut shape = cx.b.ty(g).shape;
    let cells = Dim::from(op.kernel.iter().product::<i64>());
    let count = if pool.geometry().overhangs() {
        let (before, after) = pool.margins(cx);
        let one = cx.num(x.dtype, 1.0);
        let mut counted = x.clone();
        // padding that counts is inside; the rest of the margins is not
        let mut inner = (vec![Dim::from(0); x.rank()], vec![Dim::from(0); x.rank()]);
        if op.includes_pad() {
            let n = op.kernel.len();
            for i in 0..n {
                inner.0[i + 2] = Dim::from(op.pads[i]);
                inner.1[i + 2] = Dim::from(op.pads[n + i]).dmin(&after[i + 2]);
                counted.shape[i + 2] =
                    counted.shape[i + 2].clone() + inner.0[i + 2].clone() + inner.1[i + 2].clone();
            }
        }
        let ones = cx.op1(Expand { shape: counted.shape }, &[one]);
        let minus = |a: Vec<Dim>, b: Vec<Dim>| a.into_iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
        let ones = cx.pad(ones, minus(before, inner.0), minus(after, inner.1));
        let windows = pool.unfold(cx, ones);
        cx.op1(super::ReduceSum { axes: vec![-1], keepdims: false }, &[windows])
    } else {
        cx.dim(x.dtype, cells.clone())
    };
    let part = cx.op1(Div {}, &[g, count]);
    shape.push(Dim::from(1));
    let part = cx.reshape(part, shape.clone());
    if let Some(last) = shape.last_mut() {
        *last = cells;
    }
    let part = cx.expand(part, shape);
    pool.fold(cx, part)
}
