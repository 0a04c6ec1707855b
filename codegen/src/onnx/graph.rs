//! The walk over a module's graph: inputs, nodes, regions, outputs, and what is written for an op that has no form of its
//! own: its decomposition, or its scalar program. No op but those of structure is named here.

use super::build::{Cx, Source, Val, branch as graph_attribute};
use super::{forms, scalar, types};
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::class::Class;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::module::{Entry, Variant};
use tgc_ir::ops::{Lowering, Onnx, Op};
use tgc_ir::scalar::ENode;
use tgc_ir::types::{DType, Type};
use tgc_proto::{GraphProto, NodeProto, ValueInfoProto};

/// A node of the tensor graph, as the forms of ops see it.
pub(super) struct Node<'a> {
    pub(super) op: &'a Op,
    pub(super) ins: Vec<Val>,
    pub(super) in_types: Vec<Type>,
    pub(super) outs: Vec<Type>,
    pub(super) regions: &'a [Graph],
}

/// Values of a graph that is being written; None for what a blocker keeps from being written.
type Env = BTreeMap<Value, Option<Val>>;

/// Declares the inputs and writes the nodes of an entry. Gives its inputs and outputs.
pub(super) fn entry(cx: &mut Cx<'_>, entry: &Entry) -> (Vec<ValueInfoProto>, Vec<ValueInfoProto>) {
    let g = &entry.body;
    let (inputs, given) = inputs(cx, g);
    cx.outputs = output_names(g);
    for (name, o) in cx.outputs.clone().iter().zip(g.outputs()) {
        let same = given.iter().any(|v| v.name == *name) && g.inputs().contains(&o.value.node);
        if !cx.names.take(name) && !same {
            cx.at = Loc::default();
            let m = format!("output `{name}` has the name of an input or of another output");
            cx.blockers.push(cx.fail("E-EXP-001", m).help("rename one of them"));
        }
    }
    let found = match &entry.variants[..] {
        [] => body(cx, g, environment(g, &given), true),
        variants => match chosen(cx, variants, g, &given) {
            Ok(v) => v.into_iter().map(Some).collect(),
            Err(d) => {
                cx.blockers.push(d);
                Vec::new()
            }
        },
    };
    let mut outputs = Vec::new();
    for ((name, o), v) in cx.outputs.clone().iter().zip(g.outputs()).zip(found) {
        if let Some(v) = v.filter(|v| v.name != *name) {
            named_copy(cx, &v, name);
        }
        outputs.extend(g.ty(o.value).map(|ty| cx.value_info(name, ty)));
    }
    cx.nodes = prune(std::mem::take(&mut cx.nodes), &outputs);
    let mut used: BTreeSet<String> = inputs.iter().chain(&outputs).filter_map(|v| v.name.clone()).collect();
    cx.nodes.iter().for_each(|n| reads(n, &mut used));
    cx.initializers.retain(|t| t.name.as_ref().is_some_and(|n| used.contains(n)));
    (inputs, outputs)
}

/// Declares the inputs, with the defaults that they have.
fn inputs(cx: &mut Cx<'_>, g: &Graph) -> (Vec<ValueInfoProto>, Vec<Val>) {
    let (mut declared, mut given) = (Vec::new(), Vec::new());
    for (i, id) in g.inputs().iter().enumerate() {
        let (Some(Op::Input(input)), Some(ty)) = (g.op_of(*id), g.ty(Value { node: *id, result: 0 })) else {
            continue;
        };
        cx.at = g.loc(*id);
        let name = if input.name.is_empty() { format!("input_{i}") } else { input.name.clone() };
        if !cx.names.take(&name) {
            let m = format!("two inputs are called `{name}`");
            cx.blockers.push(cx.fail("E-EXP-001", m).help("rename one of them"));
        }
        if let Err(d) = cx.storable(ty.dtype) {
            cx.blockers.push(d);
        }
        let v = Val { name, dtype: ty.dtype };
        for (axis, size) in ty.shape.iter().enumerate() {
            cx.sources.push(Source { input: v.clone(), axis, size: size.clone() });
        }
        cx.types.insert(v.name.clone(), ty.clone());
        declared.push(cx.input_info(&v.name, ty));
        if let Some(w) = &input.default
            && let Err(d) = cx.default(&v.name, w)
        {
            cx.blockers.push(d);
        }
        given.push(v);
    }
    (declared, given)
}

