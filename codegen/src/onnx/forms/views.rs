//! Constants and views: what moves elements and computes nothing.

use super::{Form, axis, one};
use crate::onnx::build::{Cx, Made, Val, element, int, ints};
use crate::onnx::graph::Node;
use crate::onnx::types::takes;
use tgc_ir::diag::Diag;
use tgc_ir::ops::{Concat, ConstDims, Constant, Iota, Pad, Slice, Transpose};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim};

/// Splats and index ranges of up to so many elements are written out.
const WRITTEN: usize = 64;

pub(super) fn constant(cx: &mut Cx<'_>, c: &Constant) -> Form {
    cx.storable(c.value.dtype)?;
    let Some(shape) = &c.shape else { return Ok(Some(vec![cx.constant(&c.value, "constant")])) };
    let fixed: Option<Vec<usize>> =
        shape.iter().map(|d| d.as_const().and_then(|n| usize::try_from(n).ok())).collect();
    if let Some(fixed) = fixed.filter(|f| f.iter().product::<usize>() <= WRITTEN) {
        let numel: usize = fixed.iter().product();
        let t = Tensor::from_scalars(c.value.dtype, &fixed, std::iter::repeat_n(c.value.get(0), numel));
        return Ok(Some(vec![cx.constant(&t, "constant")]));
    }
    let to = cx.size_vector(shape, "shape")?;
    if takes("ConstantOfShape", cx.opset, c.value.dtype) {
        let value = element("value", c.value.get(0));
        return Ok(Some(vec![cx.node("ConstantOfShape", &[&to], vec![value], c.value.dtype)]));
    }
    let v = cx.constant(&c.value, "constant");
    one(cx.typed1("Expand", &[&v, &to], Vec::new(), c.value.dtype))
}

pub(super) fn const_dims(cx: &mut Cx<'_>, c: &ConstDims) -> Form {
    let v = match (&c.dims[..], c.scalar) {
        ([d], true) => cx.size_scalar(d)?,
        (dims, _) => cx.size_vector(dims, "sizes")?,
    };
    Ok(Some(vec![cx.cast(&v, c.dtype)]))
}

pub(super) fn iota(cx: &mut Cx<'_>, op: &Iota) -> Form {
    let rank = op.shape.len();
    let at = axis(op.axis, rank);
    let extent = &op.shape[at];
    let along: Vec<i64> = (0..rank).map(|i| if i == at { -1 } else { 1 }).collect();
    let line = match extent.as_const().and_then(|n| usize::try_from(n).ok()) {
        Some(n) if n <= WRITTEN => {
            let shape: Vec<usize> = (0..rank).map(|i| if i == at { n } else { 1 }).collect();
            let v: Vec<i64> = (0..n as i64).collect();
            cx.constant(&Tensor::from_ints(op.dtype, &shape, &v), "range")
        }
        _ => {
            let (zero, step) = (cx.num(DType::I64, 0.0), cx.num(DType::I64, 1.0));
            let end = cx.size_scalar(extent)?;
            let v = cx.node("Range", &[&zero, &end, &step], Vec::new(), DType::I64);
            let v = if rank == 1 {
                v
            } else {
                let to = cx.ints(&along, "shape");
                cx.node("Reshape", &[&v, &to], Vec::new(), DType::I64)
            };
            cx.cast(&v, op.dtype)
        }
    };
    let alone = op.shape.iter().enumerate().all(|(i, d)| i == at || d.is(1));
    if alone {
        return Ok(Some(vec![line]));
    }
    let to: Vec<Dim> =
        op.shape.iter().enumerate().map(|(i, d)| if i == at { Dim::from(1) } else { d.clone() }).collect();
    let to = cx.size_vector(&to, "shape")?;
    one(cx.typed1("Expand", &[&line, &to], Vec::new(), op.dtype))
}

