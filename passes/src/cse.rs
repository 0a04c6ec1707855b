//! `cse`: nodes with the same op, attributes and operands become one. Region ops and symbol binders are left alone.

use crate::pass::{Changed, Cx, Editor, Pass};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Attr, Op};
use tgc_ir::patch::{Edit, Patch};

pub(crate) struct Cse;

/// What equal nodes agree in. The hash only narrows the search; ops are compared.
type Key = (&'static str, Vec<Value>, u64);

impl Pass for Cse {
    const NAME: &'static str = "cse";
    const SUMMARY: &'static str = "computes equal things once";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &[];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = Changed::No;
        let mut seen: BTreeMap<Key, Vec<NodeId>> = BTreeMap::new();
        for id in editor.graph().topo() {
            let g = editor.graph();
            let Some(key) = key(g, id) else { continue };
            let twin = seen.get(&key).into_iter().flatten().copied().find(|t| equal(g, *t, id));
            match twin {
                None => seen.entry(key).or_default().push(id),
                Some(twin) => {
                    let edit = merge(g, id, twin);
                    if editor.apply(edit, "same_node")?.is_none() {
                        return Ok(changed);
                    }
                    changed = Changed::Yes;
                }
            }
        }
        Ok(changed)
    }
}

fn key(g: &Graph, id: NodeId) -> Option<Key> {
    let node = g.node(id)?;
    if !node.regions.is_empty() || matches!(node.op, Op::Input(_) | Op::BindDim(_)) {
        return None;
    }
    let mut hash = DefaultHasher::new();
    for (name, attr) in node.op.attrs() {
        name.hash(&mut hash);
        match attr {
            Attr::Tensor(t) => (t.dtype, &t.shape, t.data.bytes()).hash(&mut hash),
            other => format!("{other:?}").hash(&mut hash),
        }
    }
    Some((node.op.name(), g.operands(id), hash.finish()))
}

fn equal(g: &Graph, a: NodeId, b: NodeId) -> bool {
    let (Some(a), Some(b)) = (g.node(a), g.node(b)) else { return false };
    let types = |n: &tgc_ir::graph::Node| n.results.iter().map(|f| f.ty.clone()).collect::<Vec<_>>();
    a.op == b.op && types(a) == types(b)
}

fn merge(g: &Graph, id: NodeId, twin: NodeId) -> Edit {
    let mut p = Patch::new(g, id);
    for r in 0..g.node(id).map_or(0, |n| n.results.len()) as u32 {
        p.replace(Value { node: id, result: r }, Value { node: twin, result: r });
    }
    p.finish()
}
