//! `reduce_mean(x)`: mean over axes: the sum in at least f32 divided by the number of elements, rounded once. Integers
//! wrap in the sum and truncate in the division.
//!
//! Constraints: reduce_mean.c1 axes are in range and distinct; reduce_mean.c2 the element type is a number.
//!
//! `%y = reduce_mean %x {axes = [1]} : f32[n]`

use super::{
    Accuracy, Arity, Div, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, ReduceSum, Spec, parts, reduce,
};
use crate::diag::Diag;
use crate::types::{Dim, Fact};

crate::op_struct! {
    /// Mean over axes.
    pub struct ReduceMean {
        /// Reduced axes, negative counting from the end.
        axes: Vec<i64>,
        /// Keep them with extent 1.
        keepdims: bool = false,
    }
}

impl ReduceMean {
    fn count(&self, shape: &[Dim]) -> Dim {
        reduce::axes(&self.axes, shape.len()).unwrap_or_default().iter().map(|&a| shape[a].clone()).product()
    }
}

impl OpDef for ReduceMean {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("ReduceMean", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.ty(0)?.dtype;
        cx.check(d.is_float() || d.is_int(), "reduce_mean.c2", "the element type must be a number")?;
        reduce::infer(cx, &self.axes, self.keepdims, d)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        let w = reduce::sum_type(d);
        parts::decompose(cx, |b, x| {
            let x = b.cast(x[0], w)?;
            let sum = b.op(ReduceSum { axes: self.axes.clone(), keepdims: self.keepdims }, &[x])?;
            let n = b.dim(w, self.count(&cx.ins[0].shape))?;
            let mean = b.op(Div {}, &[sum, n])?;
            b.cast(mean, d)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let like = cx.operands[0];
            let g = reduce::spread(cx, &op.axes, op.keepdims);
            let t = cx.b.ty(like);
            let n = cx.dim(t.dtype, op.count(&t.shape));
            let part = cx.op1(Div {}, &[g, n]);
            vec![Some(cx.expand_like(part, like))]
        })
    }
}
