//! `batch_norm(x, scale, bias, mean, variance)`: `x * s + (bias - mean * s)` with `s = scale / sqrt(variance + epsilon)`,
//! one value a channel (axis 1), in at least f32 and rounded once. This is the form for inference: the statistics are
//! operands, so that all but one product and one sum an element is known beforehand.
//!
//! Constraints: batch_norm.c1 the operands have float types; batch_norm.c2 x has rank 2 or more; batch_norm.c3 the others
//! have shape [C]; batch_norm.c4 epsilon is finite and not negative.
//!
//! `%y = batch_norm %x, %scale, %bias, %mean, %variance : f32[n, 3, 8]`

use super::{
    Accuracy, Add, Arity, Grad, InferCx, LowerCx, Lowering, Mul, Onnx, OpDef, Reciprocal, Spec, Sqrt, Sub,
    parts,
};
use crate::diag::Diag;
use crate::types::{DType, Fact};

crate::op_struct! {
    /// Normalisation by given statistics.
    pub struct BatchNorm {
        /// Added to the variance.
        epsilon: f64 = 1e-5,
    }
}

impl OpDef for BatchNorm {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x", "scale", "bias", "mean", "variance"]),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("BatchNormalization", 9, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let x = cx.ty(0)?;
        let operands = cx.operands;
        let floats = operands.iter().all(|f| f.ty.dtype.is_float());
        cx.check(floats, "batch_norm.c1", "the operands must have float types")?;
        cx.check(x.rank() >= 2, "batch_norm.c2", "the operand needs rank 2 or more ([N, C, ..])")?;
        let fine = self.epsilon.is_finite() && self.epsilon >= 0.0;
        cx.check(
            fine,
            "batch_norm.c4",
            format!("epsilon must be finite and not negative, found {}", self.epsilon),
        )?;
        for f in &operands[1..] {
            cx.check(f.ty.rank() == 1, "batch_norm.c3", "scale, bias, mean and variance must have one axis")?;
            cx.require_eq(&f.ty.shape[0], &x.shape[1], "one value a channel is wanted [batch_norm.c3]")?;
        }
        Ok(vec![x.clone().into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let x = &cx.ins[0];
        let wide = if cx.ins.iter().any(|t| t.dtype == DType::F64) { DType::F64 } else { DType::F32 };
        parts::decompose(cx, |b, v| {
            let value = b.cast(v[0], wide)?;
            let mut channel = Vec::new();
            for (&p, t) in v.iter().zip(cx.ins).skip(1) {
                let p = b.cast(p, wide)?;
                channel.push(b.reshape(p, parts::along(0, x.rank() - 1, &t.shape[0]))?);
            }
            let epsilon = b.num(wide, self.epsilon)?;
            let sum = b.op(Add {}, &[channel[3], epsilon])?;
            let root = b.op(Sqrt {}, &[sum])?;
            let inverse = b.op(Reciprocal {}, &[root])?;
            let factor = b.op(Mul {}, &[channel[0], inverse])?;
            let moved = b.op(Mul {}, &[channel[2], factor])?;
            let shift = b.op(Sub {}, &[channel[1], moved])?;
            let scaled = b.op(Mul {}, &[value, factor])?;
            let y = b.op(Add {}, &[scaled, shift])?;
            b.cast(y, x.dtype)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Parts
    }
}
