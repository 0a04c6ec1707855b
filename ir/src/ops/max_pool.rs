//! `max_pool(x)`: greatest element of each window of x [N, C, spatial..] ([N, spatial.., C] with `channels_last`); padding
//! takes no part. NaN wins. With `ceil` the number of windows is rounded up, except that none starts beyond the operand
//! and its left padding.
//!
//! Constraints: max_pool.c1 rank 3 or more, the element type a number; max_pool.c2 one kernel extent, stride and dilation
//! a spatial axis, two pads; max_pool.c3 kernel, strides and dilations 1 or more, pads 0 or more; max_pool.c4 the window
//! fits in the padded operand; max_pool.c5 pads are smaller than the window.
//!
//! `%y = max_pool %x {kernel = [2], strides = [2], pads = [0, 0], dilations = [1]} : f32[n, 8, 8]`

use super::{
    Accuracy, ArgMax, Arity, Eq, GVal, Grad, GradCx, InferCx, Iota, LowerCx, Lowering, Onnx, OpDef, Pad,
    Spec, pool,
};
use crate::class::Reducer;
use crate::diag::Diag;
use crate::scalar::{Bin, Scalar};
use crate::types::{DType, Fact};

crate::op_struct! {
    /// Maximum of windows.
    pub struct MaxPool {
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
        /// Channels are the last axis.
        channels_last: bool = false,
    }
}

impl MaxPool {
    fn pool(&self) -> pool::Pool<'_> {
        pool::Pool {
            name: "max_pool",
            kernel: &self.kernel,
            strides: &self.strides,
            pads: &self.pads,
            dilations: &self.dilations,
            ceil: self.ceil,
            channels_last: self.channels_last,
        }
    }
}

impl OpDef for MaxPool {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("MaxPool", 10, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.ty(0)?.dtype;
        cx.check(d.is_float() || d.is_int(), "max_pool.c1", "the element type must be a number")?;
        self.pool().infer(cx)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        Ok(self.pool().lower(cx, Reducer::simple(Bin::Max, d, d, Scalar::extreme(d, false), d)))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let layout = op.pool().layout(&cx.b.ty(cx.operands[0]));
            cx.channels_second(layout);
            let g = back(&MaxPool { channels_last: false, ..op.clone() }, cx);
            vec![Some(layout.restore(cx, g))]
        })
    }
}

/// The cotangent goes to the first greatest element of each window.
fn back(op: &MaxPool, cx: &mut GradCx<'_>) -> GVal {
    let pool = op.pool();
    let x = cx.operands[0];
    let d = cx.b.ty(x).dtype;
    let (before, after) = pool.margins(cx);
    let padded = cx.op1(Pad { before, after, value: Scalar::extreme(d, false) }, &[x]);
    let windows = pool.unfold(cx, padded);
    let flat = cx.b.ty(windows).shape;
    let first = cx.op1(ArgMax { axis: -1, keepdims: true, last: false, smallest: false }, &[windows]);
    let at = cx.op0(Iota { axis: -1, shape: flat.clone(), dtype: DType::I64 });
    let hit = cx.op1(Eq {}, &[first, at]);
    let hit = cx.cast(hit, d);
    let mut shape = flat;
    if let Some(last) = shape.last_mut() {
        *last = 1.into();
    }
    let g = cx.reshape(cx.cotangents[0], shape);
    let g = cx.mul(hit, g);
    pool.fold(cx, g)
}