fn output_names(g: &Graph) -> Vec<String> {
    let name = |(i, o): (usize, &tgc_ir::graph::Output)| {
        if o.name.is_empty() { format!("output_{i}") } else { o.name.to_string() }
    };
    g.outputs().iter().enumerate().map(name).collect()
}

fn environment(g: &Graph, given: &[Val]) -> Env {
    let inputs = g.inputs().iter().map(|id| Value { node: *id, result: 0 });
    inputs.zip(given.iter().cloned().map(Some)).collect()
}

/// The results of the first variant whose condition holds, else of the body. A case that cannot run has no form in ONNX, and is
/// left out like the guards.
fn chosen(cx: &mut Cx<'_>, variants: &[Variant], body: &Graph, ins: &[Val]) -> Result<Vec<Val>, Diag> {
    let Some((first, rest)) = variants.split_first() else { return inline(cx, body, ins) };
    let Ok(special) = &first.body else { return chosen(cx, rest, body, ins) };
    let condition = cx.condition(&first.when)?;
    let symbols = std::mem::replace(&mut cx.symbols, special.symbols.clone());
    let then = branch(cx, special, ins, 0);
    cx.symbols = symbols;
    let types = output_types(body);
    let other = nested(cx, &types, |cx| chosen(cx, rest, body, ins))?;
    let attrs = vec![graph_attribute("then_branch", then?), graph_attribute("else_branch", other)];
    let outs: Vec<DType> = types.iter().map(|t| t.dtype).collect();
    Ok(cx.node_n("If", &[&condition], attrs, &outs))
}

fn output_types(g: &Graph) -> Vec<Type> {
    g.outputs().iter().filter_map(|o| g.ty(o.value).cloned()).collect()
}

fn named_copy(cx: &mut Cx<'_>, v: &Val, name: &str) {
    cx.stem = String::new();
    let copy = cx.node("Identity", &[v], Vec::new(), v.dtype);
    if let Some(o) = cx.nodes.last_mut().and_then(|n| n.output.iter_mut().find(|o| **o == copy.name)) {
        *o = name.to_string();
    }
}

/// Writes the nodes that the outputs need; gives the outputs. At the top the outputs get their names.
fn body(cx: &mut Cx<'_>, g: &Graph, mut env: Env, top: bool) -> Vec<Option<Val>> {
    let live = live(g);
    for id in g.topo().into_iter().filter(|id| live.contains(id)) {
        let Some(node) = g.node(id) else { continue };
        if env.contains_key(&Value { node: id, result: 0 }) || matches!(node.op, Op::Input(_)) {
            continue;
        }
        let operands = g.operands(id);
        let ins: Option<Vec<Val>> = operands.iter().map(|v| env.get(v).cloned().flatten()).collect();
        let results = ins.and_then(|ins| {
            let (at, stem) = (cx.at.clone(), cx.stem.clone());
            if !node.loc.place.is_empty() || node.loc.span.is_some() {
                cx.at = node.loc.clone();
                cx.stem = stem_of(&node.loc);
            }
            let in_types = operands.iter().filter_map(|v| g.ty(*v).cloned()).collect();
            let outs = node.results.iter().map(|f| f.ty.clone()).collect();
            let n = Node { op: &node.op, ins, in_types, outs, regions: &node.regions };
            let before = cx.nodes.len();
            let found = one(cx, &n);
            (cx.at, cx.stem) = (at, stem);
            match found {
                Ok(mut v) => {
                    if top {
                        name_outputs(cx, g, id, &mut v, before);
                    }
                    for (v, f) in v.iter().zip(&node.results) {
                        cx.types.insert(v.name.clone(), f.ty.clone());
                    }
                    Some(v)
                }
                Err(d) => {
                    cx.blockers.push(d);
                    None
                }
            }
        });
        for i in 0..node.results.len() {
            let v = results.as_ref().and_then(|r| r.get(i).cloned());
            env.insert(Value { node: id, result: i as u32 }, v);
        }
    }
    g.outputs().iter().map(|o| env.get(&o.value).cloned().flatten()).collect()
}

