//! Rules about constants whose elements are all alike: what is computed from them elementwise, or viewed, is alike too.

use super::{Rewrite, Rule, result, rules, splat_of};
use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::{Constant, Lowering, Op};
use tgc_ir::patch::Patch;
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Type;

pub(crate) const RULES: &[Rule] = rules![splat_view, splat_map];

/// `view(splat c) = splat c` for views that read the operand everywhere.
fn splat_view(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let [x] = g.operands(id)[..] else { return None };
    let c = splat_of(g, x)?;
    let Class::View(v) = class(g, id)? else { return None };
    if v.fill.is_some_and(|f| f != c) {
        return None;
    }
    splat(g, id, c)
}

/// `f(splat a, splat b, ..) = splat f(a, b, ..)` for elementwise f.
fn splat_map(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let operands = g.operands(id);
    let args: Vec<Scalar> = operands.iter().map(|v| splat_of(g, *v)).collect::<Option<_>>()?;
    if args.is_empty() || g.node(id)?.results.len() != 1 {
        return None;
    }
    let Class::Map(m) = class(g, id)? else { return None };
    // Storage-only types have no values to compute with.
    if m.expr.nodes.iter().any(|n| n.1.is_storage_only()) {
        return None;
    }
    let zero = Scalar::bool(false);
    let arg = |i: u32| args.get(i as usize).copied().unwrap_or(zero);
    // An expression that mentions a label or a symbol has no single value: its evaluation gives None.
    let value = *m.expr.eval(&arg, &|_| None)?.first()?;
    splat(g, id, value)
}

/// The class of a core op; None for others.
pub(crate) fn class(g: &Graph, id: NodeId) -> Option<Class> {
    let node = g.node(id)?;
    let ins: Vec<Type> = g.operands(id).iter().map(|v| g.ty(*v).cloned()).collect::<Option<_>>()?;
    let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
    match node.op.lower(&ins, &outs, &g.symbols) {
        Ok(Lowering::Class(c)) => Some(c),
        _ => None,
    }
}

/// The node's result as a constant of one value.
fn splat(g: &Graph, id: NodeId, value: Scalar) -> Rewrite<'_> {
    let mut p = Patch::new(g, id);
    let new = p.op(splat_constant(g.ty(result(id))?, value), &[]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// A constant of type `ty` with every element `value`.
pub(crate) fn splat_constant(ty: &Type, value: Scalar) -> Op {
    let mut c = Constant::scalar(value);
    if ty.rank() > 0 {
        c.shape = Some(ty.shape.clone());
    }
    c.into()
}
