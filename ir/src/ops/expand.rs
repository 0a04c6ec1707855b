//! `expand(x)`: broadcasts to a shape (right-aligned numpy rule; the operand's dims are 1 or equal).
//!
//! Constraints: expand.c1 the rank does not shrink; expand.c2 each dim of the operand is 1 or the result's.
//!
//! `%y = expand %x {shape = (n, 4)} : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, view};
use crate::class::broadcast_index;
use crate::diag::Diag;
use crate::types::{Dim, Fact, Pred, Type};

crate::op_struct! {
    /// Broadcast to a shape.
    pub struct Expand {
        /// The result's dims.
        shape: Vec<Dim>,
    }
}

impl OpDef for Expand {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Expand", 8, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.check(t.rank() <= self.shape.len(), "expand.c1", "the shape has fewer axes than the operand")?;
        let skip = self.shape.len() - t.rank();
        for (d, to) in t.shape.iter().zip(&self.shape[skip..]) {
            if d != to && !d.is(1) {
                let one = Dim::from(1);
                let fits = Pred::Or(vec![Pred::Eq(d.clone(), to.clone()), Pred::Eq(d.clone(), one)]);
                cx.require(fits, "each dim must be 1 or equal to the new one [expand.c2]")?;
            }
        }
        Ok(vec![Type::new(t.dtype, self.shape.clone()).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(view::whole(&cx.outs[0], 0, broadcast_index(&cx.ins[0].shape, &self.shape)))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|_, cx| {
            let g = cx.cotangents[0];
            let like = cx.operands[0];
            vec![Some(cx.sum_to(g, like))]
        })
    }
}