/// Nodes that outputs need, binders of the symbols in their types included.
fn live(g: &Graph) -> BTreeSet<NodeId> {
    let mut found = BTreeSet::new();
    let mut todo: Vec<NodeId> = g.outputs().iter().map(|o| o.value.node).collect();
    todo.extend(g.ids().into_iter().filter(|id| matches!(g.op_of(*id), Some(Op::BindDim(_)))));
    while let Some(id) = todo.pop() {
        if found.insert(id) {
            todo.extend(g.operands(id).into_iter().map(|v| v.node));
        }
    }
    found
}

/// Gives results that are outputs of the model the outputs' names, where a node written since `before` makes them.
fn name_outputs(cx: &mut Cx<'_>, g: &Graph, id: NodeId, found: &mut [Val], before: usize) {
    for (i, v) in found.iter_mut().enumerate() {
        let value = Value { node: id, result: i as u32 };
        let Some(at) = g.outputs().iter().position(|o| o.value == value) else { continue };
        let name = cx.outputs[at].clone();
        let Some(new) = cx.nodes.get_mut(before..) else { continue };
        if !new.iter().any(|n| n.output.contains(&v.name)) {
            continue;
        }
        new.iter_mut().for_each(|n| rename(n, &v.name, &name));
        cx.sizes.values_mut().filter(|s| s.name == v.name).for_each(|s| s.name = name.clone());
        if let Some(m) = cx.made.remove(&v.name) {
            cx.made.insert(name.clone(), m);
        }
        v.name = name;
    }
}

/// Takes out nodes whose results nobody reads.
fn prune(nodes: Vec<NodeProto>, outputs: &[ValueInfoProto]) -> Vec<NodeProto> {
    let mut used: BTreeSet<String> = outputs.iter().filter_map(|o| o.name.clone()).collect();
    let mut kept: Vec<NodeProto> = Vec::with_capacity(nodes.len());
    for n in nodes.into_iter().rev() {
        if n.output.iter().any(|o| used.contains(o)) {
            reads(&n, &mut used);
            kept.push(n);
        }
    }
    kept.reverse();
    kept
}

/// Everything a node reads, in its branches too.
pub(super) fn reads(n: &NodeProto, used: &mut BTreeSet<String>) {
    used.extend(n.input.iter().cloned());
    for g in n.attribute.iter().filter_map(|a| a.g.as_ref()) {
        used.extend(g.output.iter().filter_map(|o| o.name.clone()));
        g.node.iter().for_each(|n| reads(n, used));
    }
}

fn rename(n: &mut NodeProto, from: &str, to: &str) {
    n.input.iter_mut().chain(&mut n.output).filter(|s| *s == from).for_each(|s| *s = to.to_string());
    for g in n.attribute.iter_mut().filter_map(|a| a.g.as_mut()) {
        g.node.iter_mut().for_each(|n| rename(n, from, to));
    }
}

/// The name of the layer or node a place speaks of: what is in backquotes, or in parentheses at the end.
fn stem_of(loc: &Loc) -> String {
    let place = &loc.place;
    if let Some(name) = place.split('`').nth(1).filter(|n| !n.is_empty()) {
        return name.to_string();
    }
    let path = place.strip_suffix(')').and_then(|p| p.rsplit_once('(')).map(|p| p.1);
    path.unwrap_or_default().to_string()
}

