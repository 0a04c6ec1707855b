//! `dequantize(x, scale, zero_point)`: `(x - zero_point) * scale` in the scale's type. One scale for all, or one an element
//! of an axis. `zero_point` may be left out (0).
//!
//! Constraints: dequantize.c1 x is i8, u8, i16, u16 or i32; dequantize.c2 the scale is a float type; dequantize.c3 scale and
//! zero point fit the axis, and the zero point has x's type.
//!
//! `%y = dequantize %q, %s, %z : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Mul, Onnx, OpDef, Spec, Sub, parts, quant};
use crate::diag::Diag;
use crate::types::{DType, Fact, Type};

crate::op_struct! {
    /// Small integer to float.
    pub struct Dequantize {
        /// Axis of several scales, negative counting from the end; none: one scale.
        axis: Option<i64> = None,
    }
}

impl OpDef for Dequantize {
    const SPEC: Spec = Spec {
        arity: Arity::Optional(&["x", "scale", "zero_point"], 2),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("DequantizeLinear", 13, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (x, s) = (cx.ty(0)?, cx.ty(1)?);
        let text = format!("the operand must be i8, u8, i16, u16 or i32, not {}", x.dtype);
        cx.check(quant::is_quantized(x.dtype), "dequantize.c1", text)?;
        cx.check(s.dtype.is_float(), "dequantize.c2", format!("the scale must be a float, not {}", s.dtype))?;
        quant::check(cx, self.axis, x.dtype, "dequantize.c3")?;
        Ok(vec![Type::new(s.dtype, x.shape.clone()).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let (x, d) = (&cx.ins[0], cx.ins[1].dtype);
        let wide = parts::wide_type(d);
        parts::decompose(cx, |b, v| {
            let mut units = v[0];
            if let Some(&z) = v.get(2) {
                // the difference of two 32-bit values needs 64
                let exact = if x.dtype == DType::I32 { DType::I64 } else { DType::I32 };
                let z = quant::fit(b, z, self.axis, x)?;
                let (a, z) = (b.cast(units, exact)?, b.cast(z, exact)?);
                units = b.op(Sub {}, &[a, z])?;
            }
            let units = b.cast(units, wide)?;
            let scale = quant::fit(b, v[1], self.axis, x)?;
            let scale = b.cast(scale, wide)?;
            let y = b.op(Mul {}, &[units, scale])?;
            b.cast(y, d)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Parts
    }
}
