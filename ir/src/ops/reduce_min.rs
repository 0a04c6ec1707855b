//! `reduce_min(x)`: smallest element over axes; NaN wins, -0 < +0. Over nothing it is the type's greatest value (inf).
//!
//! Constraints: reduce_min.c1 axes are in range and distinct; reduce_min.c2 the element type is a number or bool.
//!
//! `%y = reduce_min %x {axes = [1]} : f32[n]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, reduce};
use crate::diag::Diag;
use crate::scalar::{Bin, Scalar};
use crate::types::Fact;

crate::op_struct! {
    /// Minimum over axes.
    pub struct ReduceMin {
        /// Reduced axes, negative counting from the end.
        axes: Vec<i64>,
        /// Keep them with extent 1.
        keepdims: bool = false,
    }
}

impl OpDef for ReduceMin {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("ReduceMin", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.ty(0)?.dtype;
        cx.check(!d.is_storage_only(), "reduce_min.c2", "the element type must be a number or bool")?;
        reduce::infer(cx, &self.axes, self.keepdims, d)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        reduce::lower(cx, &self.axes, self.keepdims, Bin::Min, d, Scalar::extreme(d, true))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| vec![Some(reduce::extreme_back(cx, &op.axes, op.keepdims))])
    }
}
