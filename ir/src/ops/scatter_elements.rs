//! `scatter_elements(data, indices, updates)`: a copy of `data` with each update written, added .. to the element at the
//! update's position with the index along one axis. Updates come in ascending row-major order, so the last of several to
//! one place wins. Negative indices count from the end; others out of range are an error when the program runs.
//!
//! Constraints: scatter_elements.c1 the axis is in range; scatter_elements.c2 indices are integers of data's rank;
//! scatter_elements.c3 updates have the shape of indices and the type of data; scatter_elements.c4 off the axis, they are
//! not longer than data; scatter_elements.c5 reduction is none, add, mul, min or max, and all but none need numbers.
//!
//! `%y = scatter_elements %x, %i, %u {axis = 1, reduction = "add"} : f32[n, 4]`

use super::{
    Accuracy, Arity, GVal, GatherElements, Grad, GradCx, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec,
    index, view,
};
use crate::class::Combine;
use crate::diag::Diag;
use crate::types::{Dim, Fact, Pred};

crate::op_struct! {
    /// Writing at indices.
    pub struct ScatterElements {
        /// The indexed axis, negative counting from the end.
        axis: i64 = 0,
        /// How an update joins the element there.
        reduction: String = "none".to_string(),
    }
}

impl ScatterElements {
    fn combine(&self) -> Option<Combine> {
        Some(match self.reduction.as_str() {
            "none" => Combine::Set,
            "add" => Combine::Add,
            "mul" => Combine::Mul,
            "min" => Combine::Min,
            "max" => Combine::Max,
            _ => return None,
        })
    }
}

impl OpDef for ScatterElements {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["data", "indices", "updates"]),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("ScatterElements", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (x, i, u) = (cx.ty(0)?, cx.ty(1)?, cx.ty(2)?);
        index::check_type(cx, 1, "scatter_elements.c2")?;
        cx.check(x.rank() == i.rank(), "scatter_elements.c2", "data and indices must have one rank")?;
        let alike = u.dtype == x.dtype && u.rank() == i.rank();
        cx.check(alike, "scatter_elements.c3", "updates must have the rank of indices and the type of data")?;
        let axis = cx.axis(self.axis, x.rank())?;
        let text = format!("reduction `{}` is not one of none, add, mul, min, max", self.reduction);
        cx.check(self.combine().is_some(), "scatter_elements.c5", text)?;
        let number = self.reduction == "none" || x.dtype.is_float() || x.dtype.is_int();
        cx.check(
            number,
            "scatter_elements.c5",
            format!("{} needs numbers, not {}", self.reduction, x.dtype),
        )?;
        for (a, d) in x.shape.iter().enumerate() {
            cx.require_eq(
                &u.shape[a],
                &i.shape[a],
                "updates and indices must have one shape [scatter_elements.c3]",
            )?;
            if a != axis {
                let why = format!("updates must not be longer than data on axis {a} [scatter_elements.c4]");
                cx.require(Pred::Le(i.shape[a].clone(), d.clone()), &why)?;
            }
        }
        Ok(vec![x.clone().into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let x = &cx.ins[0];
        let axis = index::axis(self.axis, x.rank());
        let read = view::labels(x.rank());
        let mut at = read.clone();
        at[axis] = Dim::val(0);
        Ok(index::class(read, x.shape[axis].clone(), at, self.combine()))
    }
    fn grad(&self) -> Grad<Self> {
        match self.combine() {
            Some(Combine::Set | Combine::Add) => Grad::Rule(back),
            _ => Grad::NotDifferentiable(
                "scatter_elements with mul, min or max keeps no record of what was joined",
            ),
        }
    }
}

fn back(op: &ScatterElements, cx: &mut GradCx<'_>) -> Vec<Option<GVal>> {
    let (i, g) = (cx.operands[1], cx.cotangents[0]);
    let updates = cx.op1(GatherElements { axis: op.axis }, &[g, i]);
    let data = match op.combine() {
        Some(Combine::Set) => {
            let ty = cx.b.ty(cx.operands[2]);
            let zeros = cx.zeros(&ty);
            cx.op1(op.clone(), &[g, i, zeros])
        }
        _ => g,
    };
    vec![Some(data), None, Some(updates)]
}
