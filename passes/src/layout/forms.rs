//! What each node is with channels last: the op with its axes renamed, which operands it reads in that layout, and what
//! becomes of its result. A node without a form is the border of a set.

use crate::rules::result;
use crate::rules::splat::class;
use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::{
    ArgMax, Attr, AvgPool, Concat, Conv, CumSum, Expand, Gather, MaxPool, Op, Pad, ReduceMax, ReduceMin,
    ReduceProd, ReduceSum, Reshape, Slice,
};
use tgc_ir::scalar::ENode;
use tgc_ir::types::Atom;

/// A node with channels last.
pub(super) struct Form {
    /// Rank that operands are read with.
    pub(super) rank: usize,
    pub(super) op: Op,
    /// Operands from this one on are read as they are.
    laid: usize,
    pub(super) result: Place,
}

/// What becomes of a result.
pub(super) enum Place {
    /// It has channels last.
    Laid,
    /// It is as it was after this permutation.
    Plain(Vec<usize>),
}

impl Form {
    /// Operand `i` is read with channels last.
    pub(super) fn lays(&self, i: usize) -> bool {
        i < self.laid
    }
}

/// The permutation that puts the second of `rank` axes last: axis i of the result is axis `[i]` of the operand.
pub(super) fn to_last(rank: usize) -> Vec<usize> {
    std::iter::once(0).chain(2..rank).chain([1]).collect()
}

/// The permutation that undoes [`to_last`].
pub(super) fn to_second(rank: usize) -> Vec<usize> {
    [0, rank - 1].into_iter().chain(1..rank - 1).collect()
}

/// An attribute with one entry an axis.
fn moved<T: Clone>(v: &[T]) -> Vec<T> {
    to_last(v.len()).into_iter().map(|a| v[a].clone()).collect()
}

/// Where an axis goes; a negative one counts from the end.
fn place(axis: i64, rank: usize) -> Option<i64> {
    let axis = if axis < 0 { axis + rank as i64 } else { axis };
    to_second(rank).get(usize::try_from(axis).ok()?).map(|&a| a as i64)
}

/// The form of a node; None for one that is a border.
pub(super) fn form(g: &Graph, id: NodeId) -> Option<Form> {
    let node = g.node(id)?;
    if node.results.len() != 1 || !node.regions.is_empty() || node_ranks(g, id).max() < Some(3) {
        return None;
    }
    FORMS.iter().find_map(|f| f(g, id))
}

type Find = fn(&Graph, NodeId) -> Option<Form>;

const FORMS: &[Find] = &[conv, pool, boxes, along, spread, regrouped, reduced, reduced_to_index, elementwise];

/// Ranks of the first operand and the result.
fn node_ranks(g: &Graph, id: NodeId) -> impl Iterator<Item = usize> {
    g.operands(id).into_iter().take(1).chain([result(id)]).filter_map(|v| Some(g.ty(v)?.rank()))
}

/// A node whose result, and whose first `count` operands, have channels last.
fn laid(g: &Graph, id: NodeId, op: impl Into<Op>, count: usize) -> Option<Form> {
    Some(Form { rank: g.ty(result(id))?.rank(), op: op.into(), laid: count, result: Place::Laid })
}

fn conv(g: &Graph, id: NodeId) -> Option<Form> {
    let Some(Op::Conv(c)) = g.op_of(id).filter(|op| second(op)) else { return None };
    laid(g, id, Conv { channels_last: true, ..c.clone() }, 1)
}

fn pool(g: &Graph, id: NodeId) -> Option<Form> {
    let op = g.op_of(id).filter(|op| second(op))?;
    if let Op::MaxPool(p) = op {
        return laid(g, id, MaxPool { channels_last: true, ..p.clone() }, 1);
    }
    let Op::AvgPool(p) = op else { return None };
    laid(g, id, AvgPool { channels_last: true, ..p.clone() }, 1)
}

/// A windowed op whose channels are the second axis.
fn second(op: &Op) -> bool {
    !op.attrs().iter().any(|(name, value)| *name == "channels_last" && *value == Attr::Bool(true))
}

fn boxes(g: &Graph, id: NodeId) -> Option<Form> {
    let op = g.op_of(id)?;
    if let Op::Pad(p) = op {
        let (before, after) = (moved(&p.before), moved(&p.after));
        return laid(g, id, Pad { before, after, value: p.value }, 1);
    }
    let Op::Slice(s) = op else { return None };
    let (starts, sizes, steps) = (moved(&s.starts), moved(&s.sizes), moved(&s.steps));
    laid(g, id, Slice { starts, sizes, steps }, 1)
}

/// Ops along one axis.
fn along(g: &Graph, id: NodeId) -> Option<Form> {
    let (op, rank) = (g.op_of(id)?, g.ty(result(id))?.rank());
    if let Op::Concat(c) = op {
        return laid(g, id, Concat { axis: place(c.axis, rank)? }, g.operands(id).len());
    }
    if let Op::CumSum(c) = op {
        return laid(g, id, CumSum { axis: place(c.axis, rank)?, ..c.clone() }, 1);
    }
    // with one index an element of the axis, no axis comes or goes
    let Op::Gather(t) = op else { return None };
    let one_index = g.ty(*g.operands(id).get(1)?)?.rank() == 1;
    one_index.then(|| laid(g, id, Gather { axis: place(t.axis, rank)? }, 1)).flatten()
}

