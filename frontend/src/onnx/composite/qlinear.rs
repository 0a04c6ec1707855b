//! Products of quantized operands with a quantized result: `QLinearMatMul` and `QLinearConv`. Operands less their zero
//! points multiply as i32; the scales are applied to the sum in f32.

use super::conv::convolved;
use super::matmul::shifted;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Cast, Div, Matmul, Mul, Round};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[("QLinearMatMul", 10, ANY, matmul), ("QLinearConv", 10, ANY, conv)];

/// Operands that must be 8-bit integers.
fn check(cx: &NodeCx<'_, '_>, places: [usize; 3]) -> Res<()> {
    for i in places {
        let d = cx.dtype(cx.x(i)?);
        if !matches!(d, DType::I8 | DType::U8) {
            let m = format!("operand {i} must be i8 or u8, found {d}");
            return Err(cx.fail("E-ONNX-008", m).into());
        }
    }
    Ok(())
}

/// Operand `i`, a scale, as f32. Rank 1 counts along the axis that `after` others follow.
fn scale(cx: &mut NodeCx<'_, '_>, i: usize, after: usize) -> Res<Value> {
    let s = cx.x(i)?;
    let mut shape = cx.shape(s);
    if shape.iter().all(|d| d.is(1)) {
        shape.clear();
    } else if shape.len() == 1 {
        shape.extend(vec![Dim::from(1); after]);
    }
    let s = cx.cast(s, DType::F32)?;
    cx.reshape(s, shape)
}

/// `saturate(round(sum * (a * b / y)) + zero)` with the scales `a`, `b` and that of the result, operand `y`; its zero point
/// is the operand behind it.
fn requantized(cx: &mut NodeCx<'_, '_>, sum: Value, a: Value, b: Value, y: usize) -> Res<Value> {
    let shape = cx.shape(sum);
    let (out, zero) = (scale(cx, y, 0)?, cx.x(y + 1)?);
    let to = cx.dtype(zero);
    if cx.rank(out) != 0 {
        return Err(cx.fail("E-ONNX-022", "the result must have one scale").help("export the model with one scale for each result").into());
    }
    let ab = cx.op(Mul {}, &[a, b])?;
    let factor = cx.op(Div {}, &[ab, out])?;
    let v = cx.cast(sum, DType::F32)?;
    let v = cx.op(Mul {}, &[v, factor])?;
    let v = cx.op(Round {}, &[v])?;
    let zero = cx.reshape(zero, Vec::new())?;
    let zero = cx.cast(zero, DType::F32)?;
    let v = cx.op(Add {}, &[v, zero])?;
    if cx.shape(v) != shape {
        return Err(cx.fail("E-ONNX-022", "the scales must broadcast to the shape of the result").into());
    }
    cx.op(Cast { to }, &[v])
}

fn matmul(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    check(cx, [0, 3, 7])?;
    let (a, b) = (shifted(cx, 0, 2, 1)?, shifted(cx, 3, 5, 0)?);
    let (sa, sb) = (scale(cx, 1, 1)?, scale(cx, 4, 0)?);
    let sum = cx.op(Matmul {}, &[a, b])?;
    Ok(vec![requantized(cx, sum, sa, sb, 6)?])
}

fn conv(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    check(cx, [0, 3, 7])?;
    let rank = cx.x(3).map(|w| cx.rank(w))?;
    let (x, w) = (shifted(cx, 0, 2, 0)?, shifted(cx, 3, 5, rank.saturating_sub(1))?);
    let (sx, sw) = (scale(cx, 1, 0)?, scale(cx, 4, rank.saturating_sub(2))?);
    let bias = cx.opt(8);
    let sum = convolved(cx, x, w, bias)?;
    Ok(vec![requantized(cx, sum, sx, sw, 6)?])
}
