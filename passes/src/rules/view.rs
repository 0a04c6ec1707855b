//! Rules about rearrangements: views that change nothing, and views of views.

use super::{Rewrite, Rule, keep, remake, result, rules};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Expand, Op, Reshape, Slice, Transpose};
use tgc_ir::types::Dim;

pub(crate) const RULES: &[Rule] = rules![
    transpose_none,
    transpose_transpose,
    reshape_same,
    reshape_reshape,
    expand_same,
    expand_expand,
    slice_whole,
    slice_slice,
    concat_one,
    pad_none,
];

/// `transpose(x, 0 1 2 ..) = x`.
fn transpose_none(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Transpose(t)) = g.op_of(id) else { return None };
    let same = axes(&t.perm).into_iter().enumerate().all(|(i, p)| i == p);
    if same { keep(g, id, *g.operands(id).first()?) } else { None }
}

/// `transpose(transpose(x, p), q) = transpose(x, p o q)`.
fn transpose_transpose(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Transpose(outer)) = g.op_of(id) else { return None };
    let (x, inner) = below(g, id)?;
    let Op::Transpose(inner) = inner else { return None };
    let p = axes(&inner.perm);
    let perm: Option<Vec<i64>> = axes(&outer.perm).iter().map(|&q| p.get(q).map(|&a| a as i64)).collect();
    remake(g, id, Transpose { perm: perm? }, &[x])
}

/// `reshape(x, shape of x) = x`.
fn reshape_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Reshape(_)) = g.op_of(id) else { return None };
    keep(g, id, *g.operands(id).first()?)
}

/// `reshape(reshape(x, s), t) = reshape(x, t)`.
fn reshape_reshape(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Reshape(outer)) = g.op_of(id) else { return None };
    let (x, inner) = below(g, id)?;
    let Op::Reshape(_) = inner else { return None };
    remake(g, id, Reshape { shape: outer.shape.clone() }, &[x])
}

/// `expand(x, shape of x) = x`.
fn expand_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Expand(_)) = g.op_of(id) else { return None };
    keep(g, id, *g.operands(id).first()?)
}

/// `expand(expand(x, s), t) = expand(x, t)`.
fn expand_expand(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Expand(outer)) = g.op_of(id) else { return None };
    let (x, inner) = below(g, id)?;
    let Op::Expand(_) = inner else { return None };
    remake(g, id, Expand { shape: outer.shape.clone() }, &[x])
}

/// `slice(x, all of it) = x`.
fn slice_whole(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Slice(s)) = g.op_of(id) else { return None };
    let whole = s.starts.iter().all(|d| d.is(0)) && s.steps.iter().all(|&k| k == 1);
    if whole { keep(g, id, *g.operands(id).first()?) } else { None }
}

/// `slice(slice(x, a, k), b, l) = slice(x, a + k b, k l)`.
fn slice_slice(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Slice(outer)) = g.op_of(id) else { return None };
    let (x, inner) = below(g, id)?;
    let Op::Slice(inner) = inner else { return None };
    let steps: Option<Vec<i64>> =
        inner.steps.iter().zip(&outer.steps).map(|(a, b)| a.checked_mul(*b)).collect();
    let start = |((a, k), b): ((&Dim, &i64), &Dim)| a.clone() + Dim::from(*k) * b.clone();
    let starts = inner.starts.iter().zip(&inner.steps).zip(&outer.starts).map(start).collect();
    remake(g, id, Slice { starts, sizes: outer.sizes.clone(), steps: steps? }, &[x])
}

/// `concat(x) = x`.
fn concat_one(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Concat(_)) = g.op_of(id) else { return None };
    match g.operands(id)[..] {
        [x] => keep(g, id, x),
        _ => None,
    }
}

/// `pad(x, by nothing) = x`.
fn pad_none(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Pad(p)) = g.op_of(id) else { return None };
    let none = p.before.iter().chain(&p.after).all(|d| d.is(0));
    if none { keep(g, id, *g.operands(id).first()?) } else { None }
}

/// Operand of the node's operand, and the op between.
fn below(g: &Graph, id: NodeId) -> Option<(Value, &Op)> {
    let y = *g.operands(id).first()?;
    let op = g.op_of(y.node)?;
    if y != result(y.node) {
        return None;
    }
    Some((*g.operands(y.node).first()?, op))
}

/// A permutation with negative axes resolved.
fn axes(perm: &[i64]) -> Vec<usize> {
    let rank = perm.len() as i64;
    perm.iter().map(|&p| if p < 0 { p + rank } else { p } as usize).collect()
}
