//! `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`, `Transpose`, `Expand`: shapes given by operands become attributes.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::Transpose;
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[
    ("Reshape", 5, ANY, reshape),
    ("Flatten", 1, ANY, flatten),
    ("Squeeze", 1, ANY, squeeze),
    ("Unsqueeze", 1, ANY, unsqueeze),
    ("Transpose", 1, ANY, transpose),
    ("Expand", 8, ANY, expand),
];

fn reshape(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let from = cx.shape(x);
    let keep_zero = cx.opset >= 14 && cx.attrs.flag("allowzero", false)?;
    let list = cx.sizes(1, "the shape")?;
    let mut to: Vec<Option<Dim>> = Vec::with_capacity(list.len());
    for (i, d) in list.iter().enumerate() {
        let same = from.get(i);
        to.push(match d.as_const() {
            Some(-1) if to.iter().all(Option::is_some) => None,
            Some(-1) => return Err(cx.fail("E-ONNX-022", "the shape has more than one -1").into()),
            Some(0) if !keep_zero => match same {
                Some(d) => Some(d.clone()),
                None => {
                    let m = format!("element {i} of the shape is 0 (copy), but the operand has rank {}", from.len());
                    return Err(cx.fail("E-ONNX-022", m).into());
                }
            },
            Some(c) if c < 0 => {
                let m = format!("element {i} of the shape is {c}; allowed are sizes, 0 and -1");
                return Err(cx.fail("E-ONNX-022", m).into());
            }
            _ => Some(d.clone()),
        });
        // a size of 0 would mean "copy", and a negative one "the rest", when the model runs
        if d.as_const().is_none() && same != Some(d) {
            let least = if keep_zero { 0 } else { 1 };
            cx.require(Pred::Le(Dim::from(least), d.clone()), "an element of the shape must be a size")?;
        }
    }
    let rest = if to.contains(&None) { solve(cx, &from, &to)? } else { Dim::from(0) };
    let shape = to.into_iter().map(|d| d.unwrap_or_else(|| rest.clone())).collect();
    Ok(vec![cx.reshape(x, shape)?])
}

/// The size that -1 stands for.
fn solve(cx: &mut NodeCx<'_, '_>, from: &[Dim], to: &[Option<Dim>]) -> Res<Dim> {
    let mut have: Vec<Dim> = from.to_vec();
    let mut need = Dim::from(1);
    for d in to.iter().flatten() {
        match have.iter().position(|h| h == d) {
            Some(at) => _ = have.remove(at),
            None => need = need * d.clone(),
        }
    }
    let have: Dim = have.into_iter().product();
    if let Some(q) = have.div_exact(&need) {
        return Ok(q);
    }
    if need.as_const().is_some() && have.as_const().is_some() || need.is(0) {
        let m = format!("-1 cannot be solved: {have} elements do not divide by {need}");
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    cx.require(Pred::Le(Dim::from(1), need.clone()), "the other sizes of the shape must not be 0, to solve -1")?;
    let q = cx.simplify(have.floordiv(&need));
    cx.require(Pred::Eq(have, q.clone() * need), "the elements must divide evenly, to solve -1")?;
    Ok(q)
}

fn flatten(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let axis = cx.attrs.int("axis", 1)?;
    let at = if axis == shape.len() as i64 { shape.len() } else { cx.axis(axis, shape.len())? };
    let (a, b) = shape.split_at(at);
    let to = vec![a.iter().cloned().product(), b.iter().cloned().product()];
    Ok(vec![cx.reshape(x, to)?])
}

/// Axes by attribute before opset 13, by operand after.
fn axes(cx: &mut NodeCx<'_, '_>) -> Res<Option<Vec<i64>>> {
    if cx.opset < 13 {
        return cx.attrs.ints("axes");
    }
    cx.opt(1).map(|_| cx.ints(1, "axes")).transpose()
}

fn squeeze(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let gone = match axes(cx)? {
        Some(list) => {
            let list = cx.axes(&list, shape.len())?;
            for &a in &list {
                cx.require(Pred::Eq(shape[a].clone(), Dim::from(1)), &format!("axis {a} is squeezed, so it must be 1"))?;
            }
            list
        }
        None => {
            for (a, d) in shape.iter().enumerate().filter(|(_, d)| !d.is(1)) {
                let one = Pred::Eq(d.clone(), Dim::from(1));
                let why = format!("axis {a} must not be 1: without axes Squeeze would drop it and change the rank");
                cx.require(Pred::Not(Box::new(one)), &why)?;
            }
            (0..shape.len()).filter(|&a| shape[a].is(1)).collect()
        }
    };
    let to = shape.into_iter().enumerate().filter(|(a, _)| !gone.contains(a)).map(|s| s.1).collect();
    Ok(vec![cx.reshape(x, to)?])
}

fn unsqueeze(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let Some(list) = axes(cx)? else { return Err(cx.fail("E-ONNX-007", "axes are missing").into()) };
    let mut shape = cx.shape(x);
    for a in cx.axes(&list, shape.len() + list.len())? {
        shape.insert(a, Dim::from(1));
    }
    Ok(vec![cx.reshape(x, shape)?])
}

fn transpose(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let rank = cx.rank(x) as i64;
    let perm = cx.attrs.ints("perm")?.unwrap_or_else(|| (0..rank).rev().collect());
    if perm.iter().enumerate().all(|(i, &p)| i as i64 == p) && perm.len() as i64 == rank {
        return Ok(vec![x]);
    }
    Ok(vec![cx.op(Transpose { perm }, &[x])?])
}

/// Broadcasts both ways: the shape may have 1 where the operand is larger.
fn expand(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let from = cx.shape(x);
    let to = cx.sizes(1, "the shape")?;
    let rank = from.len().max(to.len());
    let at = |s: &[Dim], i: usize| (i + s.len()).checked_sub(rank).map(|j| s[j].clone());
    let mut shape = Vec::with_capacity(rank);
    for i in 0..rank {
        shape.push(match (at(&from, i), at(&to, i)) {
            (Some(a), Some(b)) => merged(cx, &a, &b)?,
            (a, b) => a.or(b).unwrap_or_default(),
        });
    }
    Ok(vec![cx.expand(x, shape)?])
}

fn merged(cx: &mut NodeCx<'_, '_>, a: &Dim, b: &Dim) -> Res<Dim> {
    if a == b || b.is(1) {
        return Ok(a.clone());
    }
    if a.is(1) {
        cx.require(Pred::Le(Dim::from(0), b.clone()), "an element of the shape must be a size")?;
        return Ok(b.clone());
    }
    cx.require(Pred::Broadcastable(a.clone(), b.clone()), "the shape must broadcast with the operand's")?;
    Ok(match (a.as_const(), b.as_const()) {
        (Some(_), None) => a.clone(),
        (None, Some(_)) => b.clone(),
        _ => a.bcast(b),
    })
}
