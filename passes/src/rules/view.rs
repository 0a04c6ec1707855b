//! Rules about rearrangements: views that change nothing, and views of views.

use super::{Rewrite, Rule, keep, remake, result, rules};
use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Conv, Expand, Lowering, Op, Reshape, Slice, Transpose};
use tgc_ir::types::{Atom, Dim, Type};

pub(crate) const RULES: &[Rule] = rules![
    transpose_none,
    transpose_transpose,
    transpose_reshape,
    reshape_same,
    reshape_reshape,
    views_in_order,
    expand_same,
    expand_expand,
    slice_whole,
    slice_slice,
    concat_one,
    pad_none,
    pad_conv,
];

/// Most views looked through at once.
const CHAIN: usize = 6;

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

/// `transpose(x, p) = reshape(x)` where p leaves the axes that are not 1 in their order.
fn transpose_reshape(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Transpose(t)) = g.op_of(id) else { return None };
    let x = *g.operands(id).first()?;
    let shape = &g.ty(x)?.shape;
    let in_order = axes(&t.perm).into_iter().filter(|&a| shape.get(a).is_some_and(|d| !d.is(1))).is_sorted();
    if !in_order {
        return None;
    }
    remake(g, id, Reshape { shape: g.ty(result(id))?.shape.clone() }, &[x])
}

/// `transpose(reshape(transpose(x))) = reshape(x)`, and other chains of the two, where no element moves.
fn views_in_order(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let mut index = shuffle(g, id)?;
    let out = &g.ty(result(id))?.shape;
    // The label of an axis of extent 1 is always 0.
    let at: Vec<Dim> = out
        .iter()
        .enumerate()
        .map(|(i, d)| if d.is(1) { Dim::from(0) } else { Dim::label(i as u32) })
        .collect();
    index.iter_mut().for_each(|d| *d = at_labels(d, &at));
    let want = linear(&at, out);
    let mut x = *g.operands(id).first()?;
    let mut found = None;
    for _ in 0..CHAIN {
        let Some(inner) = shuffle(g, x.node) else { break };
        index = inner.iter().map(|d| at_labels(d, &index)).collect();
        x = *g.operands(x.node).first()?;
        if linear(&index, &g.ty(x)?.shape) == want {
            found = Some(x);
        }
    }
    remake(g, id, Reshape { shape: out.clone() }, &[found?])
}

/// Index map of a reshape or a transpose.
fn shuffle(g: &Graph, id: NodeId) -> Option<Vec<Dim>> {
    let op = g.op_of(id).filter(|op| matches!(op, Op::Reshape(_) | Op::Transpose(_)))?;
    let x = g.ty(*g.operands(id).first()?)?.clone();
    match op.lower(&[x], &[g.ty(result(id))?.clone()], &g.symbols) {
        Ok(Lowering::Class(Class::View(v))) => Some(v.pieces.first()?.index.clone()),
        _ => None,
    }
}

/// Row-major position of an index.
fn linear(index: &[Dim], shape: &[Dim]) -> Dim {
    index.iter().zip(shape).fold(Dim::from(0), |lin, (i, d)| lin * d.clone() + i.clone())
}

/// `d` with label `#i` replaced by `index[i]`.
fn at_labels(d: &Dim, index: &[Dim]) -> Dim {
    d.subst(&|a| if let Atom::Label(i) = a { index.get(*i as usize).cloned() } else { None })
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

/// Channels up to which a convolution's padding is done beforehand: tested at every position of the kernel, its condition
/// would cost as much as the few products there.
const FEW_CHANNELS: i64 = 4;

/// True for a convolution whose operand layout pads, and which therefore takes no padding in.
pub(crate) fn pads_beforehand(c: &Conv, w: &Type) -> bool {
    c.groups == 1 && w.shape.get(1).and_then(Dim::as_const).is_some_and(|n| n <= FEW_CHANNELS)
}

/// `conv(pad(x, by zeros on spatial axes), w) = conv(x, w)` with more padding.
fn pad_conv(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Conv(c)) = g.op_of(id) else { return None };
    let (x, op) = below(g, id)?;
    let Op::Pad(p) = op else { return None };
    // +0.0 in every bit, as padding of a convolution reads
    if p.value.bits != 0 || (c.channels_last && pads_beforehand(c, g.ty(*g.operands(id).get(1)?)?)) {
        return None;
    }
    let axes = c.strides.len();
    let spatial = if c.channels_last { 1 } else { 2 };
    let inside = |i: &usize| (spatial..spatial + axes).contains(i);
    let others = (0..p.before.len()).filter(|i| !inside(i));
    if others.clone().any(|i| !p.before[i].is(0) || !p.after[i].is(0)) {
        return None;
    }
    let added = p.before[spatial..][..axes].iter().chain(&p.after[spatial..][..axes]);
    let pads: Option<Vec<i64>> =
        c.pads.iter().zip(added).map(|(have, more)| have.checked_add(more.as_const()?)).collect();
    let mut operands = g.operands(id);
    operands[0] = x;
    remake(g, id, Conv { pads: pads?, ..c.clone() }, &operands)
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
