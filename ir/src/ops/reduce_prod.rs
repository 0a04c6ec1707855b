//! `reduce_prod(x)`: product over axes. Floats accumulate in at least f32, integers wrap. Over nothing it is 1.
//!
//! Constraints: reduce_prod.c1 axes are in range and distinct; reduce_prod.c2 the element type is a number.
//!
//! `%y = reduce_prod %x {axes = [1]} : f32[n]`

use super::{
    Accuracy, Arity, Div, Eq, GVal, Grad, GradCx, InferCx, LowerCx, Lowering, Onnx, OpDef, ReduceSum, Select,
    Spec, reduce,
};
use crate::diag::Diag;
use crate::scalar::{Bin, Scalar};
use crate::types::{DType, Fact};

crate::op_struct! {
    /// Product over axes.
    pub struct ReduceProd {
        /// Reduced axes, negative counting from the end.
        axes: Vec<i64>,
        /// Keep them with extent 1.
        keepdims: bool = false,
    }
}

impl OpDef for ReduceProd {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("ReduceProd", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.ty(0)?.dtype;
        cx.check(d.is_float() || d.is_int(), "reduce_prod.c2", "the element type must be a number")?;
        reduce::infer(cx, &self.axes, self.keepdims, d)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let acc = reduce::sum_type(cx.ins[0].dtype);
        reduce::lower(cx, &self.axes, self.keepdims, Bin::Mul, acc, Scalar::from_f64(acc, 1.0))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| vec![Some(back(op, cx))])
    }
}

/// Product of the other elements times the cotangent: division by x only where no element is 0.
fn back(op: &ReduceProd, cx: &mut GradCx<'_>) -> GVal {
    let (x, g) = (cx.operands[0], reduce::spread(cx, &op.axes, op.keepdims));
    let d = cx.b.ty(x).dtype;
    let (zero, one) = (cx.num(d, 0.0), cx.num(d, 1.0));
    let is_zero = cx.op1(Eq {}, &[x, zero]);
    let safe = cx.op1(Select {}, &[is_zero, one, x]);
    let count = cx.cast(is_zero, DType::I64);
    let count = cx.op1(ReduceSum { axes: op.axes.clone(), keepdims: true }, &[count]);
    let prod = cx.op1(ReduceProd { axes: op.axes.clone(), keepdims: true }, &[safe]);
    let (none, single) = (cx.num(DType::I64, 0.0), cx.num(DType::I64, 1.0));
    let (no_zero, one_zero) = (cx.op1(Eq {}, &[count, none]), cx.op1(Eq {}, &[count, single]));
    let others = cx.op1(Div {}, &[prod, safe]);
    let at_zero = cx.op1(Select {}, &[one_zero, prod, zero]);
    let elsewhere = cx.op1(Select {}, &[no_zero, others, zero]);
    let factor = cx.op1(Select {}, &[is_zero, at_zero, elsewhere]);
    cx.mul(g, factor)
}
