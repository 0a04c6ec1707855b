//! Checks of one graph and the regions in it.

use super::at_node;
use crate::diag::{Diag, Loc};
use crate::graph::{Graph, NodeId, Value, infer_node};
use crate::module::Module;
use crate::ops::{Attr, Op};
use crate::text::value_names;
use crate::types::{Atom, DType, Dim, Fact, KnownElem, MAX_KNOWN, Pred, SymTable, Type};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Checks one graph, leaving violations in `out`.
pub(super) struct Checker<'a> {
    out: &'a mut Vec<Diag>,
    g: &'a Graph,
    module: Option<&'a Module>,
    /// Guards of the graphs around this region.
    outer: Vec<Pred>,
    /// Where the region is; empty for an entry's graph.
    path: String,
}

impl<'a> Checker<'a> {
    pub(super) fn new(out: &'a mut Vec<Diag>, g: &'a Graph, module: Option<&'a Module>) -> Checker<'a> {
        Checker { out, g, module, outer: Vec::new(), path: String::new() }
    }

    /// Everything that holds for the graph of an entry.
    pub(super) fn entry(&mut self) {
        self.names();
        self.ranges();
        self.sources();
        self.body();
    }

    /// What holds for entries and regions alike.
    fn body(&mut self) {
        self.inputs_and_outputs();
        self.guards();
        let order = self.g.topo();
        if order.len() != self.g.len() {
            let reached: BTreeSet<NodeId> = order.iter().copied().collect();
            let stuck: Vec<String> = self
                .g
                .ids()
                .into_iter()
                .filter(|i| !reached.contains(i))
                .take(8)
                .map(|i| self.name(i))
                .collect();
            self.fault("E-VER-002", format!("a cycle goes through {}", stuck.join(", ")), &Loc::default());
        }
        for id in self.g.ids() {
            self.node(id);
        }
    }

    fn fault(&mut self, code: &'static str, message: String, loc: &Loc) {
        let mut d = at_node(code, message, loc);
        if !self.path.is_empty() {
            d = d.note(format!("inside {}", self.path));
        }
        self.out.push(d);
    }

    /// `add (%3)`, the number being the one in the printed graph.
    fn name(&self, id: NodeId) -> String {
        let op = self.g.op_of(id).map_or("?", Op::name);
        match value_names(self.g).get(&Value { node: id, result: 0 }) {
            Some(n) if self.path.is_empty() => format!("`{op}` (%{n})"),
            _ => format!("`{op}`"),
        }
    }

    fn names(&mut self) {
        let ins = self.g.inputs().iter().filter_map(|&i| {
            if let Some(Op::Input(op)) = self.g.op_of(i) { Some(op.name.clone()) } else { None }
        });
        let outs = self.g.outputs().iter().map(|o| o.name.to_string());
        for (names, what) in [(ins.collect::<Vec<_>>(), "inputs"), (outs.collect(), "outputs")] {
            let mut seen = BTreeSet::new();
            for n in names {
                if !seen.insert(n.clone()) {
                    self.fault("E-VER-008", format!("two {what} are called {n:?}"), &Loc::default());
                }
            }
        }
    }

    fn ranges(&mut self) {
        let bad: Vec<String> = self
            .g
            .symbols
            .iter()
            .filter(|(_, i)| i.lo < 0 || i.hi < i.lo)
            .map(|(s, i)| format!("the range {}..{} of `{s}` is not 0 <= lo <= hi", i.lo, i.hi))
            .collect();
        bad.into_iter().for_each(|m| self.fault("E-VER-010", m, &Loc::default()));
    }

    /// Where symbols get their values from.
    fn sources(&mut self) {
        let shapes = self.g.inputs().iter().filter_map(|&i| self.g.ty(Value { node: i, result: 0 }));
        let dims: Vec<&Dim> = shapes.flat_map(|t| &t.shape).collect();
        let mentioned: BTreeSet<Arc<str>> = dims.iter().flat_map(|d| symbols(d)).collect();
        let mut given: BTreeSet<Arc<str>> = BTreeSet::new();
        loop {
            let more: Vec<Arc<str>> = dims.iter().filter_map(|d| solved_by(d, &given)).collect();
            if more.is_empty() {
                break;
            }
            given.extend(more);
        }
        for id in self.g.ids() {
            let Some(Op::BindDim(b)) = self.g.op_of(id) else { continue };
            let symbol: Arc<str> = Arc::from(b.symbol.as_str());
            if mentioned.contains(&symbol) {
                let m = format!("{} binds `{symbol}`, which an input's type mentions", self.name(id));
                self.fault("E-VER-011", m, &self.g.loc(id));
            } else if !given.insert(symbol.clone()) {
                let m = format!("{} binds `{symbol}` a second time", self.name(id));
                self.fault("E-VER-011", m, &self.g.loc(id));
            }
        }
        let mut missing: BTreeMap<Arc<str>, Loc> = BTreeMap::new();
        used_symbols(self.g, &mut |s, loc| {
            if !given.contains(s) && self.g.symbols.get(s).is_some() {
                missing.entry(s.clone()).or_insert_with(|| loc.clone());
            }
        });
        for (s, loc) in missing {
            let m = format!(
                "nothing gives symbol `{s}` a value: no input's dims determine it and no `bind_dim` binds it"
            );
            self.fault("E-VER-012", m, &loc);
        }
    }

    fn inputs_and_outputs(&mut self) {
        for (i, o) in self.g.outputs().iter().enumerate() {
            if self.g.fact(o.value).is_none() {
                self.fault(
                    "E-VER-005",
                    format!("output {i} ({:?}) is no value of the graph", &*o.name),
                    &Loc::default(),
                );
            }
        }
        let listed: BTreeSet<NodeId> = self.g.inputs().iter().copied().collect();
        let made: BTreeSet<NodeId> =
            self.g.ids().into_iter().filter(|&i| matches!(self.g.op_of(i), Some(Op::Input(_)))).collect();
        if listed != made || listed.len() != self.g.inputs().len() {
            let m =
                format!("{} inputs are listed, {} `input` nodes exist", self.g.inputs().len(), made.len());
            self.fault("E-VER-006", m, &Loc::default());
        }
    }

    fn guards(&mut self) {
        for gd in self.g.guards() {
            symbols_declared(self.out, &self.g.symbols, &gd.pred, "a guard");
            if gd.pred.decide_in(&self.g.symbols) == Some(false) {
                let m = format!("guard `{}` cannot hold for any size in range", gd.pred);
                self.fault("E-VER-018", m, &gd.at);
            }
        }
    }

    fn node(&mut self, id: NodeId) {
        let Some(node) = self.g.node(id) else { return };
        let loc = node.loc.clone();
        let operands = self.g.operands(id);
        let facts: Option<Vec<Fact>> = operands.iter().map(|v| self.g.fact(*v).cloned()).collect();
        let Some(facts) = facts else {
            let m = format!("{} reads a value that is not in the graph", self.name(id));
            return self.fault("E-VER-001", m, &loc);
        };
        match infer_node(&node.op, &facts, &node.regions, &self.g.symbols) {
            Err(d) => {
                let mut d = d.at(&loc).note(format!("inferring {} again", self.name(id)));
                if !self.path.is_empty() {
                    d = d.note(format!("inside {}", self.path));
                }
                d.message = format!("[{}] {}", d.code, d.message);
                d.code = "E-VER-003";
                self.out.push(d);
            }
            Ok((results, needs)) => {
                self.results(id, &node.results, &results);
                for (pred, why) in needs {
                    self.needs(id, &pred, &why);
                }
            }
        }
        self.declared(id);
        self.known(id);
        self.data(id);
        self.regions(id);
    }

    fn results(&mut self, id: NodeId, have: &[Fact], want: &[Fact]) {
        let list = |f: &[Fact]| f.iter().map(|f| f.ty.to_string()).collect::<Vec<_>>().join(", ");
        if !have.iter().map(|f| &f.ty).eq(want.iter().map(|f| &f.ty)) {
            let m =
                format!("{} is recorded as {}, inference gives {}", self.name(id), list(have), list(want));
            self.fault("E-VER-003", m, &self.g.loc(id));
        }
    }

    fn needs(&mut self, id: NodeId, pred: &Pred, why: &str) {
        let there = self.g.guards().iter().any(|g| g.pred == *pred) || self.outer.contains(pred);
        if !there && pred.decide_in(&self.g.symbols) != Some(true) {
            let m = format!("{} needs the guard `{pred}` ({why}), which the graph lacks", self.name(id));
            self.fault("E-VER-004", m, &self.g.loc(id));
        }
    }

    fn declared(&mut self, id: NodeId) {
        let Some(node) = self.g.node(id) else { return };
        let mut bad: BTreeSet<String> = BTreeSet::new();
        let mut dim = |d: &Dim| {
            d.leaves(&mut |a| {
                let fine = if let Atom::Sym(s) = a { self.g.symbols.get(s).is_some() } else { false };
                if !fine {
                    bad.insert(a.to_string());
                }
            });
        };
        node_dims(&node.op, &node.results, &mut dim);
        for s in bad {
            let m = format!("{} mentions `{s}`, which is not declared", self.name(id));
            self.fault("E-VER-009", m, &node.loc);
        }
    }

    fn known(&mut self, id: NodeId) {
        let Some(node) = self.g.node(id) else { return };
        for f in &node.results {
            let Some(known) = &f.known else { continue };
            let n = f.ty.as_fixed().and_then(|s| s.into_iter().try_fold(1usize, usize::checked_mul));
            let typed = |e: &KnownElem| match e {
                KnownElem::Scalar(s) => s.dtype == f.ty.dtype,
                KnownElem::Dim(_) => f.ty.dtype.is_int(),
                KnownElem::Pred(_) => f.ty.dtype == DType::Bool,
                KnownElem::Unknown => true,
            };
            if n != Some(known.0.len()) || known.0.len() > MAX_KNOWN || !known.0.iter().all(typed) {
                let m =
                    format!("{}: {} known elements that do not fit {}", self.name(id), known.0.len(), f.ty);
                self.fault("E-VER-016", m, &node.loc);
            }
        }
    }

    /// Constants, and weights and defaults against the module.
    fn data(&mut self, id: NodeId) {
        let Some(node) = self.g.node(id) else { return };
        if let Op::Constant(c) = &node.op {
            let want = c.value.shape.iter().try_fold(c.value.dtype.size(), |a, &d| a.checked_mul(d));
            let have = c.value.data.bytes().len();
            if want != Some(have) {
                let m = format!("{} holds {have} bytes for {}", self.name(id), c.value.ty());
                self.fault("E-VER-017", m, &node.loc);
            }
        }
        let (Some(m), Some(ty)) = (self.module, node.results.first().map(|f| &f.ty)) else { return };
        let (name, what) = if let Op::Weight(w) = &node.op {
            (&w.name, "the weight")
        } else if let Op::Input(i) = &node.op
            && let Some(default) = &i.default
        {
            (default, "the default")
        } else {
            return;
        };
        let fits = |t: &Type| {
            t.dtype == ty.dtype
                && t.rank() == ty.rank()
                && t.shape.iter().zip(&ty.shape).all(|(a, b)| a == b || b.as_const().is_none())
        };
        match m.weights.get(name).map(|t| t.ty()) {
            Some(t) if fits(&t) => {}
            Some(t) => {
                let m = format!("{} is {ty}, {what} {name:?} is {t}", self.name(id));
                self.fault("E-VER-014", m, &node.loc);
            }
            None => {
                let m = format!("{} names {what} {name:?}, which the module lacks", self.name(id));
                self.fault("E-VER-014", m, &node.loc);
            }
        }
    }

    fn regions(&mut self, id: NodeId) {
        let Some(node) = self.g.node(id) else { return };
        for (i, r) in node.regions.iter().enumerate() {
            let mut path = format!("region {i} of {}", self.name(id));
            if !self.path.is_empty() {
                path = format!("{path}, {}", self.path);
            }
            let strange: Vec<String> = r
                .symbols
                .iter()
                .filter(|(s, _)| self.g.symbols.get(s).is_none())
                .map(|(s, _)| format!("`{s}`"))
                .collect();
            let outer =
                self.outer.iter().cloned().chain(self.g.guards().iter().map(|g| g.pred.clone())).collect();
            let mut inner = Checker { out: self.out, g: r, module: self.module, outer, path };
            if !strange.is_empty() {
                let m = format!("the region declares {}, the graph around it does not", strange.join(", "));
                inner.fault("E-VER-007", m, &node.loc);
            }
            inner.body();
        }
    }
}

/// The symbol that a size of this dim determines when the `given` ones are known: the only other one, in one linear term.
fn solved_by(d: &Dim, given: &BTreeSet<Arc<str>>) -> Option<Arc<str>> {
    let open = |a: &Atom| !symbols(&Dim::atom(a.clone())).is_subset(given);
    let mut terms = d.terms().filter(|(_, atoms)| atoms.iter().any(open));
    let (Some((_, atoms)), None) = (terms.next(), terms.next()) else { return None };
    let mut unknown = atoms.iter().filter(|a| open(a));
    if let (Some(Atom::Sym(s)), None) = (unknown.next(), unknown.next()) { Some(s.clone()) } else { None }
}

/// Dims of a node's result types and attributes.
fn node_dims(op: &Op, results: &[Fact], f: &mut dyn FnMut(&Dim)) {
    results.iter().flat_map(|r| &r.ty.shape).for_each(&mut *f);
    for (_, a) in op.attrs() {
        if let Attr::Dim(d) = &a {
            f(d);
        } else if let Attr::Dims(v) = &a {
            v.iter().for_each(&mut *f);
        }
    }
}

fn symbols(d: &Dim) -> BTreeSet<Arc<str>> {
    let mut out = BTreeSet::new();
    d.leaves(&mut |a| {
        if let Atom::Sym(s) = a {
            out.insert(s.clone());
        }
    });
    out
}

/// Calls `f` with each symbol in types, attributes and guards of a graph and its regions, and a place that uses it.
fn used_symbols(g: &Graph, f: &mut dyn FnMut(&Arc<str>, &Loc)) {
    for id in g.ids() {
        let Some(node) = g.node(id) else { continue };
        node_dims(&node.op, &node.results, &mut |d| symbols(d).iter().for_each(|s| f(s, &node.loc)));
        node.regions.iter().for_each(|r| used_symbols(r, f));
    }
    for gd in g.guards() {
        gd.pred.dims(&mut |d| symbols(d).iter().for_each(|s| f(s, &gd.at)));
    }
}

/// Reports symbols of a condition that are not declared.
pub(super) fn symbols_declared(out: &mut Vec<Diag>, table: &SymTable, pred: &Pred, what: &str) {
    let mut bad: BTreeSet<Arc<str>> = BTreeSet::new();
    pred.dims(&mut |d| bad.extend(symbols(d).into_iter().filter(|s| table.get(s).is_none())));
    for s in bad {
        out.push(Diag::error("E-VER-009", format!("{what} `{pred}` mentions `{s}`, which is not declared")));
    }
}
