//! Rules about conditions and choices.

use super::{Rewrite, Rule, keep, pair, rules, splat_of};
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::Op;
use tgc_ir::types::DType;

pub(crate) const RULES: &[Rule] =
    rules![select_constant, select_same, double_invert, and_or_neutral, and_or_same];

/// `select(true, a, b) = a`, `select(false, a, b) = b`.
fn select_constant(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Select(_)) = g.op_of(id) else { return None };
    let [c, a, b] = g.operands(id)[..] else { return None };
    keep(g, id, if splat_of(g, c)?.is_true() { a } else { b })
}

/// `select(c, a, a) = a`.
fn select_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Select(_)) = g.op_of(id) else { return None };
    let [_, a, b] = g.operands(id)[..] else { return None };
    if a == b { keep(g, id, a) } else { None }
}

/// `not(not(x)) = x`.
fn double_invert(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Not(_)) = g.op_of(id) else { return None };
    let y = *g.operands(id).first()?;
    let Some(Op::Not(_)) = g.op_of(y.node) else { return None };
    keep(g, id, *g.operands(y.node).first()?)
}

/// `x and true = x or false = x` for bools.
fn and_or_neutral(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let op = g.op_of(id).filter(|op| matches!(op, Op::And(_) | Op::Or(_)))?;
    let neutral = matches!(op, Op::And(_));
    let (x, c) = pair(g, id)?;
    let c = splat_of(g, c)?;
    if c.dtype == DType::Bool && c.is_true() == neutral { keep(g, id, x) } else { None }
}

/// `x and x = x or x = x`.
fn and_or_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::And(_) | Op::Or(_)) = g.op_of(id) else { return None };
    let (a, b) = pair(g, id)?;
    if a == b { keep(g, id, a) } else { None }
}
