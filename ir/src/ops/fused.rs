//! `fused`: a region that code generation turns into one kernel. Its meaning is the region's.
//!
//! Constraints: fused.c1 one region; fused.c2 its inputs have the operands' types in order.
//!
//! `%y = fused (%x, %w) { ... } : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::diag::Diag;
use crate::types::Fact;

crate::op_struct! {
    /// One kernel's worth of nodes.
    #[derive(Default)]
    pub struct Fused {}
}

impl OpDef for Fused {
    const SPEC: Spec = Spec {
        arity: Arity::Variadic(0),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let [region] = cx.regions else {
            return Err(cx.fail("E-IR-003", "one region is wanted [fused.c1]"));
        };
        let same =
            region.inputs().len() == cx.operands.len()
                && region.inputs().iter().zip(cx.operands).all(|(&i, o)| {
                    region.node(i).and_then(|n| n.results.first()).is_some_and(|f| f.ty == o.ty)
                });
        cx.check(same, "fused.c2", "the region's inputs must have the operands' types")?;
        let ty = |o: &crate::graph::Output| region.ty(o.value).cloned().map(Fact::from);
        region
            .outputs()
            .iter()
            .map(|o| ty(o).ok_or_else(|| cx.fail("E-IR-001", "an output is not in the region")))
            .collect()
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Parts
    }
}
