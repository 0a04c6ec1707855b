//! Imports lists of nodes into a graph: names, order, branches and functions. What an operator means is in `composite`;
//! what a whole model needs besides its nodes is in `import`.

use super::attrs::{Arguments, Attrs};
use super::check::{Report, Res, Stop};
use super::node::NodeCx;
use super::registry::{self, Found};
use super::weights::Reader;
use crate::limits::{INLINE_ELEMENTS, MAX_DEPTH, MAX_NAME, MAX_NODES};
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, Value};
use tgc_ir::ops::{Constant, Weight};
use tgc_ir::tensor::Tensor;
use tgc_proto::{FunctionProto, GraphProto, NodeProto, OperatorSetIdProto};

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slot {
    /// A value of the graph at hand.
    Val(Value),
    /// Something whose import failed; users of it are skipped silently.
    Poison,
    /// An optional argument that was left out.
    Absent,
}

/// State of the whole import.
pub(crate) struct Importer<'m> {
    pub(crate) report: Report,
    pub(crate) reader: Reader,
    pub(crate) weights: IndexMap<String, Tensor>,
    pub(crate) functions: BTreeMap<(&'m str, &'m str, &'m str), &'m FunctionProto>,
    nodes: usize,
}

/// Names visible to a list of nodes.
pub(crate) struct Scope<'s, 'm> {
    names: BTreeMap<&'m str, Slot>,
    outer: Option<&'s Scope<'s, 'm>>,
    /// Arguments of the enclosing function.
    pub(crate) args: Arguments<'m>,
    /// Opset of the default domain, None when not declared.
    pub(crate) opset: Option<i64>,
    /// Nesting of branches and functions.
    pub(crate) depth: usize,
    /// Appended to places: which function or branch this is, and where that one is.
    pub(crate) within: String,
    /// Inside a region that stays one (no new symbols there).
    pub(crate) region: bool,
}

impl<'s, 'm> Scope<'s, 'm> {
    /// The model's own scope.
    pub(crate) fn top(opset: Option<i64>) -> Scope<'s, 'm> {
        Scope {
            names: BTreeMap::new(),
            outer: None,
            args: BTreeMap::new(),
            opset,
            depth: 0,
            within: String::new(),
            region: false,
        }
    }

    /// A scope inside this one that sees its names.
    pub(crate) fn inner<'t>(&'t self, within: &str) -> Scope<'t, 'm>
    where
        's: 't,
    {
        Scope { outer: Some(self), ..self.closed(within) }
    }

    /// A scope inside this one that sees none of its names.
    pub(crate) fn closed<'t>(&self, within: &str) -> Scope<'t, 'm> {
        Scope {
            names: BTreeMap::new(),
            outer: None,
            args: self.args.clone(),
            opset: self.opset,
            depth: self.depth + 1,
            within: within.to_string(),
            region: self.region,
        }
    }

    /// What `name` stands for.
    pub(crate) fn get(&self, name: &str) -> Option<Slot> {
        let mut s = Some(self);
        while let Some(scope) = s {
            if let Some(slot) = scope.names.get(name) {
                return Some(*slot);
            }
            s = scope.outer;
        }
        None
    }

    /// Gives `name` a meaning; false when it has one in this very scope.
    pub(crate) fn define(&mut self, name: &'m str, slot: Slot) -> bool {
        if self.names.contains_key(name) {
            return false;
        }
        self.names.insert(name, slot);
        true
    }
}

/// The opset of the default domain among imports.
pub(crate) fn default_opset(list: &[OperatorSetIdProto]) -> Option<i64> {
    let own = |o: &&OperatorSetIdProto| is_default_domain(o.domain.as_deref());
    list.iter().find(own).map(|o| o.version.unwrap_or(0))
}

/// True for the domain of ONNX's own operators.
pub(crate) fn is_default_domain(domain: Option<&str>) -> bool {
    matches!(domain.unwrap_or(""), "" | "ai.onnx")
}

