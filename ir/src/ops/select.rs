//! `select(c, a, b)`: elementwise `c ? a : b` with three-way numpy broadcasting.
//!
//! Constraints: select.c1 `c` is bool; select.c2 `a` and `b` have one element type that is computed with; select.c3 the
//! shapes broadcast.
//!
//! `%y = select %c, %a, %b : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, map};
use crate::diag::Diag;
use crate::types::{DType, Fact, Type};

crate::op_struct! {
    /// Elementwise choice.
    #[derive(Default)]
    pub struct Select {}
}

impl OpDef for Select {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["c", "a", "b"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Where", 9, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (c, a, b) = (cx.ty(0)?, cx.ty(1)?, cx.ty(2)?);
        cx.check(c.dtype == DType::Bool, "select.c1", "the condition must be bool")?;
        if a.dtype != b.dtype {
            return Err(cx.fail("E-IR-007", "both choices must have one element type").help("insert a cast"));
        }
        let computed = !a.dtype.is_storage_only();
        cx.check(computed, "select.c2", format!("{} is a storage type; cast it first", a.dtype))?;
        let shape = cx.broadcast(&a.shape, &b.shape)?;
        let shape = cx.broadcast(&c.shape, &shape)?;
        Ok(vec![Type::new(a.dtype, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        map::lower(cx.ins, |e, a| e.select(a[0], a[1], a[2]))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::FromExpr
    }
}
