//! Writing of modules and graphs. Deterministic: values are numbered in topological order, node ids do not show.

use super::literal::{print_attr, print_dense};
use crate::diag::Loc;
use crate::graph::{Graph, Guard, NodeId, Value};
use crate::module::{Module, Variant};
use crate::ops::{Attr, Op};
use crate::tensor::Tensor;
use crate::types::{Atom, Dim, Pred, SymInfo, SymTable, Type, is_plain_name};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

/// The text of a module. Weights of more than 16 elements are named by the hash of their bytes.
pub fn print_module(m: &Module) -> String {
    let mut out = String::new();
    for (name, t) in &m.weights {
        weight(&mut out, name, t);
    }
    for (name, s) in &m.states {
        let _ = writeln!(out, "state {name:?} : {}", s.ty);
    }
    for (name, e) in &m.entries {
        if !out.is_empty() {
            out.push('\n');
        }
        entry(&mut out, name, &e.body, &e.variants);
    }
    out
}

/// The text of a graph, as one entry without variants. Compare it with a stored text to test what builds or rewrites
/// the graph.
pub fn print_graph(g: &Graph) -> String {
    let mut out = String::new();
    entry(&mut out, &g.name, g, &[]);
    out
}

fn weight(out: &mut String, name: &str, t: &Tensor) {
    let _ = write!(out, "weight {name:?} : {} = ", t.ty());
    if t.numel() <= super::INLINE_WEIGHT {
        out.push_str("dense<");
        print_dense(out, t);
        out.push_str(">\n");
    } else {
        let _ = writeln!(out, "file<\"{}\">", blake3::hash(t.data.bytes()).to_hex());
    }
}

fn entry(out: &mut String, name: &str, body: &Graph, variants: &[Variant]) {
    let shown = if is_plain_name(name) { name.to_string() } else { format!("{name:?}") };
    let _ = write!(out, "graph @{shown}(");
    let labels = labels(body);
    for (i, (label, &id)) in labels.iter().zip(body.inputs()).enumerate() {
        let _ = write!(out, "{}%{label}: ", if i > 0 { ", " } else { "" });
        input(out, body, id, label);
    }
    out.push_str(") -> ");
    outputs(out, body);
    let mut lines = String::new();
    for (s, info) in dims_to_show(body) {
        dim(&mut lines, "  ", &s, &info);
    }
    for g in body.guards() {
        guard(&mut lines, "  ", g, &body.symbols);
    }
    for v in variants {
        variant(&mut lines, v, &body.symbols, &labels);
    }
    if lines.is_empty() {
        out.push_str(" {\n");
    } else {
        let _ = write!(out, "\n{lines}{{\n");
    }
    statements(out, body, "  ", &mut 0, &labels);
    out.push_str("}\n");
}

/// `%` names of the inputs: their own where plain and not repeated, else numbers.
fn labels(g: &Graph) -> Vec<String> {
    let names: Vec<String> = g.inputs().iter().map(|&i| input_name(g, i)).collect();
    let mut number = 0;
    names
        .iter()
        .map(|n| {
            if is_plain_name(n) && names.iter().filter(|o| *o == n).count() == 1 {
                return n.clone();
            }
            number += 1;
            (number - 1).to_string()
        })
        .collect()
}

fn input_name(g: &Graph, id: NodeId) -> String {
    if let Some(Op::Input(i)) = g.op_of(id) { i.name.clone() } else { String::new() }
}

fn input(out: &mut String, g: &Graph, id: NodeId, label: &str) {
    if let Some(t) = g.ty(Value { node: id, result: 0 }) {
        let _ = write!(out, "{t}");
    }
    let Some(Op::Input(i)) = g.op_of(id) else { return };
    if i.name != label {
        let _ = write!(out, " {:?}", i.name);
    }
    if let Some(s) = &i.state {
        let _ = write!(out, " state {s:?}");
    }
    if let Some(d) = &i.default {
        let _ = write!(out, " default {d:?}");
    }
}

