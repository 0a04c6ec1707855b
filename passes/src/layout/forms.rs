//! What each node is with channels last: the op with its axes renamed, which operands it reads in that layout, and what
//! becomes of its result. A node without a form is the border of a set.

use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::{
    ArgMax, AvgPool, Concat, Conv, CumSum, Expand, Gather, Lowering, MaxPool, Op, Pad, ReduceMax, ReduceMin,
    ReduceProd, ReduceSum, Reshape, Slice,
};
use tgc_ir::scalar::ENode;
use tgc_ir::types::{Atom, Type};

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
    let rank = g.ty(*g.operands(id).first()?)?.rank();
    let [fact] = &node.results[..] else { return None };
    let out = fact.ty.rank();
    let laid = |op: Op, count: usize| Some(Form { rank: out, op, laid: count, result: Place::Laid });
    let reduced = |op: Op, axes: &[i64], keep: bool| {
        let inner = axes.iter().all(|&a| place(a, rank).is_some_and(|a| a != 0 && a + 1 != rank as i64));
        let result = if keep || (inner && out >= 3) { Place::Laid } else { Place::Plain(rest(axes, rank)?) };
        Some(Form { rank, op, laid: 1, result })
    };
    if rank.max(out) < 3 || !node.regions.is_empty() {
        return None;
    }
    let axes = |v: &[i64]| v.iter().map(|&a| place(a, rank)).collect::<Option<Vec<i64>>>();
    let all = g.operands(id).len();
    match &node.op {
        Op::Conv(c) => second(c.channels_last, laid(Conv { channels_last: true, ..c.clone() }.into(), 1)),
        Op::MaxPool(p) => {
            second(p.channels_last, laid(MaxPool { channels_last: true, ..p.clone() }.into(), 1))
        }
        Op::AvgPool(p) => {
            second(p.channels_last, laid(AvgPool { channels_last: true, ..p.clone() }.into(), 1))
        }
        Op::Pad(p) => {
            laid(Pad { before: moved(&p.before), after: moved(&p.after), value: p.value }.into(), all)
        }
        Op::Slice(s) => {
            let op = Slice { starts: moved(&s.starts), sizes: moved(&s.sizes), steps: moved(&s.steps) };
            laid(op.into(), all)
        }
        Op::Reshape(r) if rank.min(out) >= 3 => {
            // batch and channels stay, so only spatial axes are regrouped
            let kept = r.shape[..2] == g.ty(*g.operands(id).first()?)?.shape[..2];
            let op = Reshape { shape: moved(&r.shape) };
            kept.then(|| Form { rank, op: op.into(), laid: 1, result: Place::Laid })
        }
        Op::Concat(c) => laid(Concat { axis: place(c.axis, out)? }.into(), all),
        Op::Expand(e) => laid(Expand { shape: moved(&e.shape) }.into(), all),
        Op::CumSum(c) => laid(CumSum { axis: place(c.axis, out)?, ..c.clone() }.into(), all),
        Op::Gather(t) if rank == out => laid(Gather { axis: place(t.axis, out)? }.into(), 1),
        Op::ReduceSum(r) => {
            reduced(ReduceSum { axes: axes(&r.axes)?, ..r.clone() }.into(), &r.axes, r.keepdims)
        }
        Op::ReduceMax(r) => {
            reduced(ReduceMax { axes: axes(&r.axes)?, ..r.clone() }.into(), &r.axes, r.keepdims)
        }
        Op::ReduceMin(r) => {
            reduced(ReduceMin { axes: axes(&r.axes)?, ..r.clone() }.into(), &r.axes, r.keepdims)
        }
        Op::ReduceProd(r) => {
            reduced(ReduceProd { axes: axes(&r.axes)?, ..r.clone() }.into(), &r.axes, r.keepdims)
        }
        Op::ArgMax(a) => {
            reduced(ArgMax { axis: place(a.axis, rank)?, ..a.clone() }.into(), &[a.axis], a.keepdims)
        }
        op => is_elementwise(g, id).then(|| laid(op.clone(), all)).flatten(),
    }
}

fn second(last: bool, form: Option<Form>) -> Option<Form> {
    if last { None } else { form }
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
fn is_elementwise(g: &Graph, id: NodeId) -> bool {
    let Some(node) = g.node(id) else { return false };
    let ins: Vec<Type> = g.operands(id).iter().filter_map(|v| g.ty(*v).cloned()).collect();
    let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
    let Ok(Lowering::Class(Class::Map(m))) = node.op.lower(&ins, &outs, &g.symbols) else { return false };
    let mut looks = false;
    for (n, _) in &m.expr.nodes {
        if let ENode::Dim(d) = n {
            d.leaves(&mut |a| looks |= matches!(a, Atom::Label(_)));
        }
    }
    !looks
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
