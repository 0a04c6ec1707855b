//! `cast(x)`: elementwise conversion. To floats it rounds to nearest even; floats to integers truncate and saturate, NaN
//! to 0; integers wrap; not-zero to bool.
//!
//! Constraints: cast.c1 neither type is a storage type (4-bit, 2-bit and 8-bit float conversion is not built).
//!
//! `%y = cast %x {to = f16} : f16[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, map};
use crate::diag::Diag;
use crate::types::{DType, Fact, Type};

crate::op_struct! {
    /// Elementwise conversion.
    pub struct Cast {
        /// Element type of the result.
        to: DType,
    }
}

impl OpDef for Cast {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Cast", 6, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        for d in [t.dtype, self.to] {
            let fine = !d.is_storage_only();
            cx.check(fine, "cast.c1", format!("conversion of the storage type {d} is not built"))?;
        }
        Ok(vec![Type::new(self.to, t.shape.clone()).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        map::lower(cx.ins, |e, a| e.cast(self.to, a[0]))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let from = cx.b.ty(cx.operands[0]).dtype;
            let g = cx.cotangents[0];
            vec![(from.is_float() && op.to.is_float()).then(|| cx.cast(g, from))]
        })
    }
}
