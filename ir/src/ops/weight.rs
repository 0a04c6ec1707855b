//! `weight`: a tensor of the module's weight store, by name. The graph never holds its data.
//!
//! Constraints: weight.c1 (checked with the module at hand) the store has the name with this type.
//!
//! `%w = weight {name = "fc1.weight", dtype = f32, shape = (512, 784)} : f32[512, 784]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Type};

crate::op_struct! {
    /// A named weight.
    pub struct Weight {
        /// Name in the store.
        name: String,
        /// Element type.
        dtype: DType,
        /// Constant dims.
        shape: Vec<Dim>,
    }
}

impl OpDef for Weight {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&[]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let fixed = self.shape.iter().all(|d| d.as_const().is_some_and(|c| c >= 0));
        cx.check(fixed, "weight.c1", "dims of a weight are numbers")?;
        Ok(vec![Type::new(self.dtype, self.shape.clone()).into()])
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}
