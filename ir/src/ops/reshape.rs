//! `reshape(x)`: the same elements in row-major order under another shape.
//!
//! Constraints: reshape.c1 as many elements before as after.
//!
//! `%y = reshape %x {shape = (n, 2, 2)} : f32[n, 2, 2]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, view};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Type};

crate::op_struct! {
    /// Change of shape.
    pub struct Reshape {
        /// The result's dims.
        shape: Vec<Dim>,
    }
}

impl OpDef for Reshape {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Reshape", 5, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let to = Type::new(t.dtype, self.shape.clone());
        cx.require_eq(&t.numel(), &to.numel(), "the number of elements must stay the same [reshape.c1]")?;
        Ok(vec![to.into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(view::whole(&cx.outs[0], 0, view::reshape_index(&cx.ins[0].shape, &self.shape)))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|_, cx| {
            let g = cx.cotangents[0];
            let shape = cx.b.ty(cx.operands[0]).shape;
            vec![Some(cx.reshape(g, shape))]
        })
    }
}
