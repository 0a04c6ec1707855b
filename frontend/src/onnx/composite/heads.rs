//! `RotaryEmbedding`, and the splitting of an axis into heads that it shares with attention.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Concat, Gather, Mul, Slice, Sub, Transpose};
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("RotaryEmbedding", 23, ANY, rotary)];

/// [batch, length, heads * size] as [batch, length, heads, size].
fn split(cx: &mut NodeCx<'_, '_>, x: Value, heads: Option<i64>, attr: &str) -> Res<Value> {
    let Some(n) = heads.filter(|n| *n >= 1) else {
        let m = format!("attribute `{attr}` must be a number of at least 1 where the operand has rank 3");
        return Err(cx.fail("E-ONNX-007", m).into());
    };
    let (mut shape, n) = (cx.shape(x), Dim::from(n));
    let hidden = shape.pop().unwrap_or_default();
    let size = hidden.div_exact(&n).unwrap_or_else(|| hidden.floordiv(&n));
    cx.require(Pred::Eq(size.clone() * n.clone(), hidden), &format!("the last dim must be a multiple of `{attr}`"))?;
    shape.extend([n, size]);
    cx.reshape(x, shape)
}

/// [batch, length, heads * size] as [batch, heads, length, size]; an operand of rank 4 stays, with the number of heads
/// checked where it is given.
pub(super) fn apart(cx: &mut NodeCx<'_, '_>, x: Value, heads: Option<i64>, attr: &str) -> Res<Value> {
    if cx.rank(x) == 3 {
        let x = split(cx, x, heads, attr)?;
        return cx.op(Transpose { perm: vec![0, 2, 1, 3] }, &[x]);
    }
    if let (Some(n), Some(dim)) = (heads, cx.shape(x).get(1)) {
        let same = Pred::Eq(dim.clone(), Dim::from(n));
        cx.require(same, &format!("dim 1 must be `{attr}`"))?;
    }
    Ok(x)
}

/// [batch, heads, length, size] as [batch, length, heads * size].
pub(super) fn together(cx: &mut NodeCx<'_, '_>, x: Value) -> Res<Value> {
    let shape = cx.shape(x);
    let to = vec![shape[0].clone(), shape[2].clone(), shape[1].clone() * shape[3].clone()];
    let x = cx.op(Transpose { perm: vec![0, 2, 1, 3] }, &[x])?;
    cx.reshape(x, to)
}

fn rotary(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let interleaved = cx.attrs.flag("interleaved", false)?;
    let (part, heads) = (cx.attrs.int("rotary_embedding_dim", 0)?, cx.attrs.opt_int("num_heads")?.filter(|n| *n > 0));
    let x = cx.x(0)?;
    let whole = cx.shape(x);
    // axis of the heads once they are apart
    let (parts, axis) = match whole.len() {
        3 => (split(cx, x, heads, "num_heads")?, 2),
        4 => (apart(cx, x, heads, "num_heads")?, 1),
        n => return Err(cx.fail("E-ONNX-022", format!("the operand must have rank 3 or 4, found {n}")).into()),
    };
    let shape = cx.shape(parts);
    let size = if part > 0 { Dim::from(part) } else { shape[3].clone() };
    let two = Dim::from(2);
    let half = size.div_exact(&two).unwrap_or_else(|| size.floordiv(&two));
    cx.require(Pred::Eq(half.clone() * two, size.clone()), "the number of rotated elements must be even")?;
    let lead = [shape[0].clone(), shape[3 - axis].clone(), half.clone()];
    let (cos, sin) = (angles(cx, 1, &lead, axis)?, angles(cx, 2, &lead, axis)?);
    let y = cx.wide(parts, |cx, x| {
        let d = cx.dtype(x);
        let (cos, sin) = (cx.cast(cos, d)?, cx.cast(sin, d)?);
        let (a, b) = if interleaved {
            (piece(cx, x, Dim::from(0), &half, 2)?, piece(cx, x, Dim::from(1), &half, 2)?)
        } else {
            (piece(cx, x, Dim::from(0), &half, 1)?, piece(cx, x, half.clone(), &half, 1)?)
        };
        let y = turned(cx, (a, b), (cos, sin), interleaved, &size)?;
        if size == shape[3] {
            return Ok(y);
        }
        let rest = piece(cx, x, size.clone(), &(shape[3].clone() - size.clone()), 1)?;
        cx.op(Concat { axis: 3 }, &[y, rest])
    })?;
    Ok(vec![cx.reshape(y, whole)?])
}

/// The pairs `(a, b)` turned by their angles, as `size` elements: neighbours, or the first half and the second.
fn turned(
    cx: &mut NodeCx<'_, '_>,
    (a, b): (Value, Value),
    (cos, sin): (Value, Value),
    neighbours: bool,
    size: &Dim,
) -> Res<Value> {
    let mut product = |x, y| cx.op(Mul {}, &[x, y]);
    let (ac, bs, as_, bc) = (product(a, cos)?, product(b, sin)?, product(a, sin)?, product(b, cos)?);
    let (real, imag) = (cx.op(Sub {}, &[ac, bs])?, cx.op(Add {}, &[as_, bc])?);
    if !neighbours {
        return cx.op(Concat { axis: 3 }, &[real, imag]);
    }
    let mut shape = cx.shape(real);
    let single = [&shape[..], &[Dim::from(1)]].concat();
    let (real, imag) = (cx.reshape(real, single.clone())?, cx.reshape(imag, single)?);
    let y = cx.op(Concat { axis: 4 }, &[real, imag])?;
    shape[3] = size.clone();
    cx.reshape(y, shape)
}

/// `n` elements of the last axis from `start` on.
fn piece(cx: &mut NodeCx<'_, '_>, x: Value, start: Dim, n: &Dim, step: i64) -> Res<Value> {
    let mut sizes = cx.shape(x);
    let (mut starts, mut steps) = (vec![Dim::from(0); sizes.len()], vec![1; sizes.len()]);
    if let (Some(s), Some(z), Some(t)) = (starts.last_mut(), sizes.last_mut(), steps.last_mut()) {
        (*s, *z, *t) = (start, n.clone(), step);
    }
    cx.op(Slice { starts, sizes, steps }, &[x])
}

/// Cosines or sines, by position where positions are given, with an axis of 1 for the heads. `lead`: batch, length and
/// half the rotated size.
fn angles(cx: &mut NodeCx<'_, '_>, i: usize, lead: &[Dim; 3], axis: usize) -> Res<Value> {
    let mut table = cx.x(i)?;
    let wanted = if cx.opt(3).is_some() { 2 } else { 3 };
    if cx.rank(table) != wanted {
        let m = format!("operand {i} must have rank {wanted}: 2 with position_ids, 3 without");
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    if let Some(at) = cx.opt(3) {
        if cx.rank(at) != 2 {
            return Err(cx.fail("E-ONNX-022", "position_ids must have rank 2").into());
        }
        table = cx.op(Gather { axis: 0 }, &[table, at])?;
    }
    let mut shape = cx.shape(table);
    for (n, (d, to)) in shape.clone().iter().zip(lead).enumerate() {
        // a table for one batch entry or position serves all, as numpy would have it
        if n < 2 && d.is(1) {
            continue;
        }
        cx.require(Pred::Eq(d.clone(), to.clone()), "cosines and sines must be those of the batch, positions and half the rotated elements")?;
        shape[n] = to.clone();
    }
    let table = cx.reshape(table, shape.clone())?;
    shape.insert(axis, Dim::from(1));
    cx.reshape(table, shape)
}
