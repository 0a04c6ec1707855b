//! `Pad`: constant mode (negative amounts are slices), and the modes that repeat elements, which gather along each axis.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Constant, Gather, Iota, Max, Min, Modulo, Pad, Select, Slice, Sub};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("Pad", 2, ANY, pad)];

fn pad(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let (shape, dtype) = (cx.shape(x), cx.dtype(x));
    let mode = cx.attrs.string("mode", "constant")?;
    let repeats = match mode.as_str() {
        "constant" => None,
        "edge" => Some(Repeat::Edge),
        "reflect" => Some(Repeat::Reflect),
        "wrap" if cx.opset >= 19 => Some(Repeat::Wrap),
        _ => {
            let m = format!("mode = `{mode}` is not known (allowed: constant, reflect, edge, from opset 19 on wrap)");
            return Err(cx.fail("E-ONNX-007", m).into());
        }
    };
    let (pads, value) = if cx.opset < 11 {
        let pads = cx.attrs.ints("pads")?.unwrap_or_default();
        let value = Scalar::from_f64(dtype, cx.attrs.float("value", 0.0)?);
        (pads.into_iter().map(Dim::from).collect(), value)
    } else {
        (cx.sizes(1, "the pads")?, cx.known_scalar(2).unwrap_or(Scalar::from_int(dtype, 0)))
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
    match repeats {
        None => {
            let y = apply(cx, x, before.clone(), after.clone(), value)?;
            let Some(fill) = cx.opt(2).filter(|_| cx.opset >= 11 && cx.known_scalar(2).is_none()) else {
                return Ok(vec![y]);
            };
            // A fill value that is data goes where a padded mask does not hold.
            let yes = Constant { value: Tensor::from_scalars(DType::Bool, &[], [Scalar::bool(true)]), shape: Some(shape) };
            let yes = cx.op(yes, &[])?;
            let inside = apply(cx, yes, before, after, Scalar::bool(false))?;
            let fill = cx.reshape(fill, Vec::new())?;
            Ok(vec![cx.op(Select {}, &[inside, y, fill])?])
        }
        Some(r) => repeated(cx, x, before, after, r),
    }
}

/// What stands beyond the ends of an axis.
#[derive(Clone, Copy)]
enum Repeat {
    /// The element at the end.
    Edge,
    /// The elements mirrored at the end, which itself is not repeated.
    Reflect,
    /// The elements from the other end.
    Wrap,
}

/// Along each padded axis, gathers the element that each position stands for. Negative amounts cut.
fn repeated(cx: &mut NodeCx<'_, '_>, x: Value, before: Vec<Dim>, after: Vec<Dim>, how: Repeat) -> Res<Vec<Value>> {
    let mut y = x;
    for (axis, (b, a)) in before.into_iter().zip(after).enumerate() {
        if b.is(0) && a.is(0) {
            continue;
        }
        let n = cx.shape(y)[axis].clone();
        let size = cx.simplify(n.clone() + b.clone() + a);
        cx.require(Pred::Le(Dim::from(0), size.clone()), "padding must not cut more than the axis")?;
        cx.require(Pred::Le(Dim::from(1), n.clone()), "an axis without elements has none to repeat")?;
        let from = cx.dim_value(b)?;
        let i = cx.op(Iota { axis: 0, shape: vec![size], dtype: DType::I64 }, &[])?;
        let i = cx.op(Sub {}, &[i, from])?;
        let at = match how {
            Repeat::Edge => {
                let (zero, last) = (cx.dim_value(Dim::from(0))?, cx.dim_value(n - Dim::from(1))?);
                let i = cx.op(Max {}, &[i, zero])?;
                cx.op(Min {}, &[i, last])?
            }
            Repeat::Wrap => {
                let n = cx.dim_value(n)?;
                cx.op(Modulo {}, &[i, n])?
            }
            Repeat::Reflect => {
                let period = (Dim::from(2) * (n - Dim::from(1))).dmax(&Dim::from(1));
                let period = cx.dim_value(period)?;
                let i = cx.op(Modulo {}, &[i, period])?;
                let back = cx.op(Sub {}, &[period, i])?;
                cx.op(Min {}, &[i, back])?
            }
        };
        y = cx.op(Gather { axis: axis as i64 }, &[y, at])?;
    }
    Ok(vec![y])
}

fn apply(cx: &mut NodeCx<'_, '_>, x: Value, mut before: Vec<Dim>, mut after: Vec<Dim>, value: Scalar) -> Res<Value> {
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
        return Ok(y);
    }
    cx.op(Pad { before, after, value }, &[y])
}
