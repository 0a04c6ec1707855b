//! `gelu(x)`: elementwise `x/2 * (1 + erf(x / sqrt 2))`, or `x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))` with
//! `tanh`, in at least f32 and rounded once.
//!
//! Constraints: gelu.c1 the element type is a float type.
//!
//! `%y = gelu %x : f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, map};
use crate::diag::Diag;
use crate::scalar::{Bin, Un};
use crate::types::Fact;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

crate::op_struct! {
    /// Gaussian error linear unit.
    pub struct Gelu {
        /// The approximation by tanh.
        tanh: bool = false,
    }
}

impl OpDef for Gelu {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("Gelu", 20, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        map::infer_float(cx)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        map::lower(cx.ins, |e, a| {
            map::wide(e, a[0], |e, x| {
                let (half, one) = (e.num(x, 0.5), e.num(x, 1.0));
                let curve = if self.tanh {
                    let (k, c) = (e.num(x, FRAC_2_SQRT_PI * FRAC_1_SQRT_2), e.num(x, 0.044715));
                    let square = e.bin(Bin::Mul, x, x);
                    let cube = e.bin(Bin::Mul, square, x);
                    let cube = e.bin(Bin::Mul, c, cube);
                    let sum = e.bin(Bin::Add, x, cube);
                    let inner = e.bin(Bin::Mul, k, sum);
                    e.un(Un::Tanh, inner)
                } else {
                    let k = e.num(x, FRAC_1_SQRT_2);
                    let inner = e.bin(Bin::Mul, x, k);
                    e.un(Un::Erf, inner)
                };
                let left = e.bin(Bin::Mul, half, x);
                let right = e.bin(Bin::Add, one, curve);
                e.bin(Bin::Mul, left, right)
            })
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::FromExpr
    }
}
