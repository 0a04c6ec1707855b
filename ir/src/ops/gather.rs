//! `gather(data, indices)`: slices of `data` along an axis, one an index; the axis is replaced by the axes of `indices`.
//! Negative indices count from the end; others out of range are an error when the program runs.
//!
//! Constraints: gather.c1 the axis is in range; gather.c2 indices are integers.
//!
//! `%y = gather %x, %i {axis = 0} : f32[k, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, index, view};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Type};

crate::op_struct! {
    /// Slices at indices.
    pub struct Gather {
        /// The indexed axis, negative counting from the end.
        axis: i64 = 0,
    }
}

impl OpDef for Gather {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["data", "indices"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Gather", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (x, i) = (cx.ty(0)?, cx.ty(1)?);
        index::check_type(cx, 1, "gather.c2")?;
        let axis = cx.axis(self.axis, x.rank())?;
        let mut shape = x.shape.clone();
        shape.splice(axis..=axis, i.shape.iter().cloned());
        Ok(vec![Type::new(x.dtype, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let (x, rank) = (&cx.ins[0], cx.ins[1].rank());
        let axis = index::axis(self.axis, x.rank());
        let mut at = view::labels(cx.outs[0].rank());
        let read: Vec<Dim> = at.splice(axis..axis + rank, [Dim::val(0)]).collect();
        Ok(index::class(read, x.shape[axis].clone(), at, None))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let ty = cx.b.ty(cx.operands[0]);
            let axis = index::axis(op.axis, ty.rank());
            let (i, g) = (cx.operands[1], cx.cotangents[0]);
            vec![Some(cx.ungather(&ty, axis, i, g)), None]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;
    use crate::types::{DType, SymTable};

    #[test]
    fn indices_take_the_place_of_the_axis() {
        let x = Type::new(DType::F32, vec![Dim::sym("n"), Dim::from(5), Dim::from(7)]);
        let i = Type::fixed(DType::I64, &[2, 3]);
        let out = Type::new(DType::F32, vec![Dim::sym("n"), Dim::from(2), Dim::from(3), Dim::from(7)]);
        let low = super::super::Op::from(Gather { axis: -2 }).lower(&[x, i], &[out], &SymTable::default());
        let Ok(Lowering::Class(Class::Index(c))) = low else { panic!("not an index class") };
        let show = |v: &[Dim]| v.iter().map(Dim::to_string).collect::<Vec<_>>().join(" ");
        assert_eq!(show(&c.at), "#0 $0 #3");
        let (operand, read, bound) = &c.reads[0];
        assert_eq!((*operand, show(read), bound.to_string()), (1, "#1 #2".to_string(), "5".to_string()));
    }
}
