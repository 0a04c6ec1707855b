//! `Pad` in constant mode; negative amounts are slices.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Pad, Slice};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("Pad", 2, ANY, pad)];

fn pad(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let (shape, dtype) = (cx.shape(x), cx.dtype(x));
    let mode = cx.attrs.string("mode", "constant")?;
    if mode != "constant" {
        let m = format!("mode = `{mode}` is not supported; only `constant` is");
        return Err(cx.fail("E-ONNX-007", m).help("export the model with constant padding").into());
    }
    let (pads, value) = if cx.opset < 11 {
        let pads = cx.attrs.ints("pads")?.unwrap_or_default();
        let value = Scalar::from_f64(dtype, cx.attrs.float("value", 0.0)?);
        (pads.into_iter().map(Dim::from).collect(), value)
    } else {
        (cx.sizes(1, "the pads")?, constant_value(cx)?.unwrap_or(Scalar::from_int(dtype, 0)))
    };
    let axes: Vec<usize> = match cx.opt(3) {
        Some(_) if cx.opset >= 18 => {
            let list = cx.ints(3, "axes")?;
            cx.axes(&list, shape.len())?;
            list.iter().map(|&a| cx.axis(a, shape.len())).collect::<Res<_>>()?
        }
        _ => (0..shape.len()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        let m = format!("{} pads given, {} wanted (two an axis)", pads.len(), 2 * axes.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let zeros = vec![Dim::from(0); shape.len()];
    let (mut before, mut after) = (zeros.clone(), zeros);
    for (i, &a) in axes.iter().enumerate() {
        before[a] = pads[i].clone();
        after[a] = pads[i + axes.len()].clone();
    }
    apply(cx, x, before, after, value)
}

/// The fill value when it is given. It must be known, as it becomes part of the program.
fn constant_value(cx: &NodeCx<'_, '_>) -> Res<Option<Scalar>> {
    match (cx.opt(2), cx.known_scalar(2)) {
        (None, _) => Ok(None),
        (_, Some(s)) => Ok(Some(s)),
        _ => Err(cx.fail("E-ONNX-016", "the fill value (operand 2) must be a constant").into()),
    }
}

fn apply(cx: &mut NodeCx<'_, '_>, x: Value, mut before: Vec<Dim>, mut after: Vec<Dim>, value: Scalar) -> Res<Vec<Value>> {
    let mut sizes = cx.shape(x);
    let mut starts = vec![Dim::from(0); sizes.len()];
    let mut cut = false;
    for a in 0..sizes.len() {
        for (amount, front) in [(&mut before[a], true), (&mut after[a], false)] {
            match amount.as_const() {
                Some(c) if c < 0 => {
                    cut = true;
                    sizes[a] = sizes[a].clone() + amount.clone();
                    if front {
                        starts[a] = -amount.clone();
                    }
                    *amount = Dim::from(0);
                }
                Some(_) => {}
                None => {
                    let at_least = Pred::Le(Dim::from(0), amount.clone());
                    cx.require(at_least, "a computed padding must not be negative")?;
                }
            }
        }
    }
    let mut y = x;
    if cut {
        // a cut longer than the axis removes padding again: ONNX gives no meaning to a negative size
        for s in &sizes {
            cx.require(Pred::Le(Dim::from(0), s.clone()), "negative padding must not cut more than the axis")?;
        }
        let steps = vec![1; sizes.len()];
        y = cx.op(Slice { starts, sizes, steps }, &[y])?;
    }
    if before.iter().chain(&after).all(|d| d.is(0)) {
        return Ok(vec![y]);
    }
    Ok(vec![cx.op(Pad { before, after, value }, &[y])?])
}
