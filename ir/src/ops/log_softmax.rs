//! `log_softmax(x)`: `x - max - log(sum(exp(x - max)))` along an axis, in at least f32 and rounded once.
//!
//! Constraints: log_softmax.c1 the element type is a float type; log_softmax.c2 the axis is in range.
//!
//! `%y = log_softmax %x {axis = 1} : f32[n, 4]`

use super::{
    Accuracy, Arity, Exp, Grad, InferCx, Log, LowerCx, Lowering, Onnx, OpDef, ReduceMax, ReduceSum, Spec,
    Sub, parts,
};
use crate::diag::Diag;
use crate::types::Fact;

crate::op_struct! {
    /// Logarithm of normalised exponentials.
    pub struct LogSoftmax {
        /// The axis, negative counting from the end.
        axis: i64 = -1,
    }
}

impl OpDef for LogSoftmax {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("LogSoftmax", 13, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.check(
            t.dtype.is_float(),
            "log_softmax.c1",
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
            let log = b.op(Log {}, &[sum])?;
            let y = b.op(Sub {}, &[shifted, log])?;
            b.cast(y, d)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let (y, g) = (cx.results[0], cx.cotangents[0]);
            let sum = cx.op1(ReduceSum { axes: vec![op.axis], keepdims: true }, &[g]);
            let p = cx.op1(Exp {}, &[y]);
            let taken = cx.mul(p, sum);
            vec![Some(cx.op1(Sub {}, &[g, taken]))]
        })
    }
}
