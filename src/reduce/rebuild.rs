//! A graph made anew with a change: some outputs only, values replaced by inputs or by other values, other sizes. What
//! nothing reads any more is left out, inputs too.

use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::Loc;
use tgc_ir::graph::{Graph, Guard, NodeId, Value};
use tgc_ir::module::{Entry, Module};
use tgc_ir::ops::{Attr, Attrs, Input, Op};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Atom, Dim, Type};

/// What is to be different.
#[derive(Default)]
pub(super) struct Change<'f> {
    /// Outputs that stay, by number; all without.
    pub outputs: Option<BTreeSet<usize>>,
    /// Values that become inputs.
    pub inputs: BTreeSet<Value>,
    /// Values in whose place others are read.
    pub instead: BTreeMap<Value, Value>,
    /// Other sizes.
    pub dims: Option<&'f dyn Fn(&Dim) -> Dim>,
}

impl Change<'_> {
    fn dim(&self, d: &Dim) -> Dim {
        self.dims.map_or_else(|| d.clone(), |f| f(d))
    }

    fn read(&self, v: Value) -> Value {
        self.instead.get(&v).copied().unwrap_or(v)
    }
}

/// The module with a change in one entry; None where some op does not accept it.
pub(super) fn rebuild(module: &Module, entry: &str, change: &Change<'_>) -> Option<Module> {
    let old = &module.entries.get(entry)?.body;
    let mut weights = module.weights.clone();
    let body = graph(old, change, &mut |name, shape| {
        let t = weights.get(name).filter(|t| t.shape != shape)?;
        let cut = cut(t, shape)?;
        weights.insert(name.to_string(), cut)
    })?;
    let mut out = module.clone();
    out.entries.insert(entry.to_string(), Entry { variants: Vec::new(), body });
    out.weights = weights;
    drop_weights(&mut out);
    Some(out)
}

/// Removes weights that no graph reads.
pub(super) fn drop_weights(module: &mut Module) {
    let mut weights = std::mem::take(&mut module.weights);
    weights.retain(|name, _| module.graphs().any(|g| g.ids().iter().any(|&i| reads(g, i, name))));
    module.weights = weights;
}

fn reads(g: &Graph, id: NodeId, weight: &str) -> bool {
    let inner =
        |n: &tgc_ir::graph::Node| n.regions.iter().any(|r| r.ids().iter().any(|&i| reads(r, i, weight)));
    match g.op_of(id) {
        Some(Op::Weight(w)) => w.name == weight,
        Some(Op::Input(i)) => i.default.as_deref() == Some(weight),
        _ => g.node(id).is_some_and(inner),
    }
}

fn graph(
    old: &Graph,
    change: &Change<'_>,
    resize: &mut dyn FnMut(&str, &[usize]) -> Option<Tensor>,
) -> Option<Graph> {
    let kept = |i: usize| change.outputs.as_ref().is_none_or(|o| o.contains(&i));
    let outputs: Vec<_> = old.outputs().iter().enumerate().filter(|(i, _)| kept(*i)).map(|o| o.1).collect();
    let live = live(old, change, outputs.iter().map(|o| o.value));
    let mut g = Graph::new(&old.name);
    g.symbols = old.symbols.clone();
    let mut at: BTreeMap<Value, Value> = BTreeMap::new();
    for id in old.topo().into_iter().filter(|id| live.contains(id)) {
        let node = old.node(id)?;
        for (r, fact) in node.results.iter().enumerate() {
            let v = Value { node: id, result: r as u32 };
            if change.inputs.contains(&v) {
                let shape = fact.ty.shape.iter().map(|d| change.dim(d)).collect();
                at.insert(v, g.input(&fresh(&g, old), Type::new(fact.ty.dtype, shape), node.loc.clone()));
            }
        }
        if change.inputs.contains(&Value { node: id, result: 0 }) {
            continue;
        }
        if let Op::Input(i) = &node.op {
            let shape = i.shape.iter().map(|d| change.dim(d)).collect();
            at.insert(
                Value { node: id, result: 0 },
                g.input_op(Input { shape, ..i.clone() }, node.loc.clone()),
            );
            continue;
        }
        let operands: Option<Vec<Value>> =
            old.operands(id).into_iter().map(|v| at.get(&change.read(v)).copied()).collect();
        let op = changed(&node.op, change)?;
        if let Op::Weight(w) = &op {
            let shape: Option<Vec<usize>> =
                w.shape.iter().map(|d| d.as_const().and_then(|d| usize::try_from(d).ok())).collect();
            resize(&w.name, &shape?);
        }
        let new = g.add(op, &operands?, node.regions.clone(), node.loc.clone()).ok()?;
        for r in 0..node.results.len() as u32 {
            at.insert(Value { node: id, result: r }, Value { node: new, result: r });
        }
    }
    for o in outputs {
        g.output(&o.name, *at.get(&change.read(o.value))?);
    }
    drop_symbols(&mut g, old, change);
    Some(g)
}

