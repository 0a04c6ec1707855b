//! Activation functions that are not IR ops, as formulas. Narrow floats are computed in f32 and rounded once.

use crate::formula::logarithm::{exp_m1, softplus};
use crate::formula::{like, scaled};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, Add, Div, Gelu, Lt, Max, Min, Mul, Select, Sigmoid, Sub, Tanh};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[
    ("LeakyRelu", 6, ANY, |cx| {
        let alpha = cx.attrs.float("alpha", 0.01)?;
        unary(cx, |cx, x| negative(cx, x, |cx, x| scaled(cx, x, alpha)))
    }),
    ("PRelu", 6, ANY, prelu),
    ("Elu", 6, ANY, |cx| {
        let alpha = cx.attrs.float("alpha", 1.0)?;
        unary(cx, |cx, x| {
            negative(cx, x, |cx, x| {
                let e = exp_m1(cx, x)?;
                scaled(cx, e, alpha)
            })
        })
    }),
    ("Selu", 6, ANY, |cx| {
        let (alpha, gamma) = (cx.attrs.float("alpha", 1.673_263_2)?, cx.attrs.float("gamma", 1.050_701)?);
        unary(cx, |cx, x| {
            let y = negative(cx, x, |cx, x| {
                let e = exp_m1(cx, x)?;
                scaled(cx, e, alpha)
            })?;
            scaled(cx, y, gamma)
        })
    }),
    ("Celu", 12, ANY, celu),
    ("HardSigmoid", 6, ANY, |cx| {
        let (alpha, beta) = (cx.attrs.float("alpha", 0.2)?, cx.attrs.float("beta", 0.5)?);
        unary(cx, |cx, x| hard_sigmoid(cx, x, alpha, beta))
    }),
    ("HardSwish", 14, ANY, |cx| {
        unary(cx, |cx, x| {
            let s = hard_sigmoid(cx, x, 1.0 / 6.0, 0.5)?;
            cx.op(Mul {}, &[x, s])
        })
    }),
    ("Softplus", 1, ANY, |cx| unary(cx, softplus)),
    ("Softsign", 1, ANY, |cx| {
        unary(cx, |cx, x| {
            let a = cx.op(Abs {}, &[x])?;
            let one = like(cx, x, 1.0)?;
            let d = cx.op(Add {}, &[a, one])?;
            cx.op(Div {}, &[x, d])
        })
    }),
    ("Mish", 18, ANY, |cx| {
        unary(cx, |cx, x| {
            let s = softplus(cx, x)?;
            let t = cx.op(Tanh {}, &[s])?;
            cx.op(Mul {}, &[x, t])
        })
    }),
    ("Swish", 24, ANY, |cx| {
        let alpha = cx.attrs.float("alpha", 1.0)?;
        unary(cx, |cx, x| {
            let a = scaled(cx, x, alpha)?;
            let s = cx.op(Sigmoid {}, &[a])?;
            cx.op(Mul {}, &[x, s])
        })
    }),
    ("ThresholdedRelu", 10, ANY, |cx| {
        let alpha = cx.attrs.float("alpha", 1.0)?;
        unary(cx, |cx, x| {
            let (a, zero) = (like(cx, x, alpha)?, like(cx, x, 0.0)?);
            let c = cx.op(Lt {}, &[a, x])?;
            cx.op(Select {}, &[c, x, zero])
        })
    }),
    ("Shrink", 9, ANY, shrink),
    ("Gelu", 20, ANY, gelu),
];

/// `f` of operand 0.
pub(super) fn unary<'a, 'm>(
    cx: &mut NodeCx<'a, 'm>,
    f: impl FnOnce(&mut NodeCx<'a, 'm>, Value) -> Res<Value>,
) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    Ok(vec![cx.wide(x, f)?])
}

/// `x < 0 ? f(x) : x`, so NaN stays.
fn negative(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    f: impl FnOnce(&mut NodeCx<'_, '_>, Value) -> Res<Value>,
) -> Res<Value> {
    let zero = like(cx, x, 0.0)?;
    let c = cx.op(Lt {}, &[x, zero])?;
    let y = f(cx, x)?;
    cx.op(Select {}, &[c, y, x])
}

fn prelu(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (x, mut slope) = (cx.x(0)?, cx.x(1)?);
    // before opset 7 the slope was one value a channel, whatever the rank
    if cx.opset < 7 && cx.rank(slope) == 1 && cx.rank(x) > 2 {
        let mut shape = cx.shape(slope);
        shape.extend(vec![Dim::from(1); cx.rank(x) - 2]);
        slope = cx.reshape(slope, shape)?;
    }
    let y = negative(cx, x, |cx, x| cx.op(Mul {}, &[x, slope]))?;
    if cx.shape(y) != cx.shape(x) {
        let m = "the slope must broadcast to the first operand's shape";
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    Ok(vec![y])
}

fn celu(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let alpha = cx.attrs.float("alpha", 1.0)?;
    unary(cx, |cx, x| {
        let (zero, a) = (like(cx, x, 0.0)?, like(cx, x, alpha)?);
        let pos = cx.op(Max {}, &[x, zero])?;
        let q = if alpha == 1.0 { x } else { cx.op(Div {}, &[x, a])? };
        let e = exp_m1(cx, q)?;
        let e = scaled(cx, e, alpha)?;
        let neg = cx.op(Min {}, &[e, zero])?;
        cx.op(Add {}, &[pos, neg])
    })
}

fn hard_sigmoid(cx: &mut NodeCx<'_, '_>, x: Value, alpha: f64, beta: f64) -> Res<Value> {
    let (a, b) = (like(cx, x, alpha)?, like(cx, x, beta)?);
    let (zero, one) = (like(cx, x, 0.0)?, like(cx, x, 1.0)?);
    let y = cx.op(Mul {}, &[x, a])?;
    let y = cx.op(Add {}, &[y, b])?;
    let y = cx.op(Min {}, &[y, one])?;
    cx.op(Max {}, &[y, zero])
}

fn shrink(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (bias, lambd) = (cx.attrs.float("bias", 0.0)?, cx.attrs.float("lambd", 0.5)?);
    let x = cx.x(0)?;
    let d = cx.dtype(x);
    let inner = if d.is_float() && d != DType::F64 { DType::F32 } else { DType::F64 };
    let w = cx.cast(x, inner)?;
    let (b, zero) = (cx.num(inner, bias)?, cx.num(inner, 0.0)?);
    let (lo, hi) = (cx.num(inner, -lambd)?, cx.num(inner, lambd)?);
    let (below, above) = (cx.op(Lt {}, &[w, lo])?, cx.op(Lt {}, &[hi, w])?);
    let (plus, minus) = (cx.op(Add {}, &[w, b])?, cx.op(Sub {}, &[w, b])?);
    let y = cx.op(Select {}, &[above, minus, zero])?;
    let y = cx.op(Select {}, &[below, plus, y])?;
    Ok(vec![cx.cast(y, d)?])
}

fn gelu(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let tanh = match cx.attrs.string("approximate", "none")?.as_str() {
        "none" => false,
        "tanh" => true,
        other => {
            let m = format!("approximate = `{other}` is not known (allowed: none, tanh)");
            return Err(cx.fail("E-ONNX-007", m).into());
        }
    };
    Ok(vec![cx.op(Gelu { tanh }, &[x])?])
}
