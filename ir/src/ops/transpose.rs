//! `transpose(x)`: reorders axes; axis i of the result is axis `perm[i]` of the operand.
//!
//! Constraints: transpose.c1 `perm` holds every axis once.
//!
//! `%y = transpose %x {perm = [1, 0]} : f32[4, n]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, view};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Type};

crate::op_struct! {
    /// Reordered axes.
    pub struct Transpose {
        /// Operand axis of each result axis, negative counting from the end.
        perm: Vec<i64>,
    }
}

impl Transpose {
    /// The permutation as indices; None unless it holds every axis once.
    fn order(&self, rank: usize) -> Option<Vec<usize>> {
        let mut seen = vec![false; rank];
        let at = |&p: &i64| usize::try_from(if p < 0 { p + rank as i64 } else { p }).ok();
        let order: Vec<usize> = self.perm.iter().map(at).collect::<Option<_>>()?;
        for &p in &order {
            if std::mem::replace(seen.get_mut(p)?, true) {
                return None;
            }
        }
        (order.len() == rank).then_some(order)
    }
}

impl OpDef for Transpose {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Transpose", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let text = format!("{:?} is not an order of the {} axes", self.perm, t.rank());
        let order = self.order(t.rank());
        cx.check(order.is_some(), "transpose.c1", text)?;
        let shape = order.iter().flatten().map(|&p| t.shape[p].clone()).collect();
        Ok(vec![Type::new(t.dtype, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let rank = cx.outs[0].rank();
        let mut index = vec![Dim::from(0); rank];
        for (i, p) in self.order(rank).unwrap_or_default().into_iter().enumerate() {
            index[p] = Dim::label(i as u32);
        }
        Ok(view::whole(&cx.outs[0], 0, index))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let rank = cx.b.ty(cx.operands[0]).rank();
            let mut back = vec![0; rank];
            for (i, p) in op.order(rank).unwrap_or_default().into_iter().enumerate() {
                back[p] = i;
            }
            let g = cx.cotangents[0];
            vec![Some(cx.transpose(g, &back))]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_takes_each_axis_once() {
        let order = |p: &[i64], rank| Transpose { perm: p.to_vec() }.order(rank);
        assert_eq!(order(&[2, 0, -2], 3), Some(vec![2, 0, 1]));
        assert_eq!(order(&[0, 0, 1], 3), None);
        assert_eq!(order(&[0, 1], 3), None);
        assert_eq!(order(&[0, 3], 2), None);
        assert_eq!(order(&[0, -3], 2), None);
        assert_eq!(order(&[], 0), Some(vec![]));
    }
}