impl<'m> Importer<'m> {
    /// A fresh import with this source of tensors.
    pub(crate) fn new(reader: Reader, functions: &'m [FunctionProto]) -> Importer<'m> {
        let key = |f: &'m FunctionProto| {
            let text = |o: &'m Option<String>| o.as_deref().unwrap_or("");
            ((text(&f.domain), text(&f.name), text(&f.overload)), f)
        };
        Importer {
            report: Report::default(),
            reader,
            weights: IndexMap::new(),
            functions: functions.iter().map(key).collect(),
            nodes: 0,
        }
    }

    /// Puts a tensor into the graph: small ones as constants, others as weights under `name` (made unique).
    pub(crate) fn tensor(&mut self, g: &mut Graph, name: &str, t: Tensor, loc: &Loc) -> Res<Value> {
        if t.numel() <= INLINE_ELEMENTS {
            return Ok(g.op(Constant { value: t, shape: None }, &[], loc)?);
        }
        let (dtype, shape) = (t.dtype, t.ty().shape);
        let name = self.add_weight(name, t);
        Ok(g.op(Weight { name, dtype, shape }, &[], loc)?)
    }

    /// Stores a weight under `name`, made unique; returns the name used.
    pub(crate) fn add_weight(&mut self, name: &str, t: Tensor) -> String {
        let mut unique = name.to_string();
        let mut n = 1;
        while self.weights.get(&unique).is_some_and(|w| *w != t) {
            unique = format!("{name}.{n}");
            n += 1;
        }
        self.weights.insert(unique.clone(), t);
        unique
    }

    /// Defines the initializers of `graph` in `scope` as constants, those that somebody reads.
    pub(crate) fn initializers(
        &mut self,
        g: &mut Graph,
        scope: &mut Scope<'_, 'm>,
        graph: &'m GraphProto,
        used: &BTreeSet<&str>,
    ) {
        let mut seen = BTreeSet::new();
        for t in &graph.initializer {
            let name = t.name.as_deref().unwrap_or("");
            let loc = Loc::new(format!("initializer `{name}`{}", scope.within));
            if !seen.insert(name) {
                let d = Diag::error("E-ONNX-010", format!("`{name}` is given twice")).at(&loc);
                self.report.error(d.help("every name may be defined once; the file is damaged"));
            }
            if scope.names.contains_key(name) {
                continue;
            }
            if !used.contains(name) {
                scope.define(name, Slot::Absent);
                continue;
            }
            let slot = match self.reader.tensor(t).and_then(|t| self.tensor(g, name, t, &loc)) {
                Ok(v) => Slot::Val(v),
                Err(s) => {
                    self.report.stop(s.map(|d| d.at(&loc)));
                    Slot::Poison
                }
            };
            scope.define(name, slot);
        }
        for t in &graph.sparse_initializer {
            let name = t.values.as_ref().and_then(|v| v.name.as_deref()).unwrap_or("");
            let d = Diag::error("E-ONNX-014", "sparse initializers are not supported")
                .at(&Loc::new(format!("initializer `{name}`{}", scope.within)))
                .help("store the tensor densely");
            self.report.error(d);
            scope.define(name, Slot::Poison);
        }
    }

