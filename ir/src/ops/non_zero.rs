//! `non_zero(x)`: positions of the elements that are not 0 (or true), row-major: indices [rank, numel], one column an
//! element, padded with 0, and their number.
//!
//! Constraints: non_zero.c1 rank 1 or more; non_zero.c2 the element type is a number or bool.
//!
//! `%i, %n = non_zero %x : i64[2, 4*n], i64[]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::class::{Class, Opaque};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Type};

crate::op_struct! {
    /// Positions of true elements.
    #[derive(Default)]
    pub struct NonZero {}
}

impl OpDef for NonZero {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("NonZero", 9, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.check(t.rank() > 0, "non_zero.c1", "the operand needs at least one axis")?;
        cx.check(!t.dtype.is_storage_only(), "non_zero.c2", "the element type must be a number or bool")?;
        let indices = Type::new(DType::I64, vec![Dim::from(t.rank()), t.numel()]);
        Ok(vec![indices.into(), Type::scalar(DType::I64).into()])
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Class(Class::Opaque(Opaque::NonZero)))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}
