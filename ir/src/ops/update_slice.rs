//! `update_slice(x, start, update)`: `x` with `update` written from index `start` along an axis. A negative start counts
//! from one past the last place that fits, so -1 puts the update at the end. A start that does not fit is an error when
//! the program runs.
//!
//! Constraints: update_slice.c1 the axis is in range; update_slice.c2 start is an integer of rank 0; update_slice.c3 the
//! update has x's type and rank, and its dims off the axis; update_slice.c4 it is not longer than x on the axis.
//!
//! `%y = update_slice %cache, %length, %new {axis = 1} : f32[1, c, 64]`

use super::{Accuracy, Arity, Gather, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, index, view};
use crate::class::Combine;
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Pred, Type};

crate::op_struct! {
    /// Writing a run of slices.
    pub struct UpdateSlice {
        /// The axis, negative counting from the end.
        axis: i64 = 0,
    }
}

impl OpDef for UpdateSlice {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x", "start", "update"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (x, start, u) = (cx.ty(0)?, cx.ty(1)?, cx.ty(2)?);
        index::check_type(cx, 1, "update_slice.c2")?;
        cx.check(start.rank() == 0, "update_slice.c2", "start must have rank 0")?;
        let alike = u.dtype == x.dtype && u.rank() == x.rank();
        cx.check(alike, "update_slice.c3", "the update must have the operand's type and rank")?;
        let axis = cx.axis(self.axis, x.rank())?;
        for (a, (d, k)) in x.shape.iter().zip(&u.shape).enumerate() {
            if a == axis {
                let why = "the update must not be longer than the operand [update_slice.c4]";
                cx.require(Pred::Le(k.clone(), d.clone()), why)?;
            } else {
                cx.require_eq(
                    k,
                    d,
                    "the update's dims off the axis must be the operand's [update_slice.c3]",
                )?;
            }
        }
        Ok(vec![x.clone().into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let (x, u) = (&cx.ins[0], &cx.ins[2]);
        let axis = index::axis(self.axis, x.rank());
        let bound = x.shape[axis].clone() - u.shape[axis].clone() + Dim::from(1);
        let mut at = view::labels(x.rank());
        at[axis] = Dim::val(0) + at[axis].clone();
        Ok(index::class(Vec::new(), bound, at, Some(Combine::Set)))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let (start, u, g) = (cx.operands[1], cx.operands[2], cx.cotangents[0]);
            let ty = cx.b.ty(u);
            let axis = index::axis(op.axis, ty.rank());
            let zeros = cx.zeros(&ty);
            let dx = cx.op1(op.clone(), &[g, start, zeros]);
            let line = cx.zeros(&Type::new(DType::I64, vec![ty.shape[axis].clone()]));
            let line = cx.line(line, 0, Dim::from(0), 1);
            // a negative start means places from the end, less the update's length and one
            let len = cx.b.ty(g).shape[axis].clone();
            let places = cx.dim(DType::I64, len - ty.shape[axis].clone() + Dim::from(1));
            let start = cx.cast(start, DType::I64);
            let start = cx.op1(super::Modulo {}, &[start, places]);
            let at = cx.add(line, start);
            let du = cx.op1(Gather { axis: op.axis }, &[g, at]);
            vec![Some(dx), None, Some(du)]
        })
    }
}