fn outputs(out: &mut String, g: &Graph) {
    let one = |i: usize| {
        let o = &g.outputs()[i];
        let mut s = g.ty(o.value).map_or(String::new(), Type::to_string);
        if *o.name != *format!("y{i}") {
            let _ = write!(s, " {:?}", &*o.name);
        }
        if let Some(state) = &o.state {
            let _ = write!(s, " state {:?}", &**state);
        }
        s
    };
    let list: Vec<String> = (0..g.outputs().len()).map(one).collect();
    match &list[..] {
        [only] => out.push_str(only),
        _ => {
            let _ = write!(out, "({})", list.join(", "));
        }
    }
}

/// Symbols that need a line: all of them, unless those with the default range are declared by the inputs' types in the
/// order in which the table has them, after the others.
fn dims_to_show(g: &Graph) -> Vec<(Arc<str>, SymInfo)> {
    let all: Vec<(Arc<str>, SymInfo)> = g.symbols.iter().map(|(s, i)| (s.clone(), i.clone())).collect();
    let mut seen: Vec<Arc<str>> = Vec::new();
    let mut met: BTreeSet<Arc<str>> = BTreeSet::new();
    for d in g.inputs().iter().filter_map(|&i| g.ty(Value { node: i, result: 0 })).flat_map(|t| &t.shape) {
        d.leaves(&mut |a| {
            if let Atom::Sym(s) = a
                && met.insert(s.clone())
            {
                seen.push(s.clone());
            }
        });
    }
    let hidden = |s: &Arc<str>, i: &SymInfo| *i == SymInfo::default() && met.contains(s);
    let shown: Vec<(Arc<str>, SymInfo)> = all.iter().filter(|(s, i)| !hidden(s, i)).cloned().collect();
    let kept: BTreeSet<&Arc<str>> = shown.iter().map(|(s, _)| s).collect();
    let read = shown.iter().map(|(s, _)| s).chain(seen.iter().filter(|s| !kept.contains(s)));
    if read.eq(all.iter().map(|(s, _)| s)) { shown } else { all }
}

fn dim(out: &mut String, indent: &str, name: &str, i: &SymInfo) {
    let shown = Dim::sym(name);
    let _ =
        writeln!(out, "{indent}dim {shown} in {}..{}{}", i.lo, i.hi, if i.named { "" } else { " anonymous" });
}

/// A guard that the ranges prove is left out: reading the text would leave it out too.
fn guard(out: &mut String, indent: &str, g: &Guard, symbols: &SymTable) {
    if g.pred.decide_in(symbols) == Some(true) {
        return;
    }
    let _ = write!(out, "{indent}guard {}", g.pred);
    if !g.why.is_empty() {
        let _ = write!(out, " {:?}", g.why);
    }
    place(out, &g.at);
    out.push('\n');
}

fn place(out: &mut String, at: &Loc) {
    if !at.place.is_empty() {
        let _ = write!(out, " loc {:?}", &*at.place);
    }
    if !at.rules.is_empty() {
        let _ = write!(out, " via {:?}", at.rules.join(", "));
    }
}

fn variant(out: &mut String, v: &Variant, symbols: &SymTable, labels: &[String]) {
    let when: &Pred = &v.when;
    match &v.body {
        Err(why) => {
            let _ = writeln!(out, "  variant when {when} fails {why:?}");
        }
        Ok(g) => {
            let _ = writeln!(out, "  variant when {when} {{");
            for (s, i) in g.symbols.iter().filter(|(s, i)| symbols.get(s) != Some(i)) {
                dim(out, "    ", s, i);
            }
            for gd in g.guards() {
                guard(out, "    ", gd, &g.symbols);
            }
            statements(out, g, "    ", &mut 0, labels);
            out.push_str("  }\n");
        }
    }
}

