//! Local rewrites: what a rule is, the worklist that applies rules until none fires, and the pass `canonicalise`.
//! The rules themselves are in the theme files; each goes downhill (fewer or cheaper nodes, or constants moved right).

mod arith;
mod cast;
mod gather;
mod logic;
mod regroup;
mod sink;
pub(crate) mod splat;
pub(crate) mod view;
pub(crate) mod weight;

use crate::pass::{Changed, Cx, Editor, Pass};
use std::collections::BTreeSet;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::Op;
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::scalar::Scalar;

/// What a rule gives: a patch that replaces results of the node, or None where it does not apply.
pub(crate) type Rewrite<'g> = Option<Patch<'g>>;

/// A local rewrite rooted at one node.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) apply: for<'g> fn(&'g Graph, NodeId) -> Rewrite<'g>,
}

/// Makes a slice of rules from functions: a rule is called as its function.
macro_rules! rules {
    ($($name:ident),* $(,)?) => {
        &[$($crate::rules::Rule { name: stringify!($name), apply: $name }),*]
    };
}
pub(crate) use rules;

/// Rules of `canonicalise`.
pub(crate) const THEMES: &[&[Rule]] = &[
    arith::RULES,
    cast::RULES,
    logic::RULES,
    view::RULES,
    splat::RULES,
    regroup::RULES,
    sink::RULES,
    gather::RULES,
    weight::RULES,
];

/// `canonicalise`: identities that hold exactly, constants to the right.
pub(crate) struct Canonicalise;

impl Pass for Canonicalise {
    const NAME: &'static str = "canonicalise";
    const SUMMARY: &'static str =
        "removes operations that change nothing, joins views, moves constants right";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &[];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        apply_rules(editor, THEMES)
    }
}

/// Applies rules until none fires: every node once, then what the rewrites touched.
pub(crate) fn apply_rules(editor: &mut Editor<'_>, themes: &[&[Rule]]) -> Result<Changed, Diag> {
    let mut changed = Changed::No;
    let mut todo: BTreeSet<NodeId> = editor.graph().ids().into_iter().collect();
    while let Some(id) = todo.pop_first() {
        let g = editor.graph();
        let Some(node) = g.node(id) else { continue };
        let fired = themes.iter().copied().flatten().find_map(|r| Some(((r.apply)(g, id)?.finish(), r.name)));
        let Some((edit, rule)) = fired else { continue };
        let results = (0..node.results.len()).map(|r| Value { node: id, result: r as u32 });
        let mut touched: BTreeSet<NodeId> = results.flat_map(|v| g.users(v)).map(|u| u.0).collect();
        touched.extend(g.operands(id).iter().map(|v| v.node));
        let Some(made) = editor.apply(edit, rule)? else { return Ok(changed) };
        changed = Changed::Yes;
        touched.extend(made);
        todo.extend(touched);
    }
    Ok(changed)
}

/// First result of a node.
pub(crate) fn result(id: NodeId) -> Value {
    Value { node: id, result: 0 }
}

/// The node's only result read from `x` instead; None when their types differ.
pub(crate) fn keep(g: &Graph, id: NodeId, x: Value) -> Rewrite<'_> {
    if g.ty(result(id)) != g.ty(x) {
        return None;
    }
    let mut p = Patch::new(g, id);
    p.replace(result(id), x);
    Some(p)
}

/// The node's only result made by `op` instead; None when the types would differ or the op does not accept its operands.
pub(crate) fn remake<'g>(g: &'g Graph, id: NodeId, op: impl Into<Op>, operands: &[Value]) -> Rewrite<'g> {
    let mut p = Patch::new(g, id);
    let operands: Vec<PVal> = operands.iter().map(|v| PVal::Old(*v)).collect();
    let new = p.op(op, &operands).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// Operands of a node with exactly two.
pub(crate) fn pair(g: &Graph, id: NodeId) -> Option<(Value, Value)> {
    match g.operands(id)[..] {
        [a, b] => Some((a, b)),
        _ => None,
    }
}

/// The value of all elements of a constant that has one element or is a splat.
pub(crate) fn splat_of(g: &Graph, v: Value) -> Option<Scalar> {
    let Some(Op::Constant(c)) = g.op_of(v.node) else { return None };
    (c.value.numel() == 1).then(|| c.value.get(0))
}