fn spread(g: &Graph, id: NodeId) -> Option<Form> {
    let Some(Op::Expand(e)) = g.op_of(id) else { return None };
    laid(g, id, Expand { shape: moved(&e.shape) }, 1)
}

/// A reshape that keeps batch and channels, so that only spatial axes are regrouped.
fn regrouped(g: &Graph, id: NodeId) -> Option<Form> {
    let Some(Op::Reshape(r)) = g.op_of(id) else { return None };
    let from = &g.ty(*g.operands(id).first()?)?.shape;
    if from.len() < 3 || r.shape.len() < 3 || r.shape[..2] != from[..2] {
        return None;
    }
    let op = Reshape { shape: moved(&r.shape) }.into();
    Some(Form { rank: from.len(), op, laid: 1, result: Place::Laid })
}

fn reduced(g: &Graph, id: NodeId) -> Option<Form> {
    let (op, rank) = (g.op_of(id)?, node_ranks(g, id).next()?);
    let axes = |v: &[i64]| v.iter().map(|&a| place(a, rank)).collect::<Option<Vec<i64>>>();
    if let Op::ReduceSum(r) = op {
        let keepdims = r.keepdims;
        return reduction(g, id, ReduceSum { axes: axes(&r.axes)?, keepdims }.into(), &r.axes, keepdims);
    }
    if let Op::ReduceMax(r) = op {
        let keepdims = r.keepdims;
        return reduction(g, id, ReduceMax { axes: axes(&r.axes)?, keepdims }.into(), &r.axes, keepdims);
    }
    if let Op::ReduceMin(r) = op {
        let keepdims = r.keepdims;
        return reduction(g, id, ReduceMin { axes: axes(&r.axes)?, keepdims }.into(), &r.axes, keepdims);
    }
    let Op::ReduceProd(r) = op else { return None };
    let keepdims = r.keepdims;
    reduction(g, id, ReduceProd { axes: axes(&r.axes)?, keepdims }.into(), &r.axes, keepdims)
}

fn reduced_to_index(g: &Graph, id: NodeId) -> Option<Form> {
    let Some(Op::ArgMax(a)) = g.op_of(id) else { return None };
    let axis = place(a.axis, node_ranks(g, id).next()?)?;
    reduction(g, id, ArgMax { axis, ..a.clone() }.into(), &[a.axis], a.keepdims)
}

/// The form of a reduction `op` over axes that were `axes`.
fn reduction(g: &Graph, id: NodeId, op: Op, axes: &[i64], keepdims: bool) -> Option<Form> {
    let (rank, out) = (node_ranks(g, id).next()?, g.ty(result(id))?.rank());
    let last = rank as i64 - 1;
    let spatial = axes.iter().all(|&a| place(a, rank).is_some_and(|a| a != 0 && a != last));
    let stays = keepdims || (spatial && out >= 3);
    let result = if stays { Place::Laid } else { Place::Plain(rest(axes, rank)?) };
    Some(Form { rank, op, laid: 1, result })
}

/// The permutation that puts the axes left by a reduction with channels last in the order they had before.
fn rest(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let gone: Vec<usize> =
        axes.iter().map(|&a| usize::try_from(place(a, rank)?).ok()).collect::<Option<_>>()?;
    let left: Vec<usize> = (0..rank).filter(|a| !gone.contains(a)).collect();
    let want = to_second(rank).into_iter().filter(|a| !gone.contains(a));
    want.map(|a| left.iter().position(|l| *l == a)).collect()
}

/// A map that does not look at where it is.
fn elementwise(g: &Graph, id: NodeId) -> Option<Form> {
    let Class::Map(m) = class(g, id)? else { return None };
    let looks = |n: &ENode| matches!(n, ENode::Dim(d) if d.any_leaf(|a| matches!(a, Atom::Label(_))));
    if m.expr.nodes.iter().any(|n| looks(&n.0)) {
        return None;
    }
    laid(g, id, g.op_of(id)?.clone(), g.operands(id).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_undo_each_other() {
        for rank in 3..7 {
            let (to, back) = (to_last(rank), to_second(rank));
            assert!((0..rank).all(|a| to[back[a]] == a && back[to[a]] == a), "{to:?} {back:?}");
            assert_eq!(to.last(), Some(&1));
        }
    }

    #[test]
    fn axes_left_by_a_reduction_keep_their_order() {
        assert_eq!(rest(&[2, 3], 4), Some(vec![0, 1]));
        assert_eq!(rest(&[0], 4), Some(vec![2, 0, 1]));
        assert_eq!(rest(&[-1], 4), Some(vec![0, 2, 1]));
        assert_eq!(rest(&[1], 4), Some(vec![0, 1, 2]));
        assert_eq!(rest(&[0, 1, 2], 3), Some(vec![]));
    }
}
