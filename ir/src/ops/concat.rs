//! `concat(x..)`: the operands one after another along an axis.
//!
//! Constraints: concat.c1 one element type and rank; concat.c2 the axis is in range; concat.c3 the other dims are equal.
//!
//! `%y = concat %a, %b {axis = 1} : f32[n, 6]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, view};
use crate::class::{Class, Piece, View};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Type};

crate::op_struct! {
    /// Joined operands.
    pub struct Concat {
        /// The axis, negative counting from the end.
        axis: i64,
    }
}

impl Concat {
    fn at(&self, rank: usize) -> usize {
        (if self.axis < 0 { self.axis + rank as i64 } else { self.axis }) as usize
    }
}

impl OpDef for Concat {
    const SPEC: Spec = Spec {
        arity: Arity::Variadic(1),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Concat", 4, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let dtype = cx.same_dtype()?;
        let first = cx.ty(0)?;
        let operands = cx.operands;
        let alike = operands.iter().all(|f| f.ty.rank() == first.rank());
        cx.check(alike, "concat.c1", "the operands must have one rank")?;
        let axis = cx.axis(self.axis, first.rank())?;
        let mut shape = first.shape.clone();
        for f in &operands[1..] {
            for (i, d) in f.ty.shape.iter().enumerate().filter(|(i, _)| *i != axis) {
                cx.require_eq(&first.shape[i], d, "dims off the axis must be equal [concat.c3]")?;
                // a number says more than a symbol that must equal it
                if d.as_const().is_some() {
                    shape[i] = d.clone();
                }
            }
        }
        shape[axis] = operands.iter().map(|f| f.ty.shape[axis].clone()).sum();
        Ok(vec![Type::new(dtype, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let out = &cx.outs[0];
        let axis = self.at(out.rank());
        let mut from = Dim::from(0);
        let mut pieces = Vec::new();
        for (operand, t) in cx.ins.iter().enumerate() {
            let (mut lo, mut hi) = (vec![Dim::from(0); out.rank()], out.shape.clone());
            let mut index = view::labels(out.rank());
            index[axis] = index[axis].clone() - from.clone();
            lo[axis] = from.clone();
            from = from + t.shape[axis].clone();
            hi[axis] = from.clone();
            pieces.push(Piece { lo, hi, operand, index });
        }
        Ok(Lowering::Class(Class::View(View { pieces, fill: None })))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let (g, mut from, mut out) = (cx.cotangents[0], Dim::from(0), Vec::new());
            for x in cx.operands.clone() {
                let shape = cx.b.ty(x).shape;
                let axis = op.at(shape.len());
                let mut starts = vec![Dim::from(0); shape.len()];
                starts[axis] = from.clone();
                from = from + shape[axis].clone();
                out.push(Some(cx.window(g, starts, shape)));
            }
            out
        })
    }
}
