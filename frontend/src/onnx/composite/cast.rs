//! `Cast` and `CastLike`.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use crate::onnx::weights::dtype_of;
use tgc_ir::graph::Value;
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[("Cast", 6, ANY, cast), ("CastLike", 15, ANY, cast_like)];

fn cast(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let Some(code) = cx.attrs.opt_int("to")? else {
        return Err(cx.fail("E-ONNX-007", "attribute `to` (an element type) is missing").into());
    };
    let to = dtype_of(i32::try_from(code).unwrap_or(-1))?;
    convert(cx, to)
}

fn cast_like(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let like = cx.x(1)?;
    let to = cx.dtype(like);
    convert(cx, to)
}

fn convert(cx: &mut NodeCx<'_, '_>, to: DType) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    for d in [cx.dtype(x), to] {
        if d.is_storage_only() && cx.dtype(x) != to {
            let m = format!("conversion between {} and {to} is not supported yet", cx.dtype(x));
            return Err(cx.fail("E-ONNX-008", m).help("keep this part of the model in a wider type").into());
        }
    }
    // saturation and rounding mode only matter for 8-bit floats
    cx.attrs.ignore(&["saturate", "round_mode"]);
    Ok(vec![cx.cast(x, to)?])
}
