//! The graph of one entry point or region, over petgraph (which only this file sees). Every node has an id that is
//! never reused; operands are ordered; topological order is deterministic by id. Rewriting goes through `patch`.

use crate::diag::{Diag, Loc};
use crate::known;
use crate::ops::{Attr, InferCx, Input, Op};
use crate::types::{Atom, Dim, Fact, Pred, SymTable, Type};
use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableGraph};
use petgraph::visit::EdgeRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Identity of a node within its graph, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

/// One result of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// Producer.
    pub node: NodeId,
    /// Which of its results.
    pub result: u32,
}

/// A node: an op applied to operands (kept as edges), with its results.
#[derive(Clone, Debug)]
pub struct Node {
    /// The op with its attributes.
    pub op: Op,
    /// Regions of region ops (fused, if, loop); empty for others.
    pub regions: Vec<Graph>,
    /// What is known of each result.
    pub results: Vec<Fact>,
    /// Where it comes from.
    pub loc: Loc,
}

/// A condition on dims that must hold at bind, with the places that need it.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// The condition.
    pub pred: Pred,
    /// Why, in words for the user.
    pub why: String,
    /// Who needs it.
    pub at: Loc,
}

/// A named result of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Name in the model.
    pub name: Arc<str>,
    /// Its value.
    pub value: Value,
    /// The state this is the new value of, if any.
    pub state: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    result: u32,
    operand: u32,
}

#[derive(Clone, Debug)]
struct Slot {
    id: NodeId,
    node: Node,
}

