//! The verifier: what every module and graph must satisfy between passes. It reports all faults it finds and changes
//! nothing. How graphs come to satisfy this is the business of `graph`, `patch` and the ops' type rules.
//!
//! Checked, each with the code `E-VER-` and its number:
//!
//! 1. Every operand is a result of a node of the same graph.
//! 2. Nodes form no cycle; a node that mentions a symbol bound by `bind_dim` does not feed that `bind_dim`.
//! 3. Inferring again (arity, attributes, constraints, types) gives the recorded results.
//! 4. A condition that inference needs is proved by the symbols' ranges or is a guard of the graph or one around it.
//! 5. Outputs exist.
//! 6. The inputs of a graph are exactly its `input` nodes.
//! 7. Only region ops have regions, and a region declares no symbol that the graph around it lacks. What a region reads
//!    are its inputs, constants and weights: checks 1 to 6 hold in it.
//! 8. Names of an entry's inputs differ from each other, and so do names of its outputs.
//! 9. Symbols in types, attributes and guards are declared.
//! 10. Ranges of symbols have `0 <= lo <= hi`.
//! 11. A symbol bound by `bind_dim` is bound once and in no input's type.
//! 12. A symbol that is used has a source: an input's dim that determines it (`n`, `2*n + 1`), or a
//!     `bind_dim`.
//! 13. Inputs and outputs that are states name states of the module with the same type, each at most once.
//! 14. `weight` nodes and defaults of inputs name weights of the module, of that type.
//! 15. A variant has the entry's inputs and outputs by name and order, inputs of the same types, outputs of the same
//!     element types and ranks.
//! 16. Known elements of a value are as many as its elements and of its element type.
//! 17. Constants and weights hold as many bytes as their type needs.
//! 18. No guard contradicts the symbols' ranges.
//! 19. The name of an entry is the name of its graphs.
//!
//! Not checked: that a rewrite keeps values (the fixtures run both sides); that the value given to `bind_dim` is in
//! range, that sizes stay below 64 bits and that a variant's outputs have the entry's sizes (checked when a program
//! binds or runs); that a `fused` region is one kernel (asked of `tiling` where regions are made and lowered); that
//! hashes of weights are right (checked when they are read); that places and rule names are true.

mod graph;

use crate::diag::{Diag, Loc};
use crate::graph::Graph;
use crate::module::{Entry, Module};
use crate::ops::Op;
use crate::types::Type;
use graph::Checker;
use std::collections::BTreeSet;

/// Every violation in a module.
pub fn verify(m: &Module) -> Vec<Diag> {
    let mut out = Vec::new();
    for (name, t) in &m.weights {
        let want = t.shape.iter().try_fold(t.dtype.size(), |a, &d| a.checked_mul(d));
        if want != Some(t.data.bytes().len()) {
            out.push(Diag::error(
                "E-VER-017",
                format!("weight {name:?}: {} bytes for {}", t.data.bytes().len(), t.ty()),
            ));
        }
    }
    for (name, e) in &m.entries {
        entry(&mut out, name, e, m);
    }
    out
}

/// Every violation in an entry's graph; with the module at hand, of its states and weights too.
pub fn verify_graph(g: &Graph, module: Option<&Module>) -> Vec<Diag> {
    let mut out = Vec::new();
    Checker::new(&mut out, g, module).entry();
    out
}

fn entry(out: &mut Vec<Diag>, name: &str, e: &Entry, m: &Module) {
    let graphs = e.variants.iter().filter_map(|v| v.body.as_ref().ok()).chain([&e.body]);
    for g in graphs {
        let from = out.len();
        Checker::new(out, g, Some(m)).entry();
        if g.name != name {
            out.push(Diag::error("E-VER-019", format!("the graph is called {:?}", g.name)));
        }
        states(out, g, m);
        for d in &mut out[from..] {
            d.notes.push(format!("in entry @{name}"));
        }
    }
    for (i, v) in e.variants.iter().enumerate() {
        let mut bad = Vec::new();
        graph::symbols_declared(&mut bad, &e.body.symbols, &v.when, "the condition");
        if let Ok(g) = &v.body {
            signature(&mut bad, g, &e.body);
        }
        let context = format!("in variant {i} (when {}) of entry @{name}", v.when);
        out.extend(bad.into_iter().map(|d| d.note(context.clone())));
    }
}

/// Name, type and state of an input or output.
type Port = (String, Option<Type>, Option<String>);

fn inputs(g: &Graph) -> Vec<Port> {
    let one = |id: &crate::graph::NodeId| match g.op_of(*id) {
        Some(op) => {
            let ty = g.node(*id).and_then(|n| n.results.first()).map(|f| f.ty.clone());
            if let Op::Input(i) = op {
                (i.name.clone(), ty, i.state.clone())
            } else {
                (String::new(), ty, None)
            }
        }
        None => (String::new(), None, None),
    };
    g.inputs().iter().map(one).collect()
}

fn outputs(g: &Graph) -> Vec<Port> {
    let one = |o: &crate::graph::Output| {
        (o.name.to_string(), g.ty(o.value).cloned(), o.state.as_ref().map(|s| s.to_string()))
    };
    g.outputs().iter().map(one).collect()
}

fn signature(out: &mut Vec<Diag>, g: &Graph, body: &Graph) {
    let show = |p: &[Port]| {
        let one = |p: &Port| format!("{:?}: {}", p.0, p.1.as_ref().map_or("?".to_string(), Type::to_string));
        p.iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let (have, want) = (inputs(g), inputs(body));
    if have != want {
        let m = format!("the variant's inputs are ({}), the entry's ({})", show(&have), show(&want));
        out.push(Diag::error("E-VER-015", m));
    }
    let (have, want) = (outputs(g), outputs(body));
    let alike = |(a, b): (&Port, &Port)| {
        let kind = |p: &Port| p.1.as_ref().map(|t| (t.dtype, t.rank()));
        a.0 == b.0 && a.2 == b.2 && kind(a) == kind(b)
    };
    if have.len() != want.len() || !have.iter().zip(&want).all(alike) {
        let m = format!("the variant's outputs are ({}), the entry's ({})", show(&have), show(&want));
        out.push(Diag::error("E-VER-015", m));
    }
}

fn states(out: &mut Vec<Diag>, g: &Graph, m: &Module) {
    let (reads, writes) = (inputs(g), outputs(g));
    for (ports, what) in [(&reads, "read"), (&writes, "written")] {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        for (i, (name, ty, state)) in ports.iter().enumerate() {
            let Some(state) = state else { continue };
            let node = if what == "read" {
                g.inputs().get(i).copied()
            } else {
                g.outputs().get(i).map(|o| o.value.node)
            };
            let at = node.map(|n| g.loc(n)).unwrap_or_default();
            let mut fault = |message: String| out.push(Diag::error("E-VER-013", message).at(&at));
            match m.states.get(state) {
                None => fault(format!("{name:?} is state {state:?}, which the module lacks")),
                Some(s) if Some(&s.ty) != ty.as_ref() => {
                    let ty = ty.as_ref().map_or("?".to_string(), Type::to_string);
                    fault(format!("{name:?} is {ty}, its state {state:?} is {}", s.ty));
                }
                Some(_) => {}
            }
            if !seen.insert(state) {
                fault(format!("state {state:?} is {what} twice"));
            }
        }
    }
}

/// A violation at a node, with the node's place.
fn at_node(code: &'static str, message: String, loc: &Loc) -> Diag {
    Diag::error(code, message).at(loc)
}

#[cfg(test)]
mod tests;
