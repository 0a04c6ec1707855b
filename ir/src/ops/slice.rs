//! `slice(x)`: element `starts + steps * i` on every axis, `sizes` of them; a negative step runs backwards.
//!
//! Constraints: slice.c1 one start, size and step an axis; slice.c2 steps are not 0; slice.c3 every element taken is
//! inside the operand.
//!
//! `%y = slice %x {starts = (0, 1), sizes = (n, 2), steps = [1, 2]} : f32[n, 2]`

use super::{Accuracy, Arity, GVal, Grad, GradCx, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, view};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Pred, Type};

crate::op_struct! {
    /// A regular part.
    pub struct Slice {
        /// First index on each axis.
        starts: Vec<Dim>,
        /// Number of elements on each axis.
        sizes: Vec<Dim>,
        /// Distance of elements on each axis.
        steps: Vec<i64>,
    }
}

/// Largest distance of elements.
const LIMIT: i64 = 1 << 31;

impl OpDef for Slice {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Slice", 10, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let lens = (self.starts.len(), self.sizes.len(), self.steps.len());
        let text = format!("starts, sizes and steps need {} entries each, found {lens:?}", t.rank());
        cx.check(lens == (t.rank(), t.rank(), t.rank()), "slice.c1", text)?;
        let fine = self.steps.iter().all(|s| *s != 0 && (-LIMIT..=LIMIT).contains(s));
        cx.check(
            fine,
            "slice.c2",
            format!("steps must be from -2^31 to 2^31 and not 0, found {:?}", self.steps),
        )?;
        let why = "the elements taken must be inside the operand [slice.c3]";
        for (i, d) in t.shape.iter().enumerate() {
            let (start, one, zero) = (self.starts[i].clone(), Dim::from(1), Dim::from(0));
            // for an empty slice these are weaker than for one element, which is what the end of an axis needs
            let last = start.clone() + (self.sizes[i].clone() - one.clone()) * Dim::from(self.steps[i]);
            let (low, high) = if self.steps[i] > 0 { (start, last) } else { (last, start) };
            cx.require(Pred::Le(zero, low), why)?;
            cx.require(Pred::Le(high + one, d.clone()), why)?;
        }
        Ok(vec![Type::new(t.dtype, self.sizes.clone()).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let at = |i: usize| self.starts[i].clone() + Dim::label(i as u32) * Dim::from(self.steps[i]);
        Ok(view::whole(&cx.outs[0], 0, (0..self.sizes.len()).map(at).collect()))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| vec![Some(back(op, cx))])
    }
}

/// Spreads the cotangent: a scatter on each axis with a step, then zeros around.
fn back(op: &Slice, cx: &mut GradCx<'_>) -> GVal {
    let full = cx.b.ty(cx.operands[0]);
    let mut g = cx.cotangents[0];
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (i, d) in full.shape.iter().enumerate() {
        let (start, size) = (op.starts[i].clone(), op.sizes[i].clone());
        if op.steps[i] == 1 {
            after.push(d.clone() - start.clone() - size);
            before.push(start);
            continue;
        }
        let at = cx.line(g, i, start, op.steps[i]);
        let mut ty = cx.b.ty(g);
        ty.shape[i] = d.clone();
        g = cx.scatter(&ty, i, at, g);
        before.push(Dim::from(0));
        after.push(Dim::from(0));
    }
    cx.pad(g, before, after)
}
