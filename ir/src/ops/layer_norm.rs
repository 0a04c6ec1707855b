//! `layer_norm(x, scale, bias)`: `(x - mean) / sqrt(variance + epsilon) * scale + bias` with mean and variance over axes,
//! in at least f32 and rounded once. `bias` may be left out.
//!
//! Constraints: layer_norm.c1 all operands have one float type; layer_norm.c2 the axes are in range and distinct;
//! layer_norm.c3 scale and bias broadcast to the shape of x; layer_norm.c4 epsilon is finite and not negative.
//!
//! `%y = layer_norm %x, %scale, %bias {axes = [-1]} : f32[n, 4]`

use super::{
    Accuracy, Add, Arity, Expand, Grad, InferCx, LowerCx, Lowering, Mul, Onnx, OpDef, Reciprocal, ReduceMean,
    Spec, Sqrt, Sub, parts, reduce,
};
use crate::diag::Diag;
use crate::graph::Value;
use crate::types::{Dim, Fact, Pred};

crate::op_struct! {
    /// Normalisation over axes.
    pub struct LayerNorm {
        /// Normalised axes, negative counting from the end.
        axes: Vec<i64>,
        /// Added to the variance.
        epsilon: f64 = 1e-5,
    }
}

/// A scale or bias that certainly broadcasts to the operand's shape and to no greater one.
fn fitted(b: &mut parts::Parts<'_>, v: Value, shape: &[Dim]) -> Result<Value, Diag> {
    let own = b.ty(v).shape;
    let shape = shape[shape.len() - own.len()..].to_vec();
    let fits = own.iter().zip(&shape).all(|(d, to)| d == to || d.is(1));
    if fits { Ok(v) } else { b.op(Expand { shape }, &[v]) }
}

impl OpDef for LayerNorm {
    const SPEC: Spec = Spec {
        arity: Arity::Optional(&["x", "scale", "bias"], 2),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("LayerNormalization", 17, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.same_dtype()?;
        cx.check(d.is_float(), "layer_norm.c1", format!("the element type must be a float, not {d}"))?;
        let fine = self.epsilon.is_finite() && self.epsilon >= 0.0;
        cx.check(
            fine,
            "layer_norm.c4",
            format!("epsilon must be finite and not negative, found {}", self.epsilon),
        )?;
        reduce::infer(cx, &self.axes, true, d)?;
        let x = cx.ty(0)?;
        let operands = cx.operands;
        for f in &operands[1..] {
            let fits = f.ty.rank() <= x.rank();
            cx.check(fits, "layer_norm.c3", "scale and bias must not have more axes than the operand")?;
            for (d, to) in f.ty.shape.iter().zip(&x.shape[x.rank() - f.ty.rank().min(x.rank())..]) {
                if d != to && !d.is(1) {
                    let fits =
                        Pred::Or(vec![Pred::Eq(d.clone(), to.clone()), Pred::Eq(d.clone(), Dim::from(1))]);
                    cx.require(fits, "scale and bias must broadcast to the operand [layer_norm.c3]")?;
                }
            }
        }
        Ok(vec![x.clone().into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let d = cx.ins[0].dtype;
        let wide = parts::wide_type(d);
        let mean = ReduceMean { axes: self.axes.clone(), keepdims: true };
        parts::decompose(cx, |b, v| {
            let x = b.cast(v[0], wide)?;
            let m = b.op(mean.clone(), &[x])?;
            let centred = b.op(Sub {}, &[x, m])?;
            let square = b.op(Mul {}, &[centred, centred])?;
            let variance = b.op(mean, &[square])?;
            let epsilon = b.num(wide, self.epsilon)?;
            let sum = b.op(Add {}, &[variance, epsilon])?;
            let root = b.op(Sqrt {}, &[sum])?;
            let inverse = b.op(Reciprocal {}, &[root])?;
            let normal = b.op(Mul {}, &[centred, inverse])?;
            let scale = b.cast(v[1], wide)?;
            let scale = fitted(b, scale, &cx.ins[0].shape)?;
            let mut y = b.op(Mul {}, &[normal, scale])?;
            if let Some(&bias) = v.get(2) {
                let bias = b.cast(bias, wide)?;
                let bias = fitted(b, bias, &cx.ins[0].shape)?;
                y = b.op(Add {}, &[y, bias])?;
            }
            b.cast(y, d)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Parts
    }
}
