//! `Gemm` and the integer matrix product.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Matmul, Mul, Sub, Transpose};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] =
    &[("MatMul", 1, ANY, matmul), ("Gemm", 6, ANY, gemm), ("MatMulInteger", 10, ANY, matmul_integer)];

fn matmul(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (a, b) = (cx.x(0)?, cx.x(1)?);
    Ok(vec![cx.op(Matmul {}, &[a, b])?])
}

fn gemm(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (alpha, beta) = (cx.attrs.float("alpha", 1.0)?, cx.attrs.float("beta", 1.0)?);
    let (ta, tb) = (cx.attrs.flag("transA", false)?, cx.attrs.flag("transB", false)?);
    if cx.opset < 7 {
        // C is broadcast in any case: where it must not be, the shapes are equal
        cx.attrs.ignore(&["broadcast"]);
    }
    let (a, b, c) = (cx.x(0)?, cx.x(1)?, cx.opt(2));
    if cx.rank(a) != 2 || cx.rank(b) != 2 {
        return Err(cx.fail("E-ONNX-022", "A and B must have rank 2").into());
    }
    let flip = |cx: &mut NodeCx<'_, '_>, v, yes| if yes { cx.op(Transpose { perm: vec![1, 0] }, &[v]) } else { Ok(v) };
    let (a, b) = (flip(cx, a, ta)?, flip(cx, b, tb)?);
    let mut y = cx.op(Matmul {}, &[a, b])?;
    let d = cx.dtype(y);
    if alpha != 1.0 {
        y = scaled(cx, y, alpha, d)?;
    }
    let (Some(mut c), true) = (c, beta != 0.0) else { return Ok(vec![y]) };
    if beta != 1.0 {
        c = scaled(cx, c, beta, d)?;
    }
    let shape = cx.shape(y);
    y = cx.op(Add {}, &[y, c])?;
    if cx.shape(y) != shape {
        return Err(cx.fail("E-ONNX-022", "C must broadcast to the shape of A*B").into());
    }
    Ok(vec![y])
}

/// Times a float factor, also for integers (then computed in f64).
fn scaled(cx: &mut NodeCx<'_, '_>, v: Value, by: f64, d: DType) -> Res<Value> {
    if d.is_float() {
        let k = cx.num(d, by)?;
        return cx.op(Mul {}, &[v, k]);
    }
    let (w, k) = (cx.cast(v, DType::F64)?, cx.num(DType::F64, by)?);
    let y = cx.op(Mul {}, &[w, k])?;
    cx.cast(y, d)
}

/// The operand less its zero point, as i32. A zero point of rank 1 counts along `axis` from the end.
pub(super) fn shifted(cx: &mut NodeCx<'_, '_>, i: usize, zero: usize, axis: usize) -> Res<Value> {
    let x = cx.x(i)?;
    let w = cx.cast(x, DType::I32)?;
    let Some(z) = cx.opt(zero) else { return Ok(w) };
    if cx.known_scalar(zero).is_some_and(|s: Scalar| s.as_int() == Some(0)) {
        return Ok(w);
    }
    let mut z = cx.cast(z, DType::I32)?;
    if cx.rank(z) == 1 {
        let mut shape = cx.shape(z);
        if shape[0].is(1) {
            shape.clear();
        } else {
            shape.extend(vec![Dim::from(1); axis]);
        }
        z = cx.reshape(z, shape)?;
    }
    cx.op(Sub {}, &[w, z])
}

fn matmul_integer(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (a, b) = (shifted(cx, 0, 2, 1)?, shifted(cx, 1, 3, 0)?);
    Ok(vec![cx.op(Matmul {}, &[a, b])?])
}
