//! `iota()`: each element is its index along one axis.
//!
//! Constraints: iota.c1 the axis is in range; iota.c2 the element type is a number.
//!
//! `%y = iota {axis = 0, shape = (n, 4), dtype = i64} : i64[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, map};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Type};

crate::op_struct! {
    /// Indices along an axis.
    pub struct Iota {
        /// The axis whose index is the value.
        axis: i64,
        /// Dims of the result.
        shape: Vec<Dim>,
        /// Element type of the result.
        dtype: DType,
    }
}

impl OpDef for Iota {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&[]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        cx.axis(self.axis, self.shape.len())?;
        let number = self.dtype.is_float() || self.dtype.is_int();
        cx.check(number, "iota.c2", format!("the element type must be a number, not {}", self.dtype))?;
        Ok(vec![Type::new(self.dtype, self.shape.clone()).into()])
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let rank = self.shape.len() as i64;
        let axis = if self.axis < 0 { self.axis + rank } else { self.axis };
        map::lower(&[], |e, _| {
            let i = e.dim(Dim::label(axis as u32));
            e.cast(self.dtype, i)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}
