//! `top_k(x)`: the k greatest (or smallest) elements along an axis, sorted, and their indices. Ties keep the lower index
//! first; NaN counts as greatest.
//!
//! Constraints: top_k.c1 the axis is in range; top_k.c2 k is at most the axis; top_k.c3 the element type is a number.
//!
//! `%v, %i = top_k %x {axis = -1, k = 2} : f32[n, 2], i64[n, 2]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, index};
use crate::class::{Class, Opaque};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Pred, Type};

crate::op_struct! {
    /// Greatest elements.
    pub struct TopK {
        /// The axis, negative counting from the end.
        axis: i64,
        /// How many.
        k: Dim,
        /// The greatest, else the smallest.
        largest: bool = true,
    }
}

impl OpDef for TopK {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("TopK", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let axis = cx.axis(self.axis, t.rank())?;
        let number = t.dtype.is_float() || t.dtype.is_int();
        cx.check(number, "top_k.c3", format!("the element type must be a number, not {}", t.dtype))?;
        cx.require(Pred::Le(self.k.clone(), t.shape[axis].clone()), "k must be at most the axis [top_k.c2]")?;
        let mut shape = t.shape.clone();
        shape[axis] = self.k.clone();
        Ok(vec![Type::new(t.dtype, shape.clone()).into(), Type::new(DType::I64, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let axis = index::axis(self.axis, cx.ins[0].rank());
        Ok(Lowering::Class(Class::Opaque(Opaque::TopK { axis, largest: self.largest })))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let ty = cx.b.ty(cx.operands[0]);
            let (i, g) = (cx.results[1], cx.cotangents[0]);
            vec![Some(cx.scatter(&ty, index::axis(op.axis, ty.rank()), i, g))]
        })
    }
}
