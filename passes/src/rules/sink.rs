//! Rules that move rearrangements towards what reads them: below the elementwise work after a contraction, so that this
//! becomes part of the contraction's kernel, and to where several of them join to one or to none.

use super::splat::class;
use super::{Rewrite, Rule, pair, result, rules, splat_of};
use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Constant, Matmul, Mul, Op, Reshape};
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Atom, Dim};

pub(crate) const RULES: &[Rule] = rules![map_of_view, matmul_of_rows, scale_of_slice];

/// Most elementwise nodes looked through for a contraction.
const DEPTH: usize = 12;
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
    let last_stays = last_stays(g, first.node);
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
    if depth == 0 {
        return false;
    }
    let below = |n: usize| g.operands(v.node).iter().take(n).any(|x| rises(g, *x, depth - 1));
    match class(g, v.node) {
        Some(Class::Contract(_)) => true,
        Some(Class::View(view)) => view.pieces.len() == 1 && below(1),
        Some(Class::Map(_)) => below(usize::MAX),
        _ => false,
    }
}

fn is_elementwise(g: &Graph, id: NodeId) -> bool {
    matches!(class(g, id), Some(Class::Map(m)) if m.expr.nodes.iter().all(|n| !mentions_label(&n.0)))
}

fn mentions_label(n: &tgc_ir::scalar::ENode) -> bool {
    matches!(n, tgc_ir::scalar::ENode::Dim(d) if d.any_leaf(|a| matches!(a, Atom::Label(_))))
}

