//! `input`: a parameter of a graph or region. Printed in the graph's signature, not as a node.
//!
//! Constraints: none beyond a valid type.

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Type};

crate::op_struct! {
    /// A parameter.
    pub struct Input {
        /// Name in the model.
        name: String,
        /// Element type.
        dtype: DType,
        /// Dims.
        shape: Vec<Dim>,
        /// The state whose old value this is.
        state: Option<String> = None,
        /// The weight that is its value when the caller gives none.
        default: Option<String> = None,
    }
}

impl Default for Input {
    fn default() -> Self {
        Input { name: String::new(), dtype: DType::F32, shape: Vec::new(), state: None, default: None }
    }
}

impl OpDef for Input {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&[]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, _: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        Ok(vec![Type::new(self.dtype, self.shape.clone()).into()])
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}
