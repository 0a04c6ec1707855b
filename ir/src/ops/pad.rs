//! `pad(x)`: a constant around the operand.
//!
//! Constraints: pad.c1 one amount an axis on each side; pad.c2 amounts are 0 or more; pad.c3 `value` has the operand's
//! type.
//!
//! `%y = pad %x {before = (0, 1), after = (0, 2), value = 0.0 : f32} : f32[n, 7]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::class::{Class, Piece, View};
use crate::diag::Diag;
use crate::scalar::Scalar;
use crate::types::{Dim, Fact, Pred, Type};

crate::op_struct! {
    /// A constant border.
    pub struct Pad {
        /// Elements added before each axis.
        before: Vec<Dim>,
        /// Elements added after each axis.
        after: Vec<Dim>,
        /// Their value.
        value: Scalar,
    }
}

impl OpDef for Pad {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Pad", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let lens = (self.before.len(), self.after.len());
        let text = format!("before and after need {} entries each, found {lens:?}", t.rank());
        cx.check(lens == (t.rank(), t.rank()), "pad.c1", text)?;
        let text = format!("the value is {} and the operand {}", self.value.dtype, t.dtype);
        cx.check(self.value.dtype == t.dtype, "pad.c3", text)?;
        for d in self.before.iter().chain(&self.after) {
            cx.require(Pred::Le(Dim::from(0), d.clone()), "padding must be 0 or more [pad.c2]")?;
        }
        let sides = self.before.iter().zip(&self.after);
        let shape = t.shape.iter().zip(sides).map(|(d, (b, a))| d.clone() + b.clone() + a.clone()).collect();
        Ok(vec![Type::new(t.dtype, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let inner = &cx.ins[0].shape;
        let hi = inner.iter().zip(&self.before).map(|(d, b)| d.clone() + b.clone()).collect();
        let index = self.before.iter().enumerate().map(|(i, b)| Dim::label(i as u32) - b.clone()).collect();
        let pieces = vec![Piece { lo: self.before.clone(), hi, operand: 0, index }];
        Ok(Lowering::Class(Class::View(View { pieces, fill: Some(self.value) })))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let g = cx.cotangents[0];
            let shape = cx.b.ty(cx.operands[0]).shape;
            vec![Some(cx.window(g, op.before.clone(), shape))]
        })
    }
}