/// `matmul(view x, w) = view matmul(x, w)` for a matrix w and a reshape or transpose that moves only rows of x. Where a
/// reshape also joins axes of x to the inner one, these are joined before.
fn matmul_of_rows(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Matmul(_)) = g.op_of(id) else { return None };
    let (y, w) = pair(g, id)?;
    let view = g.op_of(y.node)?;
    let x = *g.operands(y.node).first()?;
    let (from, to) = (&g.ty(x)?.shape, &g.ty(y)?.shape);
    let inner = to.last()?;
    if g.ty(w)?.rank() != 2 || from.len() < 2 || to.len() < 2 {
        return None;
    }
    let mut p = Patch::new(g, id);
    let mut rows = PVal::Old(x);
    let out: Op = if matches!(view, Op::Reshape(_)) {
        let keep = (1..from.len()).rev().find(|n| from[*n..].iter().cloned().product::<Dim>() == *inner)?;
        if keep + 1 < from.len() {
            // Two reshapes of the same elements would be joined again.
            if to.len() == keep + 1 && to[..keep] == from[..keep] {
                return None;
            }
            let shape = from[..keep].iter().chain([inner]).cloned().collect();
            rows = p.op(Reshape { shape }, &[rows]).ok()?;
        }
        Reshape { shape: g.ty(result(id))?.shape.clone() }.into()
    } else if matches!(view, Op::Transpose(_)) && last_stays(g, y.node) {
        view.clone()
    } else {
        return None;
    };
    let product = p.op(Matmul {}, &[rows, PVal::Old(w)]).ok()?;
    let new = p.op(out, &[product]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// The last axis of a rearrangement's result is the last one of its operand.
fn last_stays(g: &Graph, id: NodeId) -> bool {
    let Some(Class::View(v)) = class(g, id) else { return false };
    let Some(piece) = v.pieces.first().filter(|_| v.pieces.len() == 1) else { return false };
    let rank = piece.lo.len() as u32;
    rank > 0 && piece.index.last() == Some(&Dim::label(rank - 1))
}

/// `slice(x) * c = slice(x * v)` for a contraction's result x of which only slices apart are read: v is c in the slice's
/// columns and 1 elsewhere, which changes nothing there.
fn scale_of_slice(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Mul(_)) = g.op_of(id) else { return None };
    let (y, c) = pair(g, id)?;
    let factor = splat_of(g, c)?;
    let Some(Op::Slice(_)) = g.op_of(y.node) else { return None };
    let source = *g.operands(y.node).first()?;
    let alone = |v: Value| g.users(v).len() == 1 && !g.is_output(v);
    // The contraction's result, perhaps with its last axis split.
    let split = matches!(g.op_of(source.node), Some(Op::Reshape(_)));
    let x = if split { *g.operands(source.node).first()? } else { source };
    if !rises(g, x, DEPTH) || g.is_output(source) || (x != source && !alone(x)) || !alone(y) {
        return None;
    }
    let (wide, split) = (&g.ty(x)?.shape, &g.ty(source)?.shape);
    let axis = wide.len().checked_sub(1)?;
    let group: i64 =
        split.get(axis + 1..)?.iter().map(Dim::as_const).try_fold(1i64, |a, d| a.checked_mul(d?))?;
    let columns = wide.last()?.as_const()?;
    if split[..axis] != wide[..axis] || split[axis].as_const()?.checked_mul(group) != Some(columns) {
        return None;
    }
    let mine = part(g, y.node, axis)?;
    let mut others = Vec::new();
    for (user, _) in g.users(source).into_iter().filter(|u| u.0 != y.node) {
        let (lo, hi) = part(g, user, axis)?;
        if lo < mine.1 && mine.0 < hi {
            return None;
        }
        others.push(user);
    }
    let dtype = g.ty(x)?.dtype;
    let one = Scalar::from_f64(dtype, 1.0);
    let (base, mut factors) = scaled(g, x).unwrap_or((x, vec![one; usize::try_from(columns).ok()?]));
    let range = usize::try_from(mine.0 * group).ok()?..usize::try_from(mine.1 * group).ok()?;
    let slots = factors.get_mut(range)?;
    if !dtype.is_float() || slots.iter().any(|s| *s != one) {
        return None;
    }
    slots.fill(factor);
    let mut p = Patch::new(g, id);
    let vector = Tensor::from_scalars(dtype, &[factors.len()], factors);
    let vector = p.op(Constant { value: vector, shape: None }, &[]).ok()?;
    let mut new = p.op(Mul {}, &[PVal::Old(base), vector]).ok()?;
    if x != source {
        new = p.op(g.op_of(source.node)?.clone(), &[new]).ok()?;
    }
    for user in others {
        let other = p.op(g.op_of(user)?.clone(), &[new]).ok()?;
        p.replace(result(user), other);
    }
    let scaled = p.op(g.op_of(y.node)?.clone(), &[new]).ok()?;
    if p.ty(scaled) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), scaled);
    Some(p)
}

/// First and one past the last index that a slice takes on `axis`, if it takes all of the others.
fn part(g: &Graph, id: NodeId, axis: usize) -> Option<(i64, i64)> {
    let Some(Op::Slice(s)) = g.op_of(id) else { return None };
    let shape = &g.ty(*g.operands(id).first()?)?.shape;
    let whole = (0..shape.len()).all(|i| i == axis || (s.starts[i].is(0) && s.sizes[i] == shape[i]));
    if !whole || s.steps.iter().any(|k| *k != 1) {
        return None;
    }
    let lo = s.starts.get(axis)?.as_const()?;
    Some((lo, lo.checked_add(s.sizes.get(axis)?.as_const()?)?))
}

/// `x = base * vector` for a constant vector.
fn scaled(g: &Graph, x: Value) -> Option<(Value, Vec<Scalar>)> {
    let Some(Op::Mul(_)) = g.op_of(x.node) else { return None };
    let (base, v) = pair(g, x.node)?;
    let Some(Op::Constant(c)) = g.op_of(v.node) else { return None };
    let columns = g.ty(x)?.shape.last()?.as_const()?;
    let vector = c.shape.is_none() && c.value.shape.len() == 1 && c.value.numel() as i64 == columns;
    vector.then(|| (base, c.value.scalars().collect()))
}
