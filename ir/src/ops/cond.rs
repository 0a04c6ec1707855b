//! `cond(c, captured..)`: one of two regions, by a bool: the first when true. Regions are closed; what they read is
//! captured.
//!
//! Constraints: cond.c1 the condition is bool of rank 0; cond.c2 two regions; cond.c3 their inputs have the captured
//! values' types; cond.c4 their results have equal types.
//!
//! `%y = cond (%c, %x) { ... } { ... } : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, region};
use crate::diag::Diag;
use crate::types::{DType, Fact};

crate::op_struct! {
    /// Choice between regions.
    #[derive(Default)]
    pub struct Cond {}
}

impl OpDef for Cond {
    const SPEC: Spec = Spec {
        arity: Arity::Variadic(1),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("If", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let c = cx.ty(0)?;
        cx.check(c.dtype == DType::Bool && c.rank() == 0, "cond.c1", "the condition must be bool of rank 0")?;
        let [yes, no] = cx.regions else {
            return Err(
                cx.fail("E-IR-003", format!("{} regions given, two wanted [cond.c2]", cx.regions.len()))
            );
        };
        let captured: Vec<_> = cx.operands[1..].iter().map(|f| f.ty.clone()).collect();
        for r in [yes, no] {
            region::check_inputs(cx, r, &captured, "cond.c3")?;
        }
        let (a, b) = (region::outputs(cx, yes)?, region::outputs(cx, no)?);
        let list = |v: &[crate::types::Type]| v.iter().map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
        let text = format!("the regions' results differ: ({}) and ({})", list(&a), list(&b));
        cx.check(a == b, "cond.c4", text)?;
        Ok(a.into_iter().map(Fact::from).collect())
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Parts
    }
}
