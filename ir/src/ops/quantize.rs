//! `quantize(x, scale, zero_point)`: `saturate(round(x / scale) + zero_point)`, halves to even, NaN to 0. One scale for
//! all, or one an element of an axis. `zero_point` may be left out (0).
//!
//! Constraints: quantize.c1 x is a float type and scale of the same; quantize.c2 `to` is i8, u8, i16, u16 or i32;
//! quantize.c3 scale and zero point fit the axis, and the zero point has type `to`.
//!
//! `%q = quantize %x, %s, %z {to = u8} : u8[n, 4]`

use super::{
    Accuracy, Add, Arity, Div, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Round, Spec, parts, quant,
};
use crate::diag::Diag;
use crate::types::{DType, Fact, Type};

crate::op_struct! {
    /// Float to small integer.
    pub struct Quantize {
        /// Axis of several scales, negative counting from the end; none: one scale.
        axis: Option<i64> = None,
        /// Integer type of the result.
        to: DType,
    }
}

impl OpDef for Quantize {
    const SPEC: Spec = Spec {
        arity: Arity::Optional(&["x", "scale", "zero_point"], 2),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("QuantizeLinear", 13, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (x, s) = (cx.ty(0)?, cx.ty(1)?);
        let float = x.dtype.is_float() && s.dtype == x.dtype;
        cx.check(float, "quantize.c1", "the operand and its scale must have one float type")?;
        let text = format!("the result must be i8, u8, i16, u16 or i32, not {}", self.to);
        cx.check(quant::is_quantized(self.to), "quantize.c2", text)?;
        quant::check(cx, self.axis, self.to, "quantize.c3")?;
        Ok(vec![Type::new(self.to, x.shape.clone()).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let x = &cx.ins[0];
        // f32 holds every value of 16 bits, f64 every one of 32
        let wide = if self.to == DType::I32 { DType::F64 } else { parts::wide_type(x.dtype) };
        parts::decompose(cx, |b, v| {
            let value = b.cast(v[0], wide)?;
            let scale = quant::fit(b, v[1], self.axis, x)?;
            let scale = b.cast(scale, wide)?;
            let units = b.op(Div {}, &[value, scale])?;
            let mut y = b.op(Round {}, &[units])?;
            if let Some(&z) = v.get(2) {
                let z = quant::fit(b, z, self.axis, x)?;
                let z = b.cast(z, wide)?;
                y = b.op(Add {}, &[y, z])?;
            }
            b.cast(y, self.to)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::NotDifferentiable(
            "rounding is flat almost everywhere; training through it needs a straight-through rule",
        )
    }
}
