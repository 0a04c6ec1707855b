//! Reductions, running sums and normalisations.

use super::{Form, axis, direct, epsilon, one, operator};
use crate::onnx::build::{Cx, int, ints};
use crate::onnx::graph::Node;
use tgc_ir::ops::{ArgMax, BatchNorm, CumSum, LayerNorm, ReduceMean};
use tgc_ir::types::DType;

/// From this opset on all reductions take their axes as an operand; sums do so from the oldest on.
const AXES_AS_OPERAND: i64 = 18;

pub(super) fn reduce(cx: &mut Cx<'_>, n: &Node<'_>, name: &str, axes: &[i64], keepdims: bool) -> Form {
    let (x, d) = (&n.ins[0], n.outs[0].dtype);
    if axes.is_empty() {
        return Ok(Some(vec![x.clone()]));
    }
    let mut attrs = vec![int("keepdims", i64::from(keepdims))];
    if name == "ReduceSum" || cx.opset >= AXES_AS_OPERAND {
        let axes = cx.ints(axes, "axes");
        return one(cx.typed1(name, &[x, &axes], attrs, d));
    }
    attrs.push(ints("axes", axes));
    one(cx.typed1(name, &[x], attrs, d))
}

pub(super) fn mean(cx: &mut Cx<'_>, n: &Node<'_>, op: &ReduceMean) -> Form {
    // the mean of integers divides a sum that has wrapped in their own type
    if !direct(cx, n, "ReduceMean") && n.ins[0].dtype.is_int() {
        return Ok(None);
    }
    reduce(cx, n, "ReduceMean", &op.axes, op.keepdims)
}

pub(super) fn arg_max(cx: &mut Cx<'_>, n: &Node<'_>, op: &ArgMax) -> Form {
    let name = if op.smallest { "ArgMin" } else { "ArgMax" };
    let mut attrs = vec![int("axis", op.axis), int("keepdims", i64::from(op.keepdims))];
    if op.last {
        attrs.push(int("select_last_index", 1));
    }
    one(cx.typed1(name, &[&n.ins[0]], attrs, DType::I64))
}

pub(super) fn cum_sum(cx: &mut Cx<'_>, n: &Node<'_>, op: &CumSum) -> Form {
    let mut attrs = Vec::new();
    if op.exclusive {
        attrs.push(int("exclusive", 1));
    }
    if op.reverse {
        attrs.push(int("reverse", 1));
    }
    let at = axis(op.axis, n.in_types[0].rank());
    let at = cx.num(DType::I64, at as f64);
    one(cx.typed1("CumSum", &[&n.ins[0], &at], attrs, n.outs[0].dtype))
}

/// One node where the axes are the last ones; what it computes first is in f32, so f64 keeps its parts.
pub(super) fn layer_norm(cx: &mut Cx<'_>, n: &Node<'_>, op: &LayerNorm) -> Form {
    let Some(name) = operator(cx, n) else { return Ok(None) };
    let rank = n.in_types[0].rank();
    let mut axes: Vec<usize> = op.axes.iter().map(|a| axis(*a, rank)).collect();
    axes.sort_unstable();
    let last = !axes.is_empty() && axes.iter().copied().eq(rank - axes.len()..rank);
    if !last || n.ins[0].dtype == DType::F64 {
        return Ok(None);
    }
    let attrs = vec![int("axis", axes[0] as i64 - rank as i64), epsilon(op.epsilon)];
    one(cx.typed1(name, &n.ins.iter().collect::<Vec<_>>(), attrs, n.outs[0].dtype))
}

pub(super) fn batch_norm(cx: &mut Cx<'_>, n: &Node<'_>, op: &BatchNorm) -> Form {
    let Some(name) = operator(cx, n) else { return Ok(None) };
    let d = n.ins[0].dtype;
    if n.ins.iter().any(|v| v.dtype != d) {
        return Ok(None);
    }
    one(cx.typed1(name, &n.ins.iter().collect::<Vec<_>>(), vec![epsilon(op.epsilon)], d))
}
