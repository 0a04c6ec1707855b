//! `Split` and `Concat`.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Concat, Slice};
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("Split", 2, ANY, split), ("Concat", 4, ANY, concat)];

fn concat(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let Some(axis) = cx.attrs.opt_int("axis")? else {
        return Err(cx.fail("E-ONNX-007", "attribute `axis` is missing").into());
    };
    let ins = cx.all()?;
    if let [one] = ins[..] {
        cx.axis(axis, cx.rank(one))?;
        return Ok(vec![one]);
    }
    Ok(vec![cx.op(Concat { axis }, &ins)?])
}

fn split(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let axis = cx.attrs.int("axis", 0)?;
    let axis = cx.axis(axis, shape.len())?;
    let n = cx.outputs();
    let given = if cx.opset < 13 {
        cx.attrs.ints("split")?.map(|v| v.into_iter().map(Dim::from).collect::<Vec<_>>())
    } else {
        cx.opt(1).map(|_| cx.sizes(1, "the split")).transpose()?
    };
    if cx.opset >= 18
        && let Some(k) = cx.attrs.opt_int("num_outputs")?
        && k != n as i64
    {
        let m = format!("num_outputs = {k}, but the node has {n} outputs");
        return Err(cx.fail("E-ONNX-007", m).into());
    }
    let parts = match given {
        Some(parts) => {
            let sum: Dim = parts.iter().cloned().sum();
            cx.require(Pred::Eq(sum, shape[axis].clone()), "the parts must add up to the axis")?;
            parts
        }
        None => equal_parts(cx, &shape[axis], n)?,
    };
    if parts.len() != n {
        let m = format!("{} parts for {n} outputs", parts.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let mut at = Dim::from(0);
    let mut out = Vec::with_capacity(n);
    for p in parts {
        let mut starts = vec![Dim::from(0); shape.len()];
        let mut sizes = shape.clone();
        starts[axis] = at.clone();
        sizes[axis] = p.clone();
        at = at + p;
        let steps = vec![1; shape.len()];
        out.push(cx.op(Slice { starts, sizes, steps }, &[x])?);
    }
    Ok(out)
}

/// Equal parts; from opset 18 on the last may be smaller.
fn equal_parts(cx: &mut NodeCx<'_, '_>, d: &Dim, n: usize) -> Res<Vec<Dim>> {
    let count = Dim::from(n.max(1));
    if let Some(q) = d.div_exact(&count) {
        return Ok(vec![q; n]);
    }
    if cx.opset < 18 {
        let q = d.floordiv(&count);
        let why = format!("the axis must divide into {n} equal parts");
        cx.require(Pred::Eq(d.clone(), q.clone() * count), &why)?;
        return Ok(vec![q; n]);
    }
    let q = (d.clone() + count.clone() - Dim::from(1)).floordiv(&count);
    let last = cx.simplify(d.clone() - q.clone() * Dim::from(n.saturating_sub(1)));
    cx.require(Pred::Le(Dim::from(0), last.clone()), &format!("the axis is too short for {n} parts"))?;
    let mut parts = vec![q; n.saturating_sub(1)];
    parts.push(last);
    Ok(parts)
}
