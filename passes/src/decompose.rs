//! `decompose`: composite ops become their definition in core ops, until none is left.

use crate::pass::{Changed, Cx, Editor, Pass};
use std::collections::BTreeSet;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::Lowering;
use tgc_ir::patch::{Edit, PVal, Patch};
use tgc_ir::types::Type;

pub(crate) struct Decompose;

impl Pass for Decompose {
    const NAME: &'static str = "decompose";
    const SUMMARY: &'static str = "replaces composite ops by their definition in core ops";
    const REQUIRED: bool = true;
    const AFTER: &'static [&'static str] = &[];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = Changed::No;
        let mut todo: BTreeSet<NodeId> = editor.graph().ids().into_iter().collect();
        while let Some(id) = todo.pop_first() {
            let g = editor.graph();
            let Some(definition) = definition(g, id)? else { continue };
            let rule = format!("decompose_{}", g.op_of(id).map_or("", |op| op.name()));
            let edit = inline(g, id, &definition)?;
            let Some(made) = editor.apply(edit, &rule)? else { return Ok(changed) };
            changed = Changed::Yes;
            todo.extend(made);
        }
        Ok(changed)
    }
}

/// The definition of a composite op; None for others. Templates have no code of their own yet: their definition stands
/// for them.
fn definition(g: &Graph, id: NodeId) -> Result<Option<Graph>, Diag> {
    let Some(node) = g.node(id) else { return Ok(None) };
    let ins: Vec<Type> = g.operands(id).iter().filter_map(|v| g.ty(*v).cloned()).collect();
    let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
    match node.op.lower(&ins, &outs, &g.symbols).map_err(|d| d.at(&node.loc))? {
        Lowering::Decompose(d) | Lowering::Template(_, d) => Ok(Some(d)),
        Lowering::Class(_) | Lowering::Structure => Ok(None),
    }
}

fn inline(g: &Graph, id: NodeId, definition: &Graph) -> Result<Edit, Diag> {
    let operands: Vec<PVal> = g.operands(id).into_iter().map(PVal::Old).collect();
    let mut p = Patch::new(g, id);
    let results = p.inline(definition, &operands).map_err(|d| d.at(&g.loc(id)))?;
    for (r, new) in results.into_iter().enumerate() {
        p.replace(Value { node: id, result: r as u32 }, new);
    }
    Ok(p.finish())
}
