//! `softmax(x)`: `exp(x - max) / sum(exp(x - max))` along an axis, in at least f32 and rounded once.
//!
//! Constraints: softmax.c1 the element type is a float type; softmax.c2 the axis is in range.
//!
//! `%y = softmax %x {axis = 1} : f32[n, 4]`

use super::{
    Accuracy, Arity, Div, Exp, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, ReduceMax, ReduceSum, Spec,
    Sub, parts,
};
use crate::diag::Diag;
use crate::types::Fact;

crate::op_struct! {
    /// Normalised exponentials.
    pub struct Softmax {
        /// The axis, negative counting from the end.
        axis: i64 = -1,
    }
}

impl OpDef for Softmax {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("Softmax", 13, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.check(
            t.dtype.is_float(),
            "softmax.c1",
            format!("the element type must be a float, not {}", t.dtype),
        )?;
        cx.axis(self.axis, t.rank())?;
        Ok(vec![t.clone().into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        let axes = vec![self.axis];
        parts::decompose(cx, |b, x| {
            let x = b.cast(x[0], parts::wide_type(d))?;
            let max = b.op(ReduceMax { axes: axes.clone(), keepdims: true }, &[x])?;
            let shifted = b.op(Sub {}, &[x, max])?;
            let e = b.op(Exp {}, &[shifted])?;
            let sum = b.op(ReduceSum { axes, keepdims: true }, &[e])?;
            let y = b.op(Div {}, &[e, sum])?;
            b.cast(y, d)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let (y, g) = (cx.results[0], cx.cotangents[0]);
            let gy = cx.mul(g, y);
            let sum = cx.op1(ReduceSum { axes: vec![op.axis], keepdims: true }, &[gy]);
            let rest = cx.op1(Sub {}, &[g, sum]);
            vec![Some(cx.mul(y, rest))]
        })
    }
}
