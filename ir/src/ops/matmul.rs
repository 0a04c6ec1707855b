//! `matmul(a, b)`: matrix product by numpy's rule: the last two axes multiply, the others broadcast; a rank-1 operand is
//! a row on the left, a column on the right, and its axis is dropped.
//!
//! Constraints: matmul.c1 one element type, a number; matmul.c2 both ranks are at least 1; matmul.c3 the inner dims are
//! equal; matmul.c4 the outer dims broadcast.
//!
//! `%y = matmul %a, %b : f32[n, 4]`

use super::{Accuracy, Arity, GVal, Grad, GradCx, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, reduce};
use crate::class::{Access, Class, Contract, broadcast_index};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Type};

crate::op_struct! {
    /// Matrix product.
    #[derive(Default)]
    pub struct Matmul {}
}

/// Length of one accumulation chain.
pub(crate) const CHUNK: u32 = 1024;

/// Outer dims, row (None for rank 1) and inner dim of the left operand; the right one's column and inner dim by `right`.
fn split(t: &Type, right: bool) -> (&[Dim], Option<&Dim>, &Dim) {
    let r = t.rank();
    match (r, right) {
        (1, _) => (&[], None, &t.shape[0]),
        (_, false) => (&t.shape[..r - 2], Some(&t.shape[r - 2]), &t.shape[r - 1]),
        (_, true) => (&t.shape[..r - 2], Some(&t.shape[r - 1]), &t.shape[r - 2]),
    }
}

impl OpDef for Matmul {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["a", "b"]),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("MatMul", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.same_dtype()?;
        let (a, b) = (cx.ty(0)?, cx.ty(1)?);
        cx.check(d.is_float() || d.is_int(), "matmul.c1", "the element type must be a number")?;
        cx.check(a.rank() > 0 && b.rank() > 0, "matmul.c2", "both operands need at least one axis")?;
        let ((oa, m, ka), (ob, n, kb)) = (split(a, false), split(b, true));
        cx.require_eq(ka, kb, "the inner dims must be equal [matmul.c3]")?;
        let mut shape = cx.broadcast(oa, ob)?;
        shape.extend(m.into_iter().chain(n).cloned());
        Ok(vec![Type::new(d, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let (a, b, out) = (&cx.ins[0], &cx.ins[1], &cx.outs[0]);
        let ((oa, m, k), (ob, n, kb)) = (split(a, false), split(b, true));
        let outer = &out.shape[..out.rank() - usize::from(m.is_some()) - usize::from(n.is_some())];
        let (row, red) = (outer.len() as u32, out.rank() as u32);
        let column = row + u32::from(m.is_some());
        let mut left = broadcast_index(oa, outer);
        left.extend(m.map(|_| Dim::label(row)));
        left.push(Dim::label(red));
        let mut right = broadcast_index(ob, outer);
        right.push(Dim::label(red));
        right.extend(n.map(|_| Dim::label(column)));
        // where the two may differ by a guard, the number says more
        let inner = if k.as_const().is_some() { k } else { kb };
        let mut extents = out.shape.clone();
        extents.push(inner.clone());
        Ok(Lowering::Class(Class::Contract(Contract {
            extents,
            out: (0..red).collect(),
            red: vec![red],
            operands: [Access::plain(left), Access::plain(right)],
            acc: reduce::sum_type(a.dtype),
            chunk: CHUNK,
        })))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|_, cx| back(cx))
    }
}

/// `da = g b^T`, `db = a^T g`, summed over broadcast outer axes.
fn back(cx: &mut GradCx<'_>) -> Vec<Option<GVal>> {
    let (a, b, g) = (cx.operands[0], cx.operands[1], cx.cotangents[0]);
    let (ta, tb, mut shape) = (cx.b.ty(a), cx.b.ty(b), cx.b.ty(g).shape);
    let one = Dim::from(1);
    if tb.rank() == 1 {
        shape.push(one.clone());
    }
    if ta.rank() == 1 {
        shape.insert(shape.len() - 1, one.clone());
    }
    let g = cx.reshape(g, shape);
    let a2 = if ta.rank() == 1 { cx.reshape(a, vec![one.clone(), ta.shape[0].clone()]) } else { a };
    let b2 = if tb.rank() == 1 { cx.reshape(b, vec![tb.shape[0].clone(), one]) } else { b };
    let flipped = |cx: &mut GradCx<'_>, x: GVal| {
        let r = cx.b.ty(x).rank();
        let perm: Vec<usize> = (0..r - 2).chain([r - 1, r - 2]).collect();
        cx.transpose(x, &perm)
    };
    let (bt, at) = (flipped(cx, b2), flipped(cx, a2));
    let (da, db) = (cx.op1(Matmul {}, &[g, bt]), cx.op1(Matmul {}, &[at, g]));
    let (da, db) = (cx.sum_to(da, a2), cx.sum_to(db, b2));
    vec![Some(cx.reshape(da, ta.shape)), Some(cx.reshape(db, tb.shape))]
}
