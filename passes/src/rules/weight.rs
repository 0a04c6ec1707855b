//! Rules that keep weights as narrow as they are stored: what is computed from a weight alone is computed where, and as
//! far as, it is read.

use super::splat::class;
use super::{Rewrite, Rule, pair, result, rules, splat_of};
use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Constant, Gather, Op};
use tgc_ir::patch::{PVal, Patch};

pub(crate) const RULES: &[Rule] = rules![gather_of_map];

/// Most nodes between a value and the weights it is made from.
const DEPTH: usize = 8;

/// `gather(f(w, ..), i) = f(gather(w, i), ..)` along axis 0 for an elementwise f of weights: only the rows that are read
/// are computed.
fn gather_of_map(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Gather(gather)) = g.op_of(id) else { return None };
    let (data, at) = pair(g, id)?;
    let shape = &g.ty(data)?.shape;
    let rank = shape.len() as i64;
    if !matches!(gather.axis, 0) && gather.axis != -rank {
        return None;
    }
    let node = g.node(data.node)?;
    if node.results.len() != 1
        || !from_weights(g, data, DEPTH)
        || !matches!(class(g, data.node)?, Class::Map(_))
    {
        return None;
    }
    let mut p = Patch::new(g, id);
    let mut args = Vec::new();
    let mut checked = false;
    for v in g.operands(data.node) {
        let t = g.ty(v)?;
        if let Some(c) = splat_of(g, v) {
            args.push(p.op(Constant::scalar(c), &[]).ok()?);
        } else if t.rank() == shape.len() && t.shape.first() == shape.first() {
            checked = true;
            args.push(p.op(Gather { axis: 0 }, &[PVal::Old(v), PVal::Old(at)]).ok()?);
        } else if t.rank() < shape.len() || t.shape.first().is_some_and(|d| d.is(1)) {
            args.push(PVal::Old(v));
        } else {
            return None;
        }
    }
    // An index out of range must stay an error.
    if !checked {
        return None;
    }
    let new = p.op(node.op.clone(), &args).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// A weight or constant, or elementwise work and rearrangements on such.
pub(crate) fn from_weights(g: &Graph, v: Value, depth: usize) -> bool {
    match g.op_of(v.node) {
        Some(Op::Weight(_) | Op::Constant(_)) => true,
        Some(_) if depth > 0 && matches!(class(g, v.node), Some(Class::Map(_) | Class::View(_))) => {
            let operands = g.operands(v.node);
            !operands.is_empty() && operands.iter().all(|x| from_weights(g, *x, depth - 1))
        }
        _ => false,
    }
}

/// A value made from weights alone whose elements take more room than those of the weights they are made from.
pub(crate) fn widens(g: &Graph, v: Value) -> bool {
    let Some(t) = g.ty(v) else { return false };
    if !from_weights(g, v, DEPTH) || matches!(g.op_of(v.node), Some(Op::Weight(_) | Op::Constant(_))) {
        return false;
    }
    let (mut todo, mut widest) = (vec![v], 0);
    while let Some(x) = todo.pop() {
        let Some(Op::Weight(w)) = g.op_of(x.node) else {
            todo.extend(g.operands(x.node));
            continue;
        };
        if w.shape.iter().cloned().product::<tgc_ir::types::Dim>() == t.numel() {
            widest = widest.max(w.dtype.bits());
        }
    }
    widest > 0 && widest < t.dtype.bits()
}
