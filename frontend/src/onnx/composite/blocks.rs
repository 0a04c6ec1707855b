//! `DepthToSpace` and `SpaceToDepth`: blocks of pixels from channels and back, by splitting and reordering axes.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::Transpose;
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[
    ("DepthToSpace", 1, ANY, |cx| {
        let crd = cx.opset >= 11 && channels_first(cx)?;
        depth_to_space(cx, crd)
    }),
    ("SpaceToDepth", 1, ANY, |cx| {
        let crd = cx.opset >= 28 && channels_first(cx)?;
        space_to_depth(cx, crd)
    }),
];

/// Attribute `mode`: is the channel the outermost part of the depth (CRD), or the innermost?
fn channels_first(cx: &NodeCx<'_, '_>) -> Res<bool> {
    match cx.attrs.string("mode", "DCR")?.as_str() {
        "DCR" => Ok(false),
        "CRD" => Ok(true),
        other => {
            let m = format!("mode = `{other}` is not known (allowed: DCR, CRD)");
            Err(cx.fail("E-ONNX-007", m).into())
        }
    }
}

fn operands(cx: &NodeCx<'_, '_>) -> Res<(Value, [Dim; 4], i64)> {
    let x = cx.x(0)?;
    let Ok(shape) = <[Dim; 4]>::try_from(cx.shape(x)) else {
        return Err(cx.fail("E-ONNX-022", format!("the operand needs rank 4, found {}", cx.rank(x))).into());
    };
    let Some(block) = cx.attrs.opt_int("blocksize")?.filter(|b| (1..=1 << 16).contains(b)) else {
        let m = "attribute `blocksize` must be a number from 1 to 65536";
        return Err(cx.fail("E-ONNX-007", m).into());
    };
    Ok((x, shape, block))
}

/// `d / by`, which must be whole.
fn divided(cx: &mut NodeCx<'_, '_>, d: &Dim, by: i64, what: &str) -> Res<Dim> {
    let by = Dim::from(by);
    if let Some(q) = d.div_exact(&by) {
        return Ok(q);
    }
    let q = d.floordiv(&by);
    cx.require(Pred::Eq(d.clone(), q.clone() * by.clone()), &format!("{what} must be a multiple of {by}"))?;
    Ok(q)
}

fn depth_to_space(cx: &mut NodeCx<'_, '_>, crd: bool) -> Res<Vec<Value>> {
    let (x, [n, c, h, w], block) = operands(cx)?;
    let each = divided(cx, &c, block * block, "the number of channels")?;
    let b = Dim::from(block);
    let (split, perm) = if crd {
        (vec![n.clone(), each.clone(), b.clone(), b.clone(), h.clone(), w.clone()], vec![0, 1, 4, 2, 5, 3])
    } else {
        (vec![n.clone(), b.clone(), b.clone(), each.clone(), h.clone(), w.clone()], vec![0, 3, 4, 1, 5, 2])
    };
    let y = cx.reshape(x, split)?;
    let y = cx.op(Transpose { perm }, &[y])?;
    Ok(vec![cx.reshape(y, vec![n, each, h * b.clone(), w * b])?])
}

fn space_to_depth(cx: &mut NodeCx<'_, '_>, crd: bool) -> Res<Vec<Value>> {
    let (x, [n, c, h, w], block) = operands(cx)?;
    let (rows, cols) = (divided(cx, &h, block, "the height")?, divided(cx, &w, block, "the width")?);
    let b = Dim::from(block);
    let split = vec![n.clone(), c.clone(), rows.clone(), b.clone(), cols.clone(), b.clone()];
    let y = cx.reshape(x, split)?;
    let perm = if crd { vec![0, 1, 3, 5, 2, 4] } else { vec![0, 3, 5, 1, 2, 4] };
    let y = cx.op(Transpose { perm }, &[y])?;
    Ok(vec![cx.reshape(y, vec![n, c * b.clone() * b, rows, cols])?])
}
