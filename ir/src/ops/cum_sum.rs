//! `cum_sum(x)`: running sum along an axis, the element itself included unless `exclusive`; from the end with `reverse`.
//! Floats accumulate in at least f32, integers wrap.
//!
//! Constraints: cum_sum.c1 the axis is in range; cum_sum.c2 the element type is a number.
//!
//! `%y = cum_sum %x {axis = 1} : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, index, reduce};
use crate::class::{Class, Cumulate, Reducer};
use crate::diag::Diag;
use crate::scalar::{Bin, Scalar};
use crate::types::Fact;

crate::op_struct! {
    /// Running sum.
    pub struct CumSum {
        /// The axis, negative counting from the end.
        axis: i64,
        /// Leave the element itself out.
        exclusive: bool = false,
        /// From the last element to the first.
        reverse: bool = false,
    }
}

impl OpDef for CumSum {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("CumSum", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.axis(self.axis, t.rank())?;
        let number = t.dtype.is_float() || t.dtype.is_int();
        cx.check(number, "cum_sum.c2", format!("the element type must be a number, not {}", t.dtype))?;
        Ok(vec![t.clone().into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        let acc = reduce::sum_type(d);
        Ok(Lowering::Class(Class::Cumulate(Cumulate {
            axis: index::axis(self.axis, cx.ins[0].rank()),
            reverse: self.reverse,
            exclusive: self.exclusive,
            reducer: Reducer::simple(Bin::Add, d, acc, Scalar::from_f64(acc, 0.0), d),
        })))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let g = cx.cotangents[0];
            vec![Some(cx.op1(CumSum { reverse: !op.reverse, ..op.clone() }, &[g]))]
        })
    }
}
