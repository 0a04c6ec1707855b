//! Builds the region of a group: its nodes, copies of what is computed in place, and the values that cross its border.
//! Nothing is decided here.

use super::plan::{Plan, users, values};
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::Op;

/// A group cut out of its graph.
pub(crate) struct Cut {
    pub(crate) region: Graph,
    /// What the region's inputs read, in order.
    pub(crate) operands: Vec<Value>,
    /// What the region's outputs replace, in order.
    pub(crate) outputs: Vec<Value>,
    /// The first node, whose place the region takes.
    pub(crate) origin: NodeId,
    /// Where the group's nodes are in the region.
    pub(crate) members: BTreeMap<NodeId, NodeId>,
    /// Nodes of the region that compute.
    pub(crate) computed: usize,
    /// Which inputs of the region read weights or constants.
    pub(crate) weights: Vec<bool>,
}

struct Builder<'a> {
    g: &'a Graph,
    plan: &'a Plan,
    region: Graph,
    at: BTreeMap<Value, Value>,
    operands: Vec<Value>,
    computed: usize,
}

impl Cut {
    /// The region of `members`. None when nothing outside reads the group, or a type would change.
    pub(crate) fn new(g: &Graph, members: &BTreeSet<NodeId>, plan: &Plan) -> Result<Option<Cut>, Diag> {
        let order = plan.sorted(members);
        let Some(&origin) = order.first() else { return Ok(None) };
        let region = Graph::region(&g.symbols);
        let mut b = Builder { g, plan, region, at: BTreeMap::new(), operands: Vec::new(), computed: 0 };
        let mut places = BTreeMap::new();
        for &id in &order {
            let Some(place) = b.copy(id)? else { return Ok(None) };
            places.insert(id, place);
        }
        let outputs: Vec<Value> = order
            .iter()
            .flat_map(|&id| values(g, id))
            .filter(|v| read_outside(g, *v, members, plan))
            .collect();
        for (i, v) in outputs.iter().enumerate() {
            let Some(&inner) = b.at.get(v) else { return Ok(None) };
            b.region.output(&format!("y{i}"), inner);
        }
        if outputs.is_empty() {
            return Ok(None);
        }
        let (region, operands, computed) = (b.region, b.operands, b.computed);
        let weight = |v: &Value| matches!(g.op_of(v.node), Some(Op::Weight(_) | Op::Constant(_)));
        let weights = operands.iter().map(weight).collect();
        Ok(Some(Cut { region, operands, outputs, origin, members: places, computed, weights }))
    }
}

impl Builder<'_> {
    /// Copies a node into the region; None when its types would differ there.
    fn copy(&mut self, id: NodeId) -> Result<Option<NodeId>, Diag> {
        let Some(node) = self.g.node(id) else { return Ok(None) };
        let mut ins = Vec::new();
        for v in self.g.operands(id) {
            let Some(v) = self.read(v)? else { return Ok(None) };
            ins.push(v);
        }
        let place = self.region.add(node.op.clone(), &ins, node.regions.clone(), node.loc.clone())?;
        self.computed += usize::from(self.plan.computes(id));
        for v in values(self.g, id) {
            let inner = Value { node: place, result: v.result };
            if self.region.ty(inner) != self.g.ty(v) {
                return Ok(None);
            }
            self.at.insert(v, inner);
        }
        Ok(Some(place))
    }

    /// The value inside the region: of a member, a copy, or an input.
    fn read(&mut self, v: Value) -> Result<Option<Value>, Diag> {
        if let Some(&inner) = self.at.get(&v) {
            return Ok(Some(inner));
        }
        if self.plan.inline(v.node) || self.plan.is_free(self.g, v.node) {
            return Ok(self.copy(v.node)?.map(|_| self.at.get(&v).copied().unwrap_or(v)));
        }
        let Some(ty) = self.g.ty(v) else { return Ok(None) };
        let name = format!("x{}", self.operands.len());
        let inner = self.region.input(&name, ty.clone(), self.g.loc(v.node));
        self.operands.push(v);
        self.at.insert(v, inner);
        Ok(Some(inner))
    }
}

/// Something outside the group needs the value stored: an output, a structure node, or another kernel, perhaps through
/// nodes it computes in place.
fn read_outside(g: &Graph, v: Value, members: &BTreeSet<NodeId>, plan: &Plan) -> bool {
    if g.is_output(v) {
        return true;
    }
    let mut todo: Vec<NodeId> = g.users(v).into_iter().map(|u| u.0).collect();
    let mut seen = BTreeSet::new();
    while let Some(u) = todo.pop() {
        if members.contains(&u) || !seen.insert(u) {
            continue;
        }
        if !plan.inline(u) {
            return true;
        }
        todo.extend(users(g, u));
    }
    false
}
