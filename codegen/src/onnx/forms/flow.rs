//! Control flow, and sizes that are data.

use super::Form;
use crate::onnx::build::{Cx, Val, branch as graph_attribute};
use crate::onnx::graph::{Node, branch};
use tgc_ir::ops::Repeat;
use tgc_ir::types::{DType, Dim};

/// From here on the symbol is the operand.
pub(super) fn bind(cx: &mut Cx<'_>, n: &Node<'_>, symbol: &str) -> Form {
    let one = cx.ints(&[1], "shape");
    let size = cx.node("Reshape", &[&n.ins[0], &one], Vec::new(), DType::I64);
    cx.sizes.insert(Dim::sym(symbol), size);
    Ok(Some(vec![n.ins[0].clone()]))
}

pub(super) fn cond(cx: &mut Cx<'_>, n: &Node<'_>) -> Form {
    let [yes, no] = n.regions else { return Ok(None) };
    let captured = &n.ins[1..];
    let then = branch(cx, yes, captured, 0)?;
    let other = branch(cx, no, captured, 0)?;
    let attrs = vec![graph_attribute("then_branch", then), graph_attribute("else_branch", other)];
    let outs: Vec<DType> = n.outs.iter().map(|t| t.dtype).collect();
    Ok(Some(cx.node_n("If", &[&n.ins[0]], attrs, &outs)))
}

pub(super) fn repeat(cx: &mut Cx<'_>, n: &Node<'_>, op: &Repeat) -> Form {
    let [body] = n.regions else { return Ok(None) };
    let carried = usize::try_from(op.carried).unwrap_or(0);
    let mut inside = vec![
        Val { name: cx.names.fresh("iteration"), dtype: DType::I64 },
        Val { name: cx.names.fresh("go_on"), dtype: DType::Bool },
    ];
    for v in &n.ins[2..2 + carried] {
        inside.push(Val { name: cx.names.fresh(&format!("{}_carried", v.name)), dtype: v.dtype });
    }
    inside.extend(n.ins[2 + carried..].iter().cloned());
    let graph = branch(cx, body, &inside, 2 + carried)?;
    let outs: Vec<DType> = n.outs.iter().map(|t| t.dtype).collect();
    let ins: Vec<&Val> = n.ins[..2 + carried].iter().collect();
    Ok(Some(cx.node_n("Loop", &ins, vec![graph_attribute("body", graph)], &outs)))
}
