//! `dce`: removes nodes that no output depends on. Inputs stay: they are the signature.

use crate::pass::{Changed, Cx, Editor, Pass};
use std::collections::BTreeSet;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::patch::Patch;

pub(crate) struct Dce;

impl Pass for Dce {
    const NAME: &'static str = "dce";
    const SUMMARY: &'static str = "removes nodes that no output depends on";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &[];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        remove_unread(editor)
    }
}

pub(crate) fn remove_unread(editor: &mut Editor<'_>) -> Result<Changed, Diag> {
    let Some(dead) = first_unread(editor.graph()) else { return Ok(Changed::No) };
    // Applying any patch removes what nothing reads; this one does nothing else.
    let edit = Patch::new(editor.graph(), dead).finish();
    Ok(Changed::from(editor.apply(edit, "dead_node")?.is_some()))
}

/// A node that nothing reads, if there is one.
fn first_unread(g: &Graph) -> Option<NodeId> {
    let mut read: BTreeSet<NodeId> = g.outputs().iter().map(|o| o.value.node).collect();
    read.extend(g.inputs());
    for id in g.ids() {
        read.extend(g.operands(id).iter().map(|v| v.node));
    }
    let before =
        |id: &NodeId| !read.contains(id) && !matches!(g.op_of(*id), Some(tgc_ir::ops::Op::BindDim(_)));
    g.ids().into_iter().find(before)
}