/// Statements and `return` of a graph whose inputs are called `labels`. Numbers go on from `next`, past those taken.
fn statements(
    out: &mut String,
    g: &Graph,
    indent: &str,
    next: &mut usize,
    labels: &[String],
) -> BTreeMap<Value, String> {
    let mut names: BTreeMap<Value, String> = BTreeMap::new();
    for (label, &id) in labels.iter().zip(g.inputs()) {
        names.insert(Value { node: id, result: 0 }, label.clone());
        if let Ok(n) = label.parse::<usize>() {
            *next = (*next).max(n + 1);
        }
    }
    let inputs: BTreeSet<NodeId> = g.inputs().iter().copied().collect();
    for id in g.topo() {
        if !inputs.contains(&id) {
            statement(out, g, id, indent, next, &mut names);
        }
    }
    let list: Vec<String> = g.outputs().iter().map(|o| reference(&names, o.value)).collect();
    let _ = writeln!(out, "{indent}return{}{}", if list.is_empty() { "" } else { " " }, list.join(", "));
    names
}

/// What each value of an entry's graph is called in its text.
pub(crate) fn value_names(g: &Graph) -> BTreeMap<Value, String> {
    statements(&mut String::new(), g, "", &mut 0, &labels(g))
}

fn reference(names: &BTreeMap<Value, String>, v: Value) -> String {
    // a value that is not in the graph is shown as such; the text does not parse, the verifier tells why
    names.get(&v).map_or_else(|| format!("%missing_{}_{}", v.node.0, v.result), |n| format!("%{n}"))
}

fn statement(
    out: &mut String,
    g: &Graph,
    id: NodeId,
    indent: &str,
    next: &mut usize,
    names: &mut BTreeMap<Value, String>,
) {
    let Some(node) = g.node(id) else { return };
    out.push_str(indent);
    for r in 0..node.results.len() {
        names.insert(Value { node: id, result: r as u32 }, next.to_string());
        let _ = write!(out, "{}%{next}", if r > 0 { ", " } else { "" });
        *next += 1;
    }
    if !node.results.is_empty() {
        out.push_str(" = ");
    }
    out.push_str(node.op.name());
    let operands: Vec<String> = g.operands(id).into_iter().map(|v| reference(names, v)).collect();
    if !node.regions.is_empty() {
        let _ = write!(out, "({})", operands.join(", "));
    } else if !operands.is_empty() {
        let _ = write!(out, " {}", operands.join(", "));
    }
    if !short_form(out, &node.op) {
        attrs(out, &node.op.attrs());
    }
    for r in &node.regions {
        region(out, r, indent, next);
    }
    for (i, f) in node.results.iter().enumerate() {
        let _ = write!(out, "{}{}", if i > 0 { ", " } else { " : " }, f.ty);
    }
    place(out, &node.loc);
    out.push('\n');
}

fn short_form(out: &mut String, op: &Op) -> bool {
    if let Op::Constant(c) = op {
        out.push_str(if c.shape.is_some() { " splat " } else { " " });
        print_dense(out, &c.value);
        true
    } else if let Op::Weight(w) = op {
        let _ = write!(out, " {:?}", w.name);
        true
    } else {
        false
    }
}

fn attrs(out: &mut String, attrs: &[(&'static str, Attr)]) {
    if attrs.is_empty() {
        return;
    }
    for (i, (name, value)) in attrs.iter().enumerate() {
        let _ = write!(out, "{}{name} = ", if i > 0 { ", " } else { " {" });
        print_attr(out, value);
    }
    out.push('}');
}

fn region(out: &mut String, g: &Graph, indent: &str, next: &mut usize) {
    let inner = format!("{indent}  ");
    let mut names = labels(g);
    for n in &mut names {
        if n.starts_with(|c: char| c.is_ascii_digit()) {
            *n = next.to_string();
            *next += 1;
        }
    }
    let _ = write!(out, " {{\n{inner}^(");
    for (i, (n, &id)) in names.iter().zip(g.inputs()).enumerate() {
        let ty = g.ty(Value { node: id, result: 0 }).map_or(String::new(), Type::to_string);
        let _ = write!(out, "{}%{n}: {ty}", if i > 0 { ", " } else { "" });
    }
    out.push_str("):\n");
    for gd in g.guards() {
        guard(out, &inner, gd, &g.symbols);
    }
    statements(out, g, &inner, next, &names);
    let _ = write!(out, "{indent}}}");
}
