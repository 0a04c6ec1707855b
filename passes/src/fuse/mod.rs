//! Fusion: which nodes become one kernel. `fuse` groups nodes greedily in topological order and leaves each group as a
//! `fused` region; `outline` (required) puts every compute node that is left into a region of its own, so that code
//! generation sees regions and structure only. Whether a region *is* one kernel is `tgc_ir::tiling`'s decision.
//!
//! What goes together is written in `group`, what is computed where it is read in `plan`, how a region is built in
//! `region`.

mod chain;
mod group;
mod plan;
mod region;

use crate::pass::{Changed, Cx, Editor, Pass};
use group::Groups;
use plan::Plan;
use region::Cut;
use std::collections::BTreeSet;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::{Constant, Expand, Fused, Op};
use tgc_ir::patch::{Edit, PVal, Patch};

pub(crate) struct Fuse;

impl Pass for Fuse {
    const NAME: &'static str = "fuse";
    const SUMMARY: &'static str = "groups nodes that become one kernel";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &["decompose"];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        let plan = Plan::new(editor.graph())?;
        let groups = Groups::grow(editor.graph(), &plan)?;
        let mut changed = Changed::No;
        for members in groups {
            let g = editor.graph();
            let Some(cut) = Cut::new(g, &members, &plan)? else { continue };
            // A lone node without anything computed in place is left to `outline`.
            if cut.computed < 2 || !group::accepts(&cut, &plan)? {
                continue;
            }
            let edit = replace(g, cut)?;
            if editor.apply(edit, plan.rule(&members))?.is_none() {
                return Ok(changed);
            }
            changed = Changed::Yes;
        }
        Ok(changed)
    }
}

pub(crate) struct Outline;

impl Pass for Outline {
    const NAME: &'static str = "outline";
    const SUMMARY: &'static str = "puts every node that computes into a kernel of its own";
    const REQUIRED: bool = true;
    const AFTER: &'static [&'static str] = &["decompose", "fuse"];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = crate::dce::remove_unread(editor)?;
        let plan = Plan::without_inlining(editor.graph())?;
        for id in editor.graph().topo().into_iter().filter(|id| plan.computes(*id)) {
            let g = editor.graph();
            let Some(cut) = Cut::new(g, &BTreeSet::from([id]), &plan)? else { continue };
            let edit = replace(g, cut)?;
            changed = changed.or(Changed::from(editor.apply(edit, "outline")?.is_some()));
        }
        for id in editor.graph().ids() {
            if let Some(edit) = outline_constant(editor.graph(), id)? {
                changed = changed.or(Changed::from(editor.apply(edit, "outline_constant")?.is_some()));
            }
        }
        Ok(changed)
    }
}

/// A patch that puts the cut region in place of its nodes.
fn replace(g: &Graph, cut: Cut) -> Result<Edit, Diag> {
    let mut p = Patch::new(g, cut.origin);
    let operands: Vec<PVal> = cut.operands.into_iter().map(PVal::Old).collect();
    let results = p.node(Fused {}, &operands, vec![cut.region])?;
    for (old, new) in cut.outputs.into_iter().zip(results) {
        p.replace(old, new);
    }
    Ok(p.finish())
}

/// The kernel of a constant that something else than kernels reads (they hold copies) and whose elements or shape depend
/// on sizes or are not written out: of `const_dims` itself, or of a rank-0 constant expanded to a shape.
fn outline_constant(g: &Graph, id: NodeId) -> Result<Option<Edit>, Diag> {
    let Some(node) = g.node(id) else { return Ok(None) };
    let v = crate::rules::result(id);
    let mut region = Graph::region(&g.symbols);
    let value = if let Op::Constant(c) = &node.op {
        let Some(shape) = c.shape.clone() else { return Ok(None) };
        let scalar = region.op(Constant { value: c.value.clone(), shape: None }, &[], &node.loc)?;
        region.op(Expand { shape }, &[scalar], &node.loc)?
    } else if let Op::ConstDims(_) = &node.op {
        region.op(node.op.clone(), &[], &node.loc)?
    } else {
        return Ok(None);
    };
    region.output("y0", value);
    let mut p = Patch::new(g, id);
    let new = p.node(Fused {}, &[], vec![region])?;
    p.replace(v, new[0]);
    Ok(Some(p.finish()))
}
