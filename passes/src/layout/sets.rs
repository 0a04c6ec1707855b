//! Sets of nodes that change layout together: the parts of the graph that are connected through values which all their
//! nodes have in either layout. Nothing is rewritten here.

use super::forms::{Form, Place, form};
use crate::rules::result;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::Op;

/// Nodes to rewrite together.
pub(super) struct Set {
    /// The nodes' forms with channels last.
    pub(super) nodes: BTreeMap<NodeId, Form>,
    /// The nodes so that producers come first.
    pub(super) order: Vec<NodeId>,
}

impl Set {
    /// The first set that pays, nodes in `refused` left alone.
    pub(super) fn next(g: &Graph, refused: &BTreeSet<NodeId>) -> Option<Set> {
        let mut forms: BTreeMap<NodeId, Form> = BTreeMap::new();
        let mut joined = Joined::default();
        let live = live(g);
        let order: Vec<NodeId> = g.topo().into_iter().filter(|id| live.contains(id)).collect();
        for &id in order.iter().filter(|id| !refused.contains(id)) {
            let Some(form) = form(g, id) else { continue };
            let values = changing(g, id, &form);
            for pair in values.windows(2) {
                joined.unite(pair[0], pair[1]);
            }
            if !values.is_empty() {
                forms.insert(id, form);
            }
        }
        let anchor = |id: NodeId, form: &Form| changing(g, id, form).first().copied();
        let first = forms.iter().find(|(id, form)| pays(g, **id) && anchor(**id, form).is_some())?;
        let root = joined.root(anchor(*first.0, first.1)?);
        forms.retain(|id, form| anchor(*id, form).is_some_and(|v| joined.root(v) == root));
        let order = order.into_iter().filter(|id| forms.contains_key(id)).collect();
        Some(Set { nodes: forms, order })
    }
}

/// A convolution with several output channels, channels second: vectors run along them.
fn pays(g: &Graph, id: NodeId) -> bool {
    let channels = g.ty(result(id)).and_then(|t| t.shape.get(1));
    matches!(g.op_of(id), Some(Op::Conv(_))) && channels.is_some_and(|c| !c.is(1))
}

/// Values of a node that change layout with it. Constants belong to no set: each reader takes its own form of them.
fn changing(g: &Graph, id: NodeId, form: &Form) -> Vec<Value> {
    let laid = matches!(form.result, Place::Laid);
    let mut out: Vec<Value> = laid.then_some(result(id)).into_iter().collect();
    for (i, v) in g.operands(id).into_iter().enumerate() {
        let same_rank = g.ty(v).is_some_and(|t| t.rank() == form.rank);
        if form.lays(i) && same_rank && !is_constant(g, v.node) {
            out.push(v);
        }
    }
    out
}

fn is_constant(g: &Graph, id: NodeId) -> bool {
    matches!(g.op_of(id), Some(Op::Constant(_) | Op::ConstDims(_) | Op::Weight(_)))
}

/// Nodes that some output depends on.
fn live(g: &Graph) -> BTreeSet<NodeId> {
    let mut seen = BTreeSet::new();
    let mut todo: Vec<NodeId> = g.outputs().iter().map(|o| o.value.node).collect();
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            todo.extend(g.operands(id).into_iter().map(|v| v.node));
        }
    }
    seen
}

/// Union-find over values.
#[derive(Default)]
struct Joined {
    parent: BTreeMap<Value, Value>,
}

impl Joined {
    fn root(&self, mut v: Value) -> Value {
        while let Some(&p) = self.parent.get(&v) {
            v = p;
        }
        v
    }

    fn unite(&mut self, a: Value, b: Value) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            // the older value leads, so that chains of a deep graph stay flat
            self.parent.insert(a.max(b), a.min(b));
        }
    }
}
