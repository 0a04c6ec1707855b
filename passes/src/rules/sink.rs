//! Rules that move rearrangements towards what reads them: below the elementwise work after a contraction, so that this
//! becomes part of the contraction's kernel, and to where several of them join to one or to none.

use super::splat::class;
use super::{Rewrite, Rule, keep, pair, remake, result, rules, splat_of};
use tgc_ir::class::{Class, View};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Constant, Matmul, Op, Reshape, Slice, Transpose};
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::types::{Atom, Dim};

pub(crate) const RULES: &[Rule] = rules![map_of_view, matmul_of_rows, reshape_slice, views_transpose];

/// Most elementwise nodes looked through for a contraction.
const DEPTH: usize = 12;
/// Most views joined at once.
const CHAIN: usize = 6;

/// `f(view x, c) = view f(x, c)` for an elementwise f, where x is computed by a contraction and the rearrangement is a
/// reshape or transpose; c is a splat, or a vector along the last axis where that stays in place. Several operands may be
/// views of the same kind.
fn map_of_view(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let node = g.node(id)?;
    let operands = g.operands(id);
    if node.results.len() != 1 || operands.is_empty() || !is_elementwise(g, id) {
        return None;
    }
    let first = operands.iter().find(|v| is_rearranged(g, **v))?;
    let view = g.op_of(first.node)?;
    let from = g.ty(*g.operands(first.node).first()?)?;
    let to = g.ty(*first)?;
    if to.shape != g.ty(result(id))?.shape {
        return None;
    }
    let last_stays = match view {
        Op::Transpose(t) => t.perm.last().is_some_and(|p| *p == -1 || *p + 1 == t.perm.len() as i64),
        _ => from.shape.last() == to.shape.last(),
    };
    let mut p = Patch::new(g, id);
    let mut args = Vec::new();
    for v in &operands {
        let below = || g.operands(v.node).first().copied();
        let same_view = g.op_of(v.node) == Some(view) && *v == result(v.node);
        if same_view && below().and_then(|x| g.ty(x)).is_some_and(|t| t.shape == from.shape) {
            args.push(PVal::Old(below()?));
        } else if let Some(c) = splat_of(g, *v) {
            args.push(p.op(Constant::scalar(c), &[]).ok()?);
        } else if last_stays && g.ty(*v)?.rank() == 1 && g.ty(*v)?.shape.last() == to.shape.last() {
            args.push(PVal::Old(*v));
        } else {
            return None;
        }
    }
    let inner = p.op(node.op.clone(), &args).ok()?;
    let new = p.op(view.clone(), &[inner]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// A reshape or transpose of something that a contraction computes.
fn is_rearranged(g: &Graph, v: Value) -> bool {
    let view = matches!(g.op_of(v.node), Some(Op::Reshape(_) | Op::Transpose(_)));
    view && g.operands(v.node).first().is_some_and(|x| rises(g, *x, DEPTH))
}

/// A contraction's result, or elementwise work and rearrangements on one.
fn rises(g: &Graph, v: Value, depth: usize) -> bool {
    match g.op_of(v.node) {
        Some(Op::Matmul(_) | Op::Conv(_)) => true,
        Some(Op::Reshape(_) | Op::Transpose(_)) if depth > 0 => {
            g.operands(v.node).first().is_some_and(|x| rises(g, *x, depth - 1))
        }
        Some(_) if depth > 0 && is_elementwise(g, v.node) => {
            g.operands(v.node).iter().any(|x| rises(g, *x, depth - 1))
        }
        _ => false,
    }
}

fn is_elementwise(g: &Graph, id: NodeId) -> bool {
    matches!(class(g, id), Some(Class::Map(m)) if m.expr.nodes.iter().all(|n| !mentions_label(&n.0)))
}

fn mentions_label(n: &tgc_ir::scalar::ENode) -> bool {
    matches!(n, tgc_ir::scalar::ENode::Dim(d) if d.any_leaf(|a| matches!(a, Atom::Label(_))))
}

/// `matmul(reshape x, w) = reshape matmul(x, w)` for a matrix w and a reshape that regroups the rows of x only.
fn matmul_of_rows(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Matmul(_)) = g.op_of(id) else { return None };
    let (y, w) = pair(g, id)?;
    let Some(Op::Reshape(_)) = g.op_of(y.node) else { return None };
    let x = *g.operands(y.node).first()?;
    let (from, to) = (g.ty(x)?, g.ty(y)?);
    let inner = to.shape.last()?;
    if g.ty(w)?.rank() != 2 || from.rank() < 2 || to.rank() < 2 || from.shape.last() != Some(inner) {
        return None;
    }
    let mut p = Patch::new(g, id);
    let product = p.op(Matmul {}, &[PVal::Old(x), PVal::Old(w)]).ok()?;
    let new = p.op(Reshape { shape: g.ty(result(id))?.shape.clone() }, &[product]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// `reshape(slice x) = slice(reshape x)` where the reshape splits the one sliced axis, and the slice keeps whole groups.
fn reshape_slice(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Reshape(_)) = g.op_of(id) else { return None };
    let y = *g.operands(id).first()?;
    let Some(Op::Slice(s)) = g.op_of(y.node) else { return None };
    let x = *g.operands(y.node).first()?;
    let (whole, part, to) = (&g.ty(x)?.shape, &g.ty(y)?.shape, &g.ty(result(id))?.shape);
    let sliced: Vec<usize> = (0..whole.len()).filter(|i| whole[*i] != part[*i]).collect();
    let [axis] = sliced[..] else { return None };
    let plain = s.steps.iter().all(|k| *k == 1)
        && s.starts.iter().enumerate().all(|(i, d)| i == axis || d.is(0));
    let (before, after) = (&part[..axis], &part[axis + 1..]);
    let fits = to.len() >= part.len() && to.starts_with(before) && to.ends_with(after);
    if !plain || !fits {
        return None;
    }
    let split = &to[axis..to.len() - after.len()];
    let [count, groups @ ..] = split else { return None };
    let group: i64 = groups.iter().map(Dim::as_const).try_fold(1i64, |a, d| a.checked_mul(d?))?;
    let (start, all) = (s.starts[axis].as_const()?, whole[axis].as_const()?);
    if groups.is_empty() || group <= 0 || start % group != 0 || all % group != 0 {
        return None;
    }
    let mut shape = to.clone();
    shape[axis] = Dim::from(all / group);
    let mut starts = vec![Dim::from(0); to.len()];
    starts[axis] = Dim::from(start / group);
    let mut sizes = shape.clone();
    sizes[axis] = count.clone();
    let mut p = Patch::new(g, id);
    let regrouped = p.op(Reshape { shape }, &[PVal::Old(x)]).ok()?;
    let new = p.op(Slice { starts, sizes, steps: vec![1; to.len()] }, &[regrouped]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// `view(view(.. x)) = transpose x`, or `x`, where reshapes and transposes only reorder the axes of x in all.
fn views_transpose(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let out = g.ty(result(id))?;
    let labels: Vec<Dim> = (0..out.rank()).map(|i| Dim::label(i as u32)).collect();
    let (mut at, mut index) = (result(id), labels);
    let mut best: Option<(Value, Vec<usize>)> = None;
    for n in 0..CHAIN {
        let Some(Op::Reshape(_) | Op::Transpose(_)) = g.op_of(at.node) else { break };
        let Class::View(View { pieces, .. }) = class(g, at.node)? else { break };
        let piece = pieces.first()?;
        let through = |d: &Dim| {
            let d = d.subst(&|a| if let Atom::Label(l) = a { index.get(*l as usize).cloned() } else { None });
            d.simplify(&|a| match a {
                Atom::Label(l) => {
                    let extent = out.shape.get(*l as usize).cloned().unwrap_or(Dim::from(1));
                    (0, g.symbols.range(&extent).1 - 1)
                }
                a => g.symbols.atom_range(a),
            })
        };
        index = piece.index.iter().map(through).collect();
        at = *g.operands(at.node).first()?;
        if n > 0
            && let Some(perm) = permutation(&index, &g.ty(at)?.shape, &out.shape)
        {
            best = Some((at, perm));
        }
    }
    let (x, perm) = best?;
    if perm.iter().enumerate().all(|(i, p)| i == *p) {
        return keep(g, id, x);
    }
    // Two transposes in a row are another rule's.
    remake(g, id, Transpose { perm: perm.into_iter().map(|p| p as i64).collect() }, &[x])
}

/// For each axis of the result the axis of the operand it is, if the index map says no more than that.
fn permutation(index: &[Dim], from: &[Dim], to: &[Dim]) -> Option<Vec<usize>> {
    if from.len() != to.len() {
        return None;
    }
    let mut perm: Vec<Option<usize>> = vec![None; to.len()];
    for (axis, d) in index.iter().enumerate() {
        let l = (0..to.len()).find(|l| *d == Dim::label(*l as u32))?;
        if perm[l].replace(axis).is_some() || from.get(axis) != to.get(l) {
            return None;
        }
    }
    perm.into_iter().collect()
}
