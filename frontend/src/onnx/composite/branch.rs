//! `If`: a known condition takes its branch at once; else both become regions of a `cond` node.

use crate::onnx::check::Res;
use crate::onnx::graph::{Scope, Slot, reads};
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use std::collections::BTreeSet;
use tgc_ir::diag::Loc;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::ops::{Cond, Op};
use tgc_ir::types::KnownElem;
use tgc_proto::GraphProto;

pub(crate) const ROWS: &[Row] = &[("If", 1, ANY, branch)];

fn branch(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (yes, no) = (cx.attrs.graph("then_branch")?, cx.attrs.graph("else_branch")?);
    for g in [yes, no] {
        if !g.input.is_empty() {
            return Err(cx.fail("E-ONNX-022", "a branch must not have inputs").into());
        }
        if g.output.len() != cx.outputs() {
            let m = format!("a branch has {} outputs, the node {}", g.output.len(), cx.outputs());
            return Err(cx.fail("E-ONNX-022", m).into());
        }
    }
    let c = cx.x(0)?;
    let known = cx.fact(c)?.known.and_then(|k| k.0.into_iter().next());
    let decided = match known {
        Some(KnownElem::Scalar(s)) => Some(s.is_true()),
        Some(KnownElem::Pred(p)) => p.decide_in(&cx.g.symbols),
        _ => None,
    };
    match decided {
        Some(taken) => {
            let mut scope = cx.scope.inner(&within(cx, taken));
            cx.im.subgraph(cx.g, &mut scope, if taken { yes } else { no })
        }
        None => regions(cx, c, yes, no),
    }
}

fn within(cx: &NodeCx<'_, '_>, taken: bool) -> String {
    format!(", {} branch of {}", if taken { "then" } else { "else" }, cx.loc.place)
}

/// Both branches as closed regions over the same captured values.
fn regions<'m>(cx: &mut NodeCx<'_, 'm>, c: Value, yes: &'m GraphProto, no: &'m GraphProto) -> Res<Vec<Value>> {
    let mut names: BTreeSet<&'m str> = BTreeSet::new();
    for g in [yes, no] {
        g.node.iter().for_each(|n| reads(n, &mut names));
        names.extend(g.output.iter().filter_map(|o| o.name.as_deref()));
    }
    // names defined inside a branch have no meaning out here, unless the file shadows one; then capturing is harmless
    let seen: Vec<(&'m str, Slot)> = names.iter().filter_map(|n| Some((*n, cx.scope.get(n)?))).collect();
    let mut operands = vec![cx.reshape(c, Vec::new())?];
    for (_, slot) in &seen {
        if let Slot::Val(v) = slot
            && constant(cx.g, *v).is_none()
            && !operands[1..].contains(v)
        {
            operands.push(*v);
        }
    }
    let mut bodies = Vec::with_capacity(2);
    let mut failed = None;
    for (taken, graph) in [(true, yes), (false, no)] {
        match region(cx, &seen, &operands[1..], taken, graph) {
            Ok(g) => bodies.push(g),
            Err(stop) => failed = Some(stop),
        }
    }
    if let Some(stop) = failed {
        return Err(stop);
    }
    let node = cx.g.add(Op::Cond(Cond {}), &operands, bodies, cx.loc.clone())?;
    Ok((0..yes.output.len() as u32).map(|result| Value { node, result }).collect())
}

fn constant(g: &Graph, v: Value) -> Option<Op> {
    match g.op_of(v.node) {
        Some(op @ (Op::Constant(_) | Op::ConstDims(_) | Op::Weight(_))) => Some(op.clone()),
        _ => None,
    }
}

fn region<'m>(
    cx: &mut NodeCx<'_, 'm>,
    seen: &[(&'m str, Slot)],
    captured: &[Value],
    taken: bool,
    graph: &'m GraphProto,
) -> Res<Graph> {
    let mut body = Graph::region(&cx.g.symbols);
    let mut scope: Scope<'_, 'm> = cx.scope.closed(&within(cx, taken));
    scope.region = true;
    let mut inside = Vec::with_capacity(captured.len());
    for (i, v) in captured.iter().enumerate() {
        let ty = cx.fact(*v)?.ty;
        inside.push(body.input(&format!("x{i}"), ty, Loc::default()));
    }
    for (name, slot) in seen {
        let slot = match slot {
            Slot::Val(v) => match (captured.iter().position(|c| c == v), constant(cx.g, *v)) {
                (Some(at), _) => Slot::Val(inside[at]),
                (None, Some(op)) => Slot::Val(body.op(op, &[], &cx.g.loc(v.node))?),
                (None, None) => Slot::Poison,
            },
            other => *other,
        };
        scope.define(name, slot);
    }
    let outs = cx.im.subgraph(&mut body, &mut scope, graph)?;
    for (i, v) in outs.into_iter().enumerate() {
        body.output(&format!("y{i}"), v);
    }
    Ok(body)
}