/// Writes one node: the form of its op, else its decomposition or scalar program.
fn one(cx: &mut Cx<'_>, n: &Node<'_>) -> Result<Vec<Val>, Diag> {
    if let Some(found) = forms::form(cx, n)? {
        return Ok(found);
    }
    let missing = |cx: &Cx<'_>| {
        let m = format!("`{}` has no form in ONNX", n.op.name());
        cx.fail("E-EXP-002", m).help("compute it another way, or build the model with tgc build instead")
    };
    match n.op.lower(&n.in_types, &n.outs, &cx.symbols)? {
        Lowering::Decompose(g) | Lowering::Template(_, g) => inline(cx, &g, &n.ins),
        Lowering::Class(Class::Map(map)) => {
            let alone = map.expr.nodes.iter().filter(|e| !matches!(e.0, ENode::Arg(_))).count() == 1;
            match n.op.spec().onnx {
                Onnx::Op(name, since, last)
                    if !alone && (since..=last).contains(&cx.opset) && n.op.attrs().is_empty() =>
                {
                    let ins: Vec<&Val> = n.ins.iter().collect();
                    if ins.iter().all(|v| types::runs(name, cx.opset, v.dtype)) {
                        return Ok(vec![cx.typed1(name, &ins, Vec::new(), n.outs[0].dtype)?]);
                    }
                    scalar::program(cx, &map.expr, &n.ins)
                }
                _ => scalar::program(cx, &map.expr, &n.ins),
            }
        }
        Lowering::Class(_) | Lowering::Structure => Err(missing(cx)),
    }
}

/// Writes a region in place, with these values as its inputs.
pub(super) fn inline(cx: &mut Cx<'_>, g: &Graph, ins: &[Val]) -> Result<Vec<Val>, Diag> {
    let env = environment(g, ins);
    let known = cx.blockers.len();
    let found: Option<Vec<Val>> = body(cx, g, env, false).into_iter().collect();
    match found {
        Some(v) => Ok(v),
        None if cx.blockers.len() > known => Err(cx.blockers.swap_remove(known)),
        None => Err(cx.fail("E-BUG", "a result of a region is not in the region")),
    }
}

/// A region as a graph of its own, which may read everything outside: its inputs are these values, of which the first
/// `parameters` have no value outside.
pub(super) fn branch(cx: &mut Cx<'_>, g: &Graph, ins: &[Val], parameters: usize) -> Result<GraphProto, Diag> {
    let types = g.inputs().iter().filter_map(|id| g.ty(Value { node: *id, result: 0 }));
    let input = ins.iter().zip(types).take(parameters).map(|(v, t)| cx.value_info(&v.name, t)).collect();
    let graph = nested(cx, &output_types(g), |cx| inline(cx, g, ins))?;
    Ok(GraphProto { input, ..graph })
}

/// What `f` writes, and its results of these types, as a graph of its own without inputs.
fn nested(
    cx: &mut Cx<'_>,
    types: &[Type],
    f: impl FnOnce(&mut Cx<'_>) -> Result<Vec<Val>, Diag>,
) -> Result<GraphProto, Diag> {
    let (nodes, sizes) = (std::mem::take(&mut cx.nodes), cx.sizes.clone());
    let found = f(cx);
    let mut output: Vec<ValueInfoProto> = Vec::new();
    for (v, ty) in found.iter().flatten().zip(types) {
        let made = cx.nodes.iter().any(|n| n.output.contains(&v.name));
        let twice = output.iter().any(|o| o.name.as_deref() == Some(&*v.name));
        let copied = !made || twice;
        let name = if copied { cx.node("Identity", &[v], Vec::new(), v.dtype).name } else { v.name.clone() };
        output.push(cx.value_info(&name, ty));
    }
    let node = prune(std::mem::replace(&mut cx.nodes, nodes), &output);
    cx.sizes = sizes;
    found?;
    let name = format!("{}_branch", if cx.stem.is_empty() { "region" } else { &cx.stem });
    Ok(GraphProto { node, name: Some(name), output, ..GraphProto::default() })
}
