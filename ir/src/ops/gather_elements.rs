//! `gather_elements(data, indices)`: for each element of `indices`, the element of `data` at the same position with the
//! index along one axis. Negative indices count from the end; others out of range are an error when the program runs.
//!
//! Constraints: gather_elements.c1 the axis is in range; gather_elements.c2 indices are integers of data's rank;
//! gather_elements.c3 off the axis, dims of indices are not greater than data's.
//!
//! `%y = gather_elements %x, %i {axis = 1} : f32[n, 2]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, index, view};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Pred, Type};

crate::op_struct! {
    /// Elements at indices.
    pub struct GatherElements {
        /// The indexed axis, negative counting from the end.
        axis: i64 = 0,
    }
}

impl OpDef for GatherElements {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["data", "indices"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("GatherElements", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (x, i) = (cx.ty(0)?, cx.ty(1)?);
        index::check_type(cx, 1, "gather_elements.c2")?;
        cx.check(x.rank() == i.rank(), "gather_elements.c2", "data and indices must have one rank")?;
        let axis = cx.axis(self.axis, x.rank())?;
        for (a, (d, k)) in x.shape.iter().zip(&i.shape).enumerate().filter(|(a, _)| *a != axis) {
            let why = format!("indices must not be longer than data on axis {a} [gather_elements.c3]");
            cx.require(Pred::Le(k.clone(), d.clone()), &why)?;
        }
        Ok(vec![Type::new(x.dtype, i.shape.clone()).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let x = &cx.ins[0];
        let axis = index::axis(self.axis, x.rank());
        let read = view::labels(x.rank());
        let mut at = read.clone();
        at[axis] = Dim::val(0);
        Ok(index::class(read, x.shape[axis].clone(), at, None))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let ty = cx.b.ty(cx.operands[0]);
            let axis = index::axis(op.axis, ty.rank());
            let (i, g) = (cx.operands[1], cx.cotangents[0]);
            vec![Some(cx.scatter(&ty, axis, i, g)), None]
        })
    }
}