/// A graph: closed (it reads only its inputs, constants and weights).
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Name of the entry, or empty for a region.
    pub name: String,
    /// Symbols of the entry. A region carries its entry's table.
    pub symbols: SymTable,
    guards: Vec<Guard>,
    nodes: StableGraph<Slot, Edge>,
    index: BTreeMap<NodeId, NodeIndex>,
    inputs: Vec<NodeId>,
    outputs: Vec<Output>,
    next: u64,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: &str) -> Graph {
        Graph { name: name.to_string(), ..Graph::default() }
    }

    /// An empty region of a graph with these symbols.
    pub fn region(symbols: &SymTable) -> Graph {
        Graph { symbols: symbols.clone(), ..Graph::default() }
    }

    /// Adds an input.
    pub fn input(&mut self, name: &str, ty: Type, loc: Loc) -> Value {
        let op = Op::Input(Input {
            name: name.to_string(),
            dtype: ty.dtype,
            shape: ty.shape.clone(),
            ..Input::default()
        });
        let id = self.insert(Node { op, regions: Vec::new(), results: vec![Fact::from(ty)], loc }, &[]);
        self.inputs.push(id);
        Value { node: id, result: 0 }
    }

    /// Adds an input node with every attribute given (state, default weight).
    pub fn input_op(&mut self, input: Input, loc: Loc) -> Value {
        let ty = Type::new(input.dtype, input.shape.clone());
        let id = self.insert(
            Node { op: Op::Input(input), regions: Vec::new(), results: vec![Fact::from(ty)], loc },
            &[],
        );
        self.inputs.push(id);
        Value { node: id, result: 0 }
    }

    /// Adds a node; types are inferred, unprovable conditions become guards. Values that do not exist are an error.
    pub fn add(&mut self, op: Op, operands: &[Value], regions: Vec<Graph>, loc: Loc) -> Result<NodeId, Diag> {
        let mut facts = Vec::with_capacity(operands.len());
        for v in operands {
            let f = self.fact(*v).ok_or_else(|| {
                Diag::error("E-IR-001", format!("`{}` reads a value that is not in this graph", op.name()))
                    .at(&loc)
            })?;
            facts.push(f.clone());
        }
        let (results, guards) = infer_node(&op, &facts, &regions, &self.symbols).map_err(|d| d.at(&loc))?;
        for (pred, why) in guards {
            self.guard(Guard { pred, why, at: loc.clone() });
        }
        Ok(self.insert(Node { op, regions, results, loc }, operands))
    }

    /// [`Graph::add`] without regions, giving the only (first) result.
    pub fn op(&mut self, op: impl Into<Op>, operands: &[Value], loc: &Loc) -> Result<Value, Diag> {
        let node = self.add(op.into(), operands, Vec::new(), loc.clone())?;
        Ok(Value { node, result: 0 })
    }

    fn insert(&mut self, node: Node, operands: &[Value]) -> NodeId {
        let id = NodeId(self.next);
        self.next += 1;
        let ix = self.nodes.add_node(Slot { id, node });
        self.index.insert(id, ix);
        self.connect(id, operands);
        id
    }

    fn connect(&mut self, id: NodeId, operands: &[Value]) {
        let Some(&ix) = self.index.get(&id) else { return };
        for (i, v) in operands.iter().enumerate() {
            if let Some(&from) = self.index.get(&v.node) {
                self.nodes.add_edge(from, ix, Edge { result: v.result, operand: i as u32 });
            }
        }
    }

    /// Adds a guard unless an equal condition is there or the symbol ranges prove it.
    pub fn guard(&mut self, guard: Guard) {
        let known = self.guards.iter().any(|g| g.pred == guard.pred);
        if !known && guard.pred.decide_in(&self.symbols) != Some(true) {
            self.guards.push(guard);
        }
    }

    /// Conditions checked at bind.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// Guards of this graph and of every region in it, without duplicates.
    pub fn all_guards(&self) -> Vec<Guard> {
        let mut out = self.guards.clone();
        for id in self.ids() {
            for g in self.node(id).iter().flat_map(|n| &n.regions).flat_map(Graph::all_guards) {
                if !out.iter().any(|o| o.pred == g.pred) {
                    out.push(g);
                }
            }
        }
        out
    }

    /// Adds a result.
    pub fn output(&mut self, name: &str, value: Value) {
        self.outputs.push(Output { name: Arc::from(name), value, state: None });
    }

    /// Adds the new value of a state.
    pub fn output_state(&mut self, name: &str, state: &str, value: Value) {
        self.outputs.push(Output { name: Arc::from(name), value, state: Some(Arc::from(state)) });
    }

    /// Input nodes in order.
    pub fn inputs(&self) -> &[NodeId] {
        &self.inputs
    }

    /// Results in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// The node, if it exists.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.index.get(&id).and_then(|&ix| self.nodes.node_weight(ix)).map(|s| &s.node)
    }

    /// The op of a node.
    pub fn op_of(&self, id: NodeId) -> Option<&Op> {
        self.node(id).map(|n| &n.op)
    }

    /// What is known of a value, if it exists.
    pub fn fact(&self, v: Value) -> Option<&Fact> {
        self.node(v.node).and_then(|n| n.results.get(v.result as usize))
    }

    /// Type of a value, if it exists.
    pub fn ty(&self, v: Value) -> Option<&Type> {
        self.fact(v).map(|f| &f.ty)
    }

    /// Operands in order.
    pub fn operands(&self, id: NodeId) -> Vec<Value> {
        let Some(&ix) = self.index.get(&id) else { return Vec::new() };
        let mut v: Vec<(u32, Value)> = self
            .nodes
            .edges_directed(ix, Direction::Incoming)
            .filter_map(|e| {
                Some((e.weight().operand, Value { node: self.id_of(e.source())?, result: e.weight().result }))
            })
            .collect();
        v.sort();
        v.into_iter().map(|x| x.1).collect()
    }

    fn id_of(&self, ix: NodeIndex) -> Option<NodeId> {
        self.nodes.node_weight(ix).map(|s| s.id)
    }

    /// Nodes reading a value, with the operand position, by id.
    pub fn users(&self, v: Value) -> Vec<(NodeId, u32)> {
        let Some(&ix) = self.index.get(&v.node) else { return Vec::new() };
        let mut out: Vec<(NodeId, u32)> = self
            .nodes
            .edges_directed(ix, Direction::Outgoing)
            .filter(|e| e.weight().result == v.result)
            .filter_map(|e| Some((self.id_of(e.target())?, e.weight().operand)))
            .collect();
        out.sort();
        out
    }

    /// True when some output is this value.
    pub fn is_output(&self, v: Value) -> bool {
        self.outputs.iter().any(|o| o.value == v)
    }

    /// All node ids, ascending.
    pub fn ids(&self) -> Vec<NodeId> {
        self.index.keys().copied().collect()
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True without nodes.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Nodes so that producers come before users, smallest id first among those ready. A node whose types mention a
    /// symbol bound by a `bind_dim` node comes after it. Nodes on a cycle are left out.
    pub fn topo(&self) -> Vec<NodeId> {
        let mut binders: BTreeMap<Arc<str>, NodeId> = BTreeMap::new();
        for (&id, &ix) in &self.index {
            if let Some(Op::BindDim(b)) = self.nodes.node_weight(ix).map(|s| &s.node.op) {
                binders.insert(Arc::from(b.symbol.as_str()), id);
            }
        }
        let mut after: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        let mut waiting: BTreeMap<NodeId, usize> = BTreeMap::new();
        for &id in self.index.keys() {
            let mut before: BTreeSet<NodeId> = self.operands(id).into_iter().map(|v| v.node).collect();
            if !binders.is_empty() {
                self.symbols_of(id, &mut |s| {
                    if let Some(&b) = binders.get(s).filter(|b| **b != id) {
                        before.insert(b);
                    }
                });
            }
            waiting.insert(id, before.len());
            for b in before {
                after.entry(b).or_default().insert(id);
            }
        }
        let mut ready: BTreeSet<NodeId> = waiting.iter().filter(|w| *w.1 == 0).map(|w| *w.0).collect();
        let mut order = Vec::with_capacity(self.index.len());
        while let Some(id) = ready.pop_first() {
            order.push(id);
            for &u in after.get(&id).into_iter().flatten() {
                if let Some(w) = waiting.get_mut(&u) {
                    *w -= 1;
                    if *w == 0 {
                        ready.insert(u);
                    }
                }
            }
        }
        order
    }

    /// Symbols in the node's result types, attributes and regions.
    fn symbols_of(&self, id: NodeId, f: &mut dyn FnMut(&Arc<str>)) {
        let Some(node) = self.node(id) else { return };
        let mut dim = |d: &Dim| {
            d.leaves(&mut |a| {
                if let Atom::Sym(s) = a {
                    f(s);
                }
            });
        };
        node.results.iter().flat_map(|r| &r.ty.shape).for_each(&mut dim);
        for (_, a) in node.op.attrs() {
            if let Attr::Dim(d) = &a {
                dim(d);
            } else if let Attr::Dims(v) = &a {
                v.iter().for_each(&mut dim);
            }
        }
        for region in &node.regions {
            region.index.keys().for_each(|&inner| region.symbols_of(inner, f));
        }
    }

    /// Makes every reader of `old`, and every output that is `old`, read `new`.
    pub(crate) fn replace_uses(&mut self, old: Value, new: Value) {
        let (Some(&from), Some(&to)) = (self.index.get(&old.node), self.index.get(&new.node)) else { return };
        let edges: Vec<_> = self
            .nodes
            .edges_directed(from, Direction::Outgoing)
            .filter(|e| e.weight().result == old.result)
            .map(|e| (e.id(), e.target(), e.weight().operand))
            .collect();
        for (e, target, operand) in edges {
            self.nodes.remove_edge(e);
            self.nodes.add_edge(to, target, Edge { result: new.result, operand });
        }
        for o in self.outputs.iter_mut().filter(|o| o.value == old) {
            o.value = new;
        }
    }

    /// Removes those of `start`, and what they read, that nothing reads (inputs stay).
    pub(crate) fn sweep(&mut self, start: Vec<NodeId>) {
        let live: BTreeSet<NodeId> =
            self.outputs.iter().map(|o| o.value.node).chain(self.inputs.iter().copied()).collect();
        let mut todo = start;
        while let Some(id) = todo.pop() {
            let Some(&ix) = self.index.get(&id) else { continue };
            let used = self.nodes.edges_directed(ix, Direction::Outgoing).next().is_some();
            if used || live.contains(&id) || self.binds_used_symbol(id) {
                continue;
            }
            todo.extend(self.operands(id).into_iter().map(|v| v.node));
            self.nodes.remove_node(ix);
            self.index.remove(&id);
        }
    }

    /// Removes nodes that nothing reads yet, newest first, and guards beyond the first `guards`: undoes additions.
    pub(crate) fn undo(&mut self, added: &[NodeId], guards: usize) {
        for id in added.iter().rev() {
            if let Some(ix) = self.index.remove(id) {
                self.nodes.remove_node(ix);
            }
        }
        self.guards.truncate(guards);
    }

    /// False when no reader of `replaced` is needed to compute `from`, so that the readers can read something computed
    /// from `from` instead. True when one is, or when symbols bound on the way order nodes beyond their operands.
    pub(crate) fn may_depend(&self, from: &[Value], replaced: &[Value]) -> bool {
        if self.nodes.node_weights().any(|s| matches!(s.node.op, Op::BindDim(_))) {
            return true;
        }
        let bound = petgraph::visit::NodeIndexable::node_bound(&self.nodes);
        let (mut readers, mut seen) = (vec![false; bound], vec![false; bound]);
        for v in replaced {
            let Some(&ix) = self.index.get(&v.node) else { continue };
            for e in
                self.nodes.edges_directed(ix, Direction::Outgoing).filter(|e| e.weight().result == v.result)
            {
                readers[e.target().index()] = true;
            }
        }
        let mut todo: Vec<NodeIndex> = from.iter().filter_map(|v| self.index.get(&v.node)).copied().collect();
        while let Some(ix) = todo.pop() {
            if readers[ix.index()] {
                return true;
            }
            if !std::mem::replace(&mut seen[ix.index()], true) {
                todo.extend(self.nodes.neighbors_directed(ix, Direction::Incoming));
            }
        }
        false
    }

    fn binds_used_symbol(&self, id: NodeId) -> bool {
        let Some(Op::BindDim(b)) = self.op_of(id) else { return false };
        let mut used = false;
        for other in self.index.keys().filter(|o| **o != id) {
            self.symbols_of(*other, &mut |s| used |= **s == *b.symbol);
        }
        used
    }

    /// Where a node comes from (unknown for none).
    pub fn loc(&self, id: NodeId) -> Loc {
        self.node(id).map(|n| n.loc.clone()).unwrap_or_default()
    }

    /// Makes the known elements of a value wrong, for the verifier's test.
    #[cfg(test)]
    pub(crate) fn break_known(&mut self, v: Value) {
        if let Some(n) = self.index.get(&v.node).and_then(|&ix| self.nodes.node_weight_mut(ix)) {
            n.node.results[v.result as usize].known = Some(crate::types::Known(Vec::new()));
        }
    }
}

/// Result facts of an op, and the conditions that could not be proved, with reasons.
pub(crate) type Inferred = (Vec<Fact>, Vec<(Pred, String)>);

/// Runs an op's type rule and then derives what is known of small results from its class.
pub(crate) fn infer_node(
    op: &Op,
    facts: &[Fact],
    regions: &[Graph],
    symbols: &SymTable,
) -> Result<Inferred, Diag> {
    let mut cx = InferCx::new(op, facts, regions, symbols);
    let types = op.infer(&mut cx)?;
    let guards = cx.take_guards();
    let mut results: Vec<Fact> = types;
    known::propagate(op, facts, &mut results, symbols);
    Ok((results, guards))
}
