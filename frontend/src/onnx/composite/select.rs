//! `Where`, `IsInf`, `IsNaN` of the oldest opsets and `Trilu`: choices between values.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Constant, Eq, Iota, Le, Or, Select, Sub};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[
    ("Where", 9, ANY, |cx| {
        let ins = [cx.x(0)?, cx.x(1)?, cx.x(2)?];
        Ok(vec![cx.op(Select {}, &ins)?])
    }),
    ("IsInf", 10, ANY, is_inf),
    ("Trilu", 14, ANY, trilu),
];

fn is_inf(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (neg, pos) = (cx.attrs.flag("detect_negative", true)?, cx.attrs.flag("detect_positive", true)?);
    let x = cx.x(0)?;
    let d = cx.dtype(x);
    let hit = |cx: &mut NodeCx<'_, '_>, v: f64| {
        let inf = cx.num(d, v)?;
        cx.op(Eq {}, &[x, inf])
    };
    let y = match (neg, pos) {
        (true, true) => {
            let (a, b) = (hit(cx, f64::NEG_INFINITY)?, hit(cx, f64::INFINITY)?);
            cx.op(Or {}, &[a, b])?
        }
        (true, false) => hit(cx, f64::NEG_INFINITY)?,
        (false, true) => hit(cx, f64::INFINITY)?,
        (false, false) => {
            let value = Constant::scalar(Scalar::bool(false)).value;
            let shape = Some(cx.shape(x));
            cx.op(Constant { value, shape }, &[])?
        }
    };
    Ok(vec![y])
}

/// Keeps the elements whose column is at least (upper) or at most (lower) row + k.
fn trilu(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let upper = cx.attrs.flag("upper", true)?;
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let Some([rows, cols]) = shape.last_chunk::<2>() else {
        return Err(cx.fail("E-ONNX-022", "the operand must have rank 2 or more").into());
    };
    let one = Dim::from(1);
    let row = cx.op(Iota { axis: 0, shape: vec![rows.clone(), one.clone()], dtype: DType::I64 }, &[])?;
    let col = cx.op(Iota { axis: 1, shape: vec![one, cols.clone()], dtype: DType::I64 }, &[])?;
    let off = cx.op(Sub {}, &[col, row])?;
    let k = match cx.opt(1) {
        Some(k) => cx.reshape(k, Vec::new())?,
        None => cx.num(DType::I64, 0.0)?,
    };
    let keep = if upper { cx.op(Le {}, &[k, off])? } else { cx.op(Le {}, &[off, k])? };
    let d = cx.dtype(x);
    let zero = cx.num(d, 0.0)?;
    Ok(vec![cx.op(Select {}, &[keep, x, zero])?])
}
