//! `reduce_sum(x)`: sum over axes. Floats accumulate in at least f32, integers wrap.
//!
//! Constraints: reduce_sum.c1 axes are in range and distinct; reduce_sum.c2 the element type is a number.
//!
//! `%y = reduce_sum %x {axes = [1]} : f32[n]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, reduce};
use crate::diag::Diag;
use crate::scalar::{Bin, Scalar};
use crate::types::Fact;

crate::op_struct! {
    /// Sum over axes.
    pub struct ReduceSum {
        /// Reduced axes, negative counting from the end.
        axes: Vec<i64>,
        /// Keep them with extent 1.
        keepdims: bool = false,
    }
}

impl OpDef for ReduceSum {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("ReduceSum", 13, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.ty(0)?.dtype;
        cx.check(d.is_float() || d.is_int(), "reduce_sum.c2", "the element type must be a number")?;
        reduce::infer(cx, &self.axes, self.keepdims, d)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        let acc = reduce::sum_type(d);
        reduce::lower(cx, &self.axes, self.keepdims, Bin::Add, acc, Scalar::from_f64(acc, 0.0))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let like = cx.operands[0];
            let g = reduce::spread(cx, &op.axes, op.keepdims);
            vec![Some(cx.expand_like(g, like))]
        })
    }
}
