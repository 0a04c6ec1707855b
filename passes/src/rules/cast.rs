//! Rules about conversions.

use super::{Rewrite, Rule, keep, remake, rules};
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::{Cast, Op};
use tgc_ir::types::DType;

pub(crate) const RULES: &[Rule] = rules![cast_same, cast_cast];

/// `cast(x, type of x) = x`.
fn cast_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Cast(_)) = g.op_of(id) else { return None };
    keep(g, id, *g.operands(id).first()?)
}

/// `cast(cast(x, a), b) = cast(x, b)` where `a` is of the same kind and holds every value of x.
fn cast_cast(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Cast(outer)) = g.op_of(id) else { return None };
    let y = *g.operands(id).first()?;
    let Some(Op::Cast(inner)) = g.op_of(y.node) else { return None };
    let x = *g.operands(y.node).first()?;
    if !holds_all(inner.to, g.ty(x)?.dtype) {
        return None;
    }
    remake(g, id, Cast { to: outer.to }, &[x])
}

/// `wide` represents every value of `narrow`, and converts on by the same rule (integers wrap, floats saturate).
fn holds_all(wide: DType, narrow: DType) -> bool {
    if narrow == DType::Bool {
        return wide.is_int() || wide.is_float();
    }
    if narrow.is_float() && wide.is_float() {
        let halves = [DType::F16, DType::BF16];
        return wide == narrow || (wide.bits() > narrow.bits() && !(halves.contains(&wide)));
    }
    if narrow.is_int() && wide.is_int() {
        let widens = wide.bits() > narrow.bits();
        return wide == narrow || (widens && (wide.is_signed() || narrow.is_unsigned()));
    }
    false
}
