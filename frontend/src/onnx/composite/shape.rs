//! Operators about shapes and names: `Shape`, `Size`, `Identity`, `Dropout` (inference).

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::Constant;
use tgc_ir::scalar::Scalar;

pub(crate) const ROWS: &[Row] = &[
    ("Shape", 1, ANY, shape),
    ("Size", 1, ANY, |cx| {
        let x = cx.x(0)?;
        let n = cx.shape(x).into_iter().product();
        Ok(vec![cx.dim_value(n)?])
    }),
    ("Identity", 1, ANY, |cx| Ok(vec![cx.x(0)?])),
    ("Dropout", 6, ANY, dropout),
];

fn shape(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let dims = cx.shape(x);
    let n = dims.len() as i64;
    let (mut start, mut end) = (0, n);
    if cx.opset >= 15 {
        let at = |v: i64| if v < 0 { v.saturating_add(n) } else { v }.clamp(0, n);
        (start, end) = (at(cx.attrs.int("start", 0)?), at(cx.attrs.int("end", n)?));
    }
    let part = dims.get(start as usize..(end.max(start)) as usize).unwrap_or(&[]).to_vec();
    Ok(vec![cx.dims_value(part)?])
}

fn dropout(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    cx.attrs.ignore(&["ratio", "seed"]);
    let training = match cx.opset {
        ..7 => !cx.attrs.flag("is_test", false)?,
        7..12 => false,
        _ => match cx.opt(2) {
            None => false,
            Some(_) => match cx.known_scalar(2) {
                Some(s) => s.is_true(),
                None => {
                    let m = "training_mode (operand 2) must be a constant";
                    return Err(cx.fail("E-ONNX-016", m).help("export the model in inference mode").into());
                }
            },
        },
    };
    if training {
        let m = "training mode is not supported";
        return Err(cx.fail("E-ONNX-023", m).help("export the model in inference mode (model.eval())").into());
    }
    if !cx.wants(1) {
        return Ok(vec![x]);
    }
    let d = if cx.opset < 10 { cx.dtype(x) } else { tgc_ir::types::DType::Bool };
    let value = Constant::scalar(Scalar::from_int(d, 1)).value;
    let shape = Some(cx.shape(x));
    let mask = cx.op(Constant { value, shape }, &[])?;
    Ok(vec![x, mask])
}
