//! `constant`: a small tensor written in the graph. Big ones are weights.
//!
//! Constraints: none beyond a valid tensor.
//!
//! `%c = constant {value = dense<[1.0, 2.0]> : f32[2]} : f32[2]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::diag::Diag;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::types::{Dim, Fact, Type};

crate::op_struct! {
    /// A constant tensor: `value`, broadcast to `shape` when that is given (a splat has a rank-0 value).
    pub struct Constant {
        /// Elements.
        value: Tensor,
        /// Shape of the result when it differs from the value's; the value is then rank 0.
        shape: Option<Vec<Dim>> = None,
    }
}

impl Constant {
    /// A rank-0 constant.
    pub fn scalar(s: Scalar) -> Constant {
        Constant { value: Tensor::from_scalars(s.dtype, &[], [s]), shape: None }
    }
}

impl OpDef for Constant {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&[]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("Constant", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        match &self.shape {
            None => Ok(vec![self.value.ty().into()]),
            Some(s) => {
                cx.check(
                    self.value.shape.is_empty(),
                    "constant.c1",
                    "a constant with a shape has a rank-0 value",
                )?;
                Ok(vec![Type::new(self.value.dtype, s.clone()).into()])
            }
        }
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}