/// Symbols of no input go; the old guards about those that stay stay.
fn drop_symbols(g: &mut Graph, old: &Graph, change: &Change<'_>) {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut note = |d: &Dim| {
        d.leaves(&mut |a| {
            if let Atom::Sym(s) = a {
                used.insert(s.to_string());
            }
        });
    };
    for node in g.ids() {
        g.node(node).iter().flat_map(|n| &n.results).flat_map(|f| &f.ty.shape).for_each(&mut note);
    }
    let mut table = tgc_ir::types::SymTable::default();
    for (name, info) in old.symbols.iter().filter(|s| used.contains(&**s.0)) {
        table.insert(name, info.clone());
    }
    g.symbols = table;
    for guard in old.guards() {
        let pred = guard.pred.map(&|d| change.dim(d));
        let mut known = true;
        pred.dims(&mut |d| known &= !d.any_leaf(|a| matches!(a, Atom::Sym(s) if !used.contains(&**s))));
        if known {
            g.guard(Guard { pred, why: guard.why.clone(), at: Loc::default() });
        }
    }
}

/// Nodes that the outputs need after the change.
fn live(g: &Graph, change: &Change<'_>, outputs: impl Iterator<Item = Value>) -> BTreeSet<NodeId> {
    let mut live = BTreeSet::new();
    let mut todo: Vec<Value> = outputs.map(|v| change.read(v)).collect();
    while let Some(v) = todo.pop() {
        if live.insert(v.node) && !change.inputs.contains(&v) {
            todo.extend(g.operands(v.node).into_iter().map(|v| change.read(v)));
        }
    }
    live
}

/// A name that no input has, of either graph.
fn fresh(g: &Graph, old: &Graph) -> String {
    let taken = |name: &str| {
        let is = |g: &Graph, id| matches!(g.op_of(id), Some(Op::Input(i)) if i.name == name);
        g.inputs().iter().any(|&id| is(g, id)) || old.inputs().iter().any(|&id| is(old, id))
    };
    (0..).map(|i| format!("v{i}")).find(|n| !taken(n)).unwrap_or_default()
}

/// The op with other sizes in its attributes.
fn changed(op: &Op, change: &Change<'_>) -> Option<Op> {
    if change.dims.is_none() {
        return Some(op.clone());
    }
    let mut attrs = Attrs::new();
    for (name, a) in op.attrs() {
        let a = match a {
            Attr::Dim(d) => Attr::Dim(change.dim(&d)),
            Attr::Dims(v) => Attr::Dims(v.iter().map(|d| change.dim(d)).collect()),
            Attr::Tensor(t) => {
                let to =
                    |d: &usize| change.dim(&Dim::from(*d)).as_const().and_then(|d| usize::try_from(d).ok());
                let shape: Option<Vec<usize>> = t.shape.iter().map(to).collect();
                Attr::Tensor(cut(&t, &shape?)?)
            }
            a => a,
        };
        attrs.insert(name.to_string(), a);
    }
    Op::from_attrs(op.name(), attrs)?.ok()
}

/// The first elements on every axis.
fn cut(t: &Tensor, shape: &[usize]) -> Option<Tensor> {
    if t.shape == shape {
        return Some(t.clone());
    }
    let fits = t.shape.len() == shape.len() && shape.iter().zip(&t.shape).all(|(a, b)| a <= b);
    fits.then_some(())?;
    let n: usize = shape.iter().product();
    let place = |mut i: usize| {
        let (mut at, mut stride) = (0, 1);
        for (&new, &old) in shape.iter().zip(&t.shape).rev() {
            at += i % new * stride;
            i /= new;
            stride *= old;
        }
        at
    };
    Some(Tensor::from_scalars(t.dtype, shape, (0..n).map(|i| t.get(place(i)))))
}
