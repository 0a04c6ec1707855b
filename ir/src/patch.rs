//! Patches: the only way passes edit a graph. A patch describes new nodes and which values they replace; applying it
//! checks that types stay the same and that no cycle appears, and records the rule's name on the nodes it made.

use crate::diag::{Diag, Loc};
use crate::graph::{Graph, NodeId, Value, infer_node};
use crate::ops::Op;
use crate::types::{Fact, Type};
use std::sync::Arc;

/// A value in a patch: one of the graph's, or a result of a node the patch adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PVal {
    /// Exists in the graph.
    Old(Value),
    /// Result of the patch's node number `.0`.
    New(usize, u32),
}

impl From<Value> for PVal {
    fn from(v: Value) -> PVal {
        PVal::Old(v)
    }
}

struct NewNode {
    op: Op,
    operands: Vec<PVal>,
    regions: Vec<Graph>,
    results: Vec<Fact>,
    loc: Loc,
}

/// A described edit.
pub struct Patch<'g> {
    graph: &'g Graph,
    /// Origin of the nodes added from now on.
    pub loc: Loc,
    nodes: Vec<NewNode>,
    replace: Vec<(Value, PVal)>,
}

/// A patch cut loose from the graph it was made for, ready to apply to it.
pub struct Edit {
    loc: Loc,
    nodes: Vec<NewNode>,
    replace: Vec<(Value, PVal)>,
}

impl<'g> Patch<'g> {
    /// An empty patch whose nodes come from where `origin` comes from.
    pub fn new(graph: &'g Graph, origin: NodeId) -> Patch<'g> {
        Patch { graph, loc: graph.loc(origin), nodes: Vec::new(), replace: Vec::new() }
    }

    /// What is known of a value.
    pub fn fact(&self, v: PVal) -> Option<&Fact> {
        match v {
            PVal::Old(v) => self.graph.fact(v),
            PVal::New(n, r) => self.nodes.get(n).and_then(|n| n.results.get(r as usize)),
        }
    }

    /// Type of a value.
    pub fn ty(&self, v: impl Into<PVal>) -> Option<&Type> {
        self.fact(v.into()).map(|f| &f.ty)
    }

    /// Adds a node and gives its results.
    pub fn node(
        &mut self,
        op: impl Into<Op>,
        operands: &[PVal],
        regions: Vec<Graph>,
    ) -> Result<Vec<PVal>, Diag> {
        let op = op.into();
        let missing =
            || Diag::error("E-IR-001", format!("patch: `{}` reads a value that does not exist", op.name()));
        let facts: Vec<Fact> =
            operands.iter().map(|&v| self.fact(v).cloned().ok_or_else(missing)).collect::<Result<_, _>>()?;
        let (results, _) = infer_node(&op, &facts, &regions, &self.graph.symbols)?;
        let n = self.nodes.len();
        let out = (0..results.len()).map(|r| PVal::New(n, r as u32)).collect();
        self.nodes.push(NewNode { op, operands: operands.to_vec(), regions, results, loc: self.loc.clone() });
        Ok(out)
    }

    /// Adds a node of one result and no region.
    pub fn op(&mut self, op: impl Into<Op>, operands: &[PVal]) -> Result<PVal, Diag> {
        Ok(self.node(op, operands, Vec::new())?[0])
    }

    /// Inlines a region: its nodes with its inputs replaced by `args`; gives its outputs.
    pub fn inline(&mut self, region: &Graph, args: &[PVal]) -> Result<Vec<PVal>, Diag> {
        let mut at: std::collections::BTreeMap<Value, PVal> = std::collections::BTreeMap::new();
        for (&i, &a) in region.inputs().iter().zip(args) {
            at.insert(Value { node: i, result: 0 }, a);
        }
        let missing = || Diag::error("E-IR-001", "patch: the region reads a value that does not exist");
        for id in region.topo() {
            if region.inputs().contains(&id) {
                continue;
            }
            let Some(node) = region.node(id) else { continue };
            let ins: Vec<PVal> = region
                .operands(id)
                .iter()
                .map(|v| at.get(v).copied().ok_or_else(missing))
                .collect::<Result<_, _>>()?;
            for (r, v) in self.node(node.op.clone(), &ins, node.regions.clone())?.into_iter().enumerate() {
                at.insert(Value { node: id, result: r as u32 }, v);
            }
        }
        region.outputs().iter().map(|o| at.get(&o.value).copied().ok_or_else(missing)).collect()
    }

    /// From now on readers of `old` read `new`.
    pub fn replace(&mut self, old: Value, new: impl Into<PVal>) {
        self.replace.push((old, new.into()));
    }

    /// Ends the description.
    pub fn finish(self) -> Edit {
        Edit { loc: self.loc, nodes: self.nodes, replace: self.replace }
    }
}

impl Graph {
    /// Applies an edit made for this graph by rule `rule`: all of it or, on an error, nothing. Replaced nodes that
    /// nothing reads any more are removed, with what only they read; an edit that replaces nothing removes every unread
    /// node. Gives the nodes added that are still there.
    pub fn apply(&mut self, edit: Edit, rule: &str) -> Result<Vec<NodeId>, Diag> {
        let fault = |m: String| Diag::error("E-IR-020", format!("rule `{rule}`: {m}")).at(&edit.loc);
        for (old, new) in &edit.replace {
            let have = self.ty(*old).ok_or_else(|| fault("replaces a value that does not exist".into()))?;
            let to = match new {
                PVal::Old(v) => self.ty(*v),
                PVal::New(n, r) => edit.nodes.get(*n).and_then(|n| n.results.get(*r as usize)).map(|f| &f.ty),
            };
            if to != Some(have) {
                let to = to.map_or("nothing".to_string(), |t| t.to_string());
                return Err(fault(format!("changes the type of a value from {have} to {to}")));
            }
        }
        if !self.may_cycle(&edit) {
            return self.apply_unchecked(edit, rule);
        }
        let backup = self.clone();
        let loc = edit.loc.clone();
        let mut result = self.apply_unchecked(edit, rule);
        if self.topo().len() != self.len() {
            result = Err(Diag::error("E-IR-021", format!("rule `{rule}` makes a cycle")).at(&loc));
        }
        if result.is_err() {
            *self = backup;
        }
        result
    }