    /// Imports `nodes` in an order that puts producers first.
    pub(crate) fn nodes(&mut self, g: &mut Graph, scope: &mut Scope<'_, 'm>, nodes: &'m [NodeProto]) {
        if scope.depth > MAX_DEPTH {
            let m = format!("branches and functions are nested more than {MAX_DEPTH} deep");
            self.report.error(Diag::error("E-ONNX-017", m).at(&Loc::new(scope.within.trim())));
            return self.poison(scope, nodes, 0..nodes.len());
        }
        let (order, cyclic) = order(nodes);
        if !cyclic.is_empty() {
            let mut d =
                Diag::error("E-ONNX-011", format!("{} nodes depend on themselves in a cycle", cyclic.len()));
            for &k in cyclic.iter().take(10) {
                d = d.note(place(&nodes[k], k, &scope.within));
            }
            self.report
                .error(d.help("a model's nodes must form a directed acyclic graph; the file is damaged"));
        }
        for k in order {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                if self.nodes == MAX_NODES + 1 {
                    let m = format!("more than {MAX_NODES} nodes after inlining functions and branches");
                    self.report.error(Diag::error("E-ONNX-017", m));
                }
                self.poison(scope, nodes, k..k + 1);
                continue;
            }
            self.node(g, scope, &nodes[k], k);
        }
        self.poison(scope, nodes, cyclic);
    }

    fn poison(
        &mut self,
        scope: &mut Scope<'_, 'm>,
        nodes: &'m [NodeProto],
        which: impl IntoIterator<Item = usize>,
    ) {
        for name in which.into_iter().flat_map(|k| &nodes[k].output) {
            scope.define(name, Slot::Poison);
        }
    }

    fn node(&mut self, g: &mut Graph, scope: &mut Scope<'_, 'm>, node: &'m NodeProto, k: usize) {
        let loc = Loc::new(place(node, k, &scope.within));
        let results = match self.node_results(g, scope, node, &loc) {
            Ok(v) => v,
            Err(stop) => {
                self.report.stop(stop.map(|d| d.at(&loc)));
                Vec::new()
            }
        };
        for (i, name) in node.output.iter().enumerate().filter(|(_, n)| !n.is_empty()) {
            let slot = results.get(i).copied().unwrap_or(Slot::Poison);
            if i >= results.len() && !results.is_empty() {
                let op = node.op_type.as_deref().unwrap_or("");
                let m = format!(
                    "output {i} (`{name}`) of {op} is not supported; only the first {} are",
                    results.len()
                );
                self.report.error(
                    Diag::error("E-ONNX-018", m).at(&loc).help("export the model without using this output"),
                );
            }
            if !scope.define(name, slot) {
                let m = format!("`{name}` is produced twice, or is also an input or initializer");
                let d = Diag::error("E-ONNX-010", m)
                    .at(&loc)
                    .help("every name may be defined once; the file is damaged");
                self.report.error(d);
            }
        }
    }

    fn node_results(
        &mut self,
        g: &mut Graph,
        scope: &Scope<'_, 'm>,
        node: &'m NodeProto,
        loc: &Loc,
    ) -> Res<Vec<Slot>> {
        let op = node.op_type.as_deref().unwrap_or("");
        let domain = node.domain.as_deref().unwrap_or("");
        let function = self.functions.get(&(domain, op, node.overload.as_deref().unwrap_or(""))).copied();
        let found = match function {
            Some(f) => Found::Function(f),
            None => {
                let found = registry::find(domain, op, scope.opset);
                match found {
                    Err(why) => {
                        let full = if is_default_domain(Some(domain)) {
                            op.to_string()
                        } else {
                            format!("{domain}.{op}")
                        };
                        self.report.unsupported(full, why, &loc.place);
                        return Err(Stop::reported());
                    }
                    Ok(f) => f,
                }
            }
        };
        let Some(ins) = self.operands(scope, node, loc) else { return Err(Stop::reported()) };
        let attrs = Attrs::new(node, &scope.args)?;
        let opset = scope.opset.unwrap_or(0);
        let mut cx = NodeCx { im: self, g, scope, node, attrs, ins, loc: loc.clone(), opset };
        let results = match found {
            Found::Handler(f) => f(&mut cx)?.into_iter().map(Slot::Val).collect(),
            Found::Direct(name) => vec![Slot::Val(cx.direct(name)?)],
            Found::Function(f) => super::function::call(&mut cx, f)?,
        };
        let unread = cx.attrs.unread();
        if !unread.is_empty() && !matches!(found, Found::Function(_)) {
            let m = format!("{op} (opset {opset}) has no attribute `{}`", unread.join("`, `"));
            return Err(Diag::error("E-ONNX-007", m)
                .help("the file does not follow the ONNX specification of its opset")
                .into());
        }
        results.into_iter().map(|s| cx.finish(s)).collect()
    }

    /// Operand values; None when one is poisoned or missing.
    fn operands(
        &mut self,
        scope: &Scope<'_, 'm>,
        node: &'m NodeProto,
        loc: &Loc,
    ) -> Option<Vec<Option<Value>>> {
        let mut out = Vec::with_capacity(node.input.len());
        let mut good = true;
        for name in &node.input {
            match scope.get(name) {
                _ if name.is_empty() => out.push(None),
                Some(Slot::Val(v)) => out.push(Some(v)),
                Some(Slot::Absent) => out.push(None),
                Some(Slot::Poison) => good = false,
                None => {
                    good = false;
                    let m = format!("reads `{name}`, which is no input, no initializer and no node's output");
                    let d = Diag::error("E-ONNX-009", m)
                        .at(loc)
                        .help("the file is damaged or was cut out of a bigger model");
                    self.report.error(d);
                }
            }
        }
        while out.last().is_some_and(Option::is_none) {
            out.pop();
        }
        good.then_some(out)
    }

    /// Imports a graph that is an attribute into `g`, with names of `scope` (already holding its inputs).
    pub(crate) fn subgraph(
        &mut self,
        g: &mut Graph,
        scope: &mut Scope<'_, 'm>,
        graph: &'m GraphProto,
    ) -> Res<Vec<Value>> {
        let used = used_names(graph);
        self.initializers(g, scope, graph, &used);
        self.nodes(g, scope, &graph.node);
        let mut out = Vec::with_capacity(graph.output.len());
        for o in &graph.output {
            let name = o.name.as_deref().unwrap_or("");
            match scope.get(name) {
                Some(Slot::Val(v)) => out.push(v),
                Some(Slot::Poison) => return Err(Stop::reported()),
                Some(Slot::Absent) | None => {
                    let m = format!("output `{name}` of the branch is produced by nothing");
                    return Err(Diag::error("E-ONNX-009", m).into());
                }
            }
        }
        Ok(out)
    }
}