pub(super) fn reshape(cx: &mut Cx<'_>, n: &Node<'_>) -> Form {
    let y = reshaped(cx, &n.ins[0], &n.in_types[0].shape, &n.outs[0].shape)?;
    // a zero point is the same in any shape of one element
    if let Some(Made::Widened(zero, None)) = cx.made.get(&n.ins[0].name)
        && n.outs[0].numel().is(1)
    {
        let zero = zero.clone();
        cx.made.insert(y.name.clone(), Made::Widened(zero, None));
    }
    Ok(Some(vec![y]))
}

/// `x` of shape `from` in shape `to`.
pub(super) fn reshaped(cx: &mut Cx<'_>, x: &Val, from: &[Dim], to: &[Dim]) -> Result<Val, Diag> {
    if from == to {
        return Ok(x.clone());
    }
    let zero = |d: &Dim| d.is(0);
    let least = |cx: &Cx<'_>, d: &Dim| cx.symbols.range(d).0;
    // 0 keeps an axis, -1 is what is left over
    let mut short: Vec<Option<i64>> = to.iter().map(Dim::as_const).collect();
    for (i, d) in to.iter().enumerate() {
        if short[i].is_none() && from.get(i) == Some(d) {
            short[i] = Some(0);
        }
    }
    let open: Vec<usize> = (0..to.len()).filter(|i| short[*i].is_none()).collect();
    let others = |cx: &Cx<'_>| (0..to.len()).filter(|i| !open.contains(i)).all(|i| least(cx, &to[i]) >= 1);
    if let ([at], true) = (&open[..], others(cx)) {
        short[*at] = Some(-1);
    }
    let constant: Option<Vec<i64>> = short.into_iter().collect();
    let empty = to.iter().any(zero);
    if let Some(shape) = constant.filter(|_| !empty) {
        let shape = cx.ints(&shape, "shape");
        return Ok(cx.node("Reshape", &[x, &shape], Vec::new(), x.dtype));
    }
    let shape = cx.size_vector(to, "shape")?;
    let may_be_empty = to.iter().any(|d| least(cx, d) < 1);
    if cx.opset < 14 && empty {
        // 0 keeps an axis there; an empty result has no elements to take over
        let value = element("value", tgc_ir::scalar::Scalar::from_f64(x.dtype, 0.0));
        return Ok(cx.node("ConstantOfShape", &[&shape], vec![value], x.dtype));
    }
    let attrs = if may_be_empty && cx.opset >= 14 { vec![int("allowzero", 1)] } else { Vec::new() };
    Ok(cx.node("Reshape", &[x, &shape], attrs, x.dtype))
}

pub(super) fn expand(cx: &mut Cx<'_>, n: &Node<'_>) -> Form {
    let (x, from, to) = (&n.ins[0], &n.in_types[0].shape, &n.outs[0].shape);
    if from == to {
        return Ok(Some(vec![x.clone()]));
    }
    let skip = to.len() - from.len();
    // where an axis is kept, 1 leaves it as it is
    let kept = |i: usize| i.checked_sub(skip).is_some_and(|j| from[j] == to[i]);
    let to: Vec<Dim> = (0..to.len()).map(|i| if kept(i) { Dim::from(1) } else { to[i].clone() }).collect();
    let shape = cx.size_vector(&to, "shape")?;
    one(cx.typed1("Expand", &[x, &shape], Vec::new(), x.dtype))
}

pub(super) fn transpose(cx: &mut Cx<'_>, n: &Node<'_>, op: &Transpose) -> Form {
    let rank = op.perm.len();
    let perm: Vec<i64> = op.perm.iter().map(|p| axis(*p, rank) as i64).collect();
    Ok(Some(vec![cx.node("Transpose", &[&n.ins[0]], vec![ints("perm", &perm)], n.outs[0].dtype)]))
}

/// A start or end beyond every index, on either side.
const BEYOND: i64 = i64::MAX;
const BEFORE: i64 = i64::MIN;