    /// False when the edit certainly makes no cycle: what its nodes read does not depend on what will read them.
    fn may_cycle(&self, edit: &Edit) -> bool {
        let old = |v: &PVal| if let PVal::Old(v) = v { Some(*v) } else { None };
        let read = edit.nodes.iter().flat_map(|n| &n.operands).chain(edit.replace.iter().map(|r| &r.1));
        let read: Vec<Value> = read.filter_map(old).collect();
        let replaced: Vec<Value> = edit.replace.iter().map(|r| r.0).collect();
        read.iter().any(|v| replaced.contains(v)) || self.may_depend(&read, &replaced)
    }

    fn apply_unchecked(&mut self, edit: Edit, rule: &str) -> Result<Vec<NodeId>, Diag> {
        let mut made: Vec<NodeId> = Vec::new();
        let at = |made: &[NodeId], v: PVal| match v {
            PVal::Old(v) => v,
            PVal::New(n, r) => Value { node: made[n], result: r },
        };
        let guards = self.guards().len();
        for n in edit.nodes {
            let operands: Vec<Value> = n.operands.iter().map(|&v| at(&made, v)).collect();
            let mut loc = n.loc;
            if loc.rules.last().is_none_or(|r| **r != *rule) {
                loc.rules.push(Arc::from(rule));
            }
            match self.add(n.op, &operands, n.regions, loc) {
                Ok(id) => made.push(id),
                Err(e) => {
                    self.undo(&made, guards);
                    return Err(e);
                }
            }
        }
        // An edit that replaces nothing is a request to remove all that is unread.
        let mut unread = if edit.replace.is_empty() { self.ids() } else { made.clone() };
        for (old, new) in edit.replace {
            self.replace_uses(old, at(&made, new));
            unread.push(old.node);
        }
        self.sweep(unread);
        Ok(made.into_iter().filter(|m| self.node(*m).is_some()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{parse_graph, print_graph};

    fn graph() -> (Graph, [Value; 3]) {
        let text = "graph @f(%x: f32[n]) -> f32[n] { %a = neg %x : f32[n] %b = exp %a : f32[n] return %b }";
        let g = parse_graph(text).unwrap();
        let v: Vec<Value> = g.topo().into_iter().map(|node| Value { node, result: 0 }).collect();
        (g, [v[0], v[1], v[2]])
    }

    #[test]
    fn a_patch_that_makes_a_cycle_changes_nothing() {
        let (mut g, [_, a, b]) = graph();
        let before = print_graph(&g);
        let mut p = Patch::new(&g, a.node);
        let c = p.op(crate::ops::Abs {}, &[b.into()]).unwrap();
        p.replace(a, c);
        let edit = p.finish();
        assert_eq!(g.apply(edit, "r").unwrap_err().code, "E-IR-021");
        assert_eq!(print_graph(&g), before);
        let mut p = Patch::new(&g, a.node);
        p.replace(a, b);
        let edit = p.finish();
        assert_eq!(g.apply(edit, "r").unwrap_err().code, "E-IR-021");
        assert_eq!(print_graph(&g), before);
    }

    #[test]
    fn replaced_nodes_and_what_only_they_read_are_removed() {
        let (mut g, [x, a, b]) = graph();
        let mut p = Patch::new(&g, b.node);
        let c = p.op(crate::ops::Abs {}, &[x.into()]).unwrap();
        p.replace(b, c);
        let edit = p.finish();
        assert_eq!(g.apply(edit, "r").unwrap().len(), 1);
        assert!(g.node(a.node).is_none() && g.node(b.node).is_none());
        assert_eq!(g.len(), 2);
    }

    #[test]
    fn a_patch_that_changes_a_type_is_refused() {
        let (mut g, [x, a, _]) = graph();
        let mut p = Patch::new(&g, a.node);
        let c = p.op(crate::ops::Cast { to: crate::types::DType::F64 }, &[x.into()]).unwrap();
        p.replace(a, c);
        let edit = p.finish();
        assert_eq!(g.apply(edit, "r").unwrap_err().code, "E-IR-020");
    }
}