/// Where a node is, in words.
pub(crate) fn place(node: &NodeProto, k: usize, within: &str) -> String {
    let op = short(node.op_type.as_deref().unwrap_or(""));
    match node.name.as_deref() {
        Some(name) if !name.is_empty() => format!("node `{}` ({op}){within}", short(name)),
        _ => {
            let out = node.output.iter().find(|o| !o.is_empty()).map_or("", |o| o.as_str());
            format!("node #{k} ({op}), output `{}`{within}", short(out))
        }
    }
}

/// A name, cut where it is too long to be repeated at every node of a branch.
fn short(name: &str) -> &str {
    name.char_indices().nth(MAX_NAME).map_or(name, |(at, _)| &name[..at])
}

/// Names read by the nodes of a graph, in branches too, and its outputs.
pub(crate) fn used_names(graph: &GraphProto) -> BTreeSet<&str> {
    let mut out: BTreeSet<&str> = graph.output.iter().filter_map(|o| o.name.as_deref()).collect();
    graph.node.iter().for_each(|n| reads(n, &mut out));
    out
}

/// Names a node reads, in its branches too.
pub(crate) fn reads<'m>(node: &'m NodeProto, out: &mut BTreeSet<&'m str>) {
    out.extend(node.input.iter().filter(|n| !n.is_empty()).map(String::as_str));
    for g in node.attribute.iter().flat_map(|a| a.g.iter().chain(&a.graphs)) {
        out.extend(g.output.iter().filter_map(|o| o.name.as_deref()));
        g.node.iter().for_each(|n| reads(n, out));
    }
}

/// Positions of nodes, producers first and otherwise as in the file; and those on or behind a cycle.
fn order(nodes: &[NodeProto]) -> (Vec<usize>, Vec<usize>) {
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    for (k, n) in nodes.iter().enumerate() {
        for o in n.output.iter().filter(|o| !o.is_empty()) {
            made.entry(o).or_insert(k);
        }
    }
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut waiting = vec![0usize; nodes.len()];
    for (k, n) in nodes.iter().enumerate() {
        let mut names = BTreeSet::new();
        reads(n, &mut names);
        let before: BTreeSet<usize> = names.iter().filter_map(|s| made.get(s).copied()).collect();
        waiting[k] = before.len();
        before.into_iter().for_each(|b| after[b].push(k));
    }
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|&k| waiting[k] == 0).collect();
    let mut out = Vec::with_capacity(nodes.len());
    while let Some(k) = ready.pop_first() {
        out.push(k);
        for &u in &after[k] {
            waiting[u] -= 1;
            if waiting[u] == 0 {
                ready.insert(u);
            }
        }
    }
    let cyclic = (0..nodes.len()).filter(|&k| waiting[k] > 0).collect();
    (out, cyclic)
}