pub(super) fn slice(cx: &mut Cx<'_>, n: &Node<'_>, op: &Slice) -> Form {
    let shape = &n.in_types[0].shape;
    let (mut starts, mut ends, mut axes, mut steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, d) in shape.iter().enumerate() {
        let (start, size, step) = (&op.starts[i], &op.sizes[i], op.steps[i]);
        if start.is(0) && step == 1 && size == d {
            continue;
        }
        axes.push(i as i64);
        steps.push(step);
        starts.push(start.clone());
        let end = start.clone() + size.clone() * Dim::from(step);
        let rest = d.clone() - start.clone();
        let to_end = step > 0 && (rest + Dim::from(step - 1)).floordiv(&Dim::from(step)) == *size;
        ends.push(if to_end { Dim::from(BEYOND) } else { end });
    }
    if axes.is_empty() {
        return Ok(Some(vec![n.ins[0].clone()]));
    }
    let starts = cx.size_vector(&starts, "starts")?;
    let ends = ends_of(cx, &ends, &steps)?;
    let (axes, plain) = (cx.ints(&axes, "axes"), steps.iter().all(|s| *s == 1));
    let mut ins = vec![&n.ins[0], &starts, &ends, &axes];
    let steps = cx.ints(&steps, "steps");
    if !plain {
        ins.push(&steps);
    }
    Ok(Some(vec![cx.node("Slice", &ins, Vec::new(), n.outs[0].dtype)]))
}

/// Ends of slices. An end below 0 of one that goes backwards means that the first element is taken, and is not counted from
/// the end.
fn ends_of(cx: &mut Cx<'_>, ends: &[Dim], steps: &[i64]) -> Result<Val, Diag> {
    let fixed = |(e, s): (&Dim, &i64)| match e.as_const() {
        Some(c) if *s < 0 && c < 0 => Dim::from(BEFORE),
        _ => e.clone(),
    };
    let ends: Vec<Dim> = ends.iter().zip(steps).map(fixed).collect();
    let open = |(e, s): (&Dim, &i64)| *s < 0 && e.as_const().is_none() && cx.symbols.range(e).0 < 0;
    if !ends.iter().zip(steps).any(open) {
        return cx.size_vector(&ends, "ends");
    }
    let backwards: Vec<i64> = steps.iter().map(|s| i64::from(*s < 0)).collect();
    let found = cx.size_vector(&ends, "ends")?;
    let backwards = cx.constant(&Tensor::from_ints(DType::Bool, &[steps.len()], &backwards), "backwards");
    let (zero, before) = (cx.num(DType::I64, 0.0), cx.ints(&[BEFORE], "ends"));
    let below = cx.node("Less", &[&found, &zero], Vec::new(), DType::Bool);
    let below = cx.node("And", &[&below, &backwards], Vec::new(), DType::Bool);
    Ok(cx.node("Where", &[&below, &before, &found], Vec::new(), DType::I64))
}

pub(super) fn concat(cx: &mut Cx<'_>, n: &Node<'_>, op: &Concat) -> Form {
    if let [only] = &n.ins[..] {
        return Ok(Some(vec![only.clone()]));
    }
    let attrs = vec![int("axis", axis(op.axis, n.outs[0].rank()) as i64)];
    Ok(Some(vec![cx.node("Concat", &n.ins.iter().collect::<Vec<_>>(), attrs, n.outs[0].dtype)]))
}

pub(super) fn pad(cx: &mut Cx<'_>, n: &Node<'_>, op: &Pad) -> Form {
    let pads: Vec<Dim> = op.before.iter().chain(&op.after).cloned().collect();
    if pads.iter().all(|p| p.is(0)) {
        return Ok(Some(vec![n.ins[0].clone()]));
    }
    let pads = cx.size_vector(&pads, "pads")?;
    let value = cx.scalar(op.value);
    one(cx.typed1("Pad", &[&n.ins[0], &pads, &value], Vec::new(), n.outs[0].dtype))
}
