//! The form of each op that is not merely its scalar program or its decomposition. This is the one place outside the op table
//! that knows ops one by one: an operator of ONNX is chosen by an op's meaning and attributes, which no class holds. What
//! is not listed here is written as its class or its decomposition, so that a new op of those kinds needs nothing.

mod flow;
mod indexed;
mod quant;
mod sums;
mod views;
mod windows;

use super::build::{Cx, Val, float, int, text};
use super::graph::{Node, inline};
use super::types::takes;
use tgc_ir::diag::Diag;
use tgc_ir::ops::{Onnx, Op};
use tgc_ir::types::DType;

/// What a form gives: results, or none where the op has no direct form in this opset.
type Form = Result<Option<Vec<Val>>, Diag>;

/// The results of an op by its direct form, if it has one in this opset.
pub(super) fn form(cx: &mut Cx<'_>, n: &Node<'_>) -> Form {
    match n.op {
        Op::Constant(c) => views::constant(cx, c),
        Op::ConstDims(c) => views::const_dims(cx, c),
        Op::Weight(w) => Ok(Some(vec![cx.weight(&w.name)?])),
        Op::BindDim(b) => flow::bind(cx, n, &b.symbol),
        Op::Fused(_) => match n.regions {
            [region] => inline(cx, region, &n.ins).map(Some),
            _ => Ok(None),
        },
        Op::Cond(_) => flow::cond(cx, n),
        Op::Repeat(r) => flow::repeat(cx, n, r),
        Op::Cast(c) => Ok(Some(vec![cx.cast(&n.ins[0], c.to)])),
        Op::Iota(i) => views::iota(cx, i),
        Op::Reshape(_) => views::reshape(cx, n),
        Op::Expand(_) => views::expand(cx, n),
        Op::Transpose(t) => views::transpose(cx, n, t),
        Op::Slice(s) => views::slice(cx, n, s),
        Op::Concat(c) => views::concat(cx, n, c),
        Op::Pad(p) => views::pad(cx, n, p),
        Op::ReduceSum(r) => sums::reduce(cx, n, "ReduceSum", &r.axes, r.keepdims),
        Op::ReduceMax(r) => sums::reduce(cx, n, "ReduceMax", &r.axes, r.keepdims),
        Op::ReduceMin(r) => sums::reduce(cx, n, "ReduceMin", &r.axes, r.keepdims),
        Op::ReduceProd(r) => sums::reduce(cx, n, "ReduceProd", &r.axes, r.keepdims),
        Op::ReduceMean(r) => sums::mean(cx, n, r),
        Op::ArgMax(a) => sums::arg_max(cx, n, a),
        Op::CumSum(c) => sums::cum_sum(cx, n, c),
        Op::Matmul(_) => quant::matmul(cx, n),
        Op::Conv(c) => windows::conv(cx, n, c),
        Op::MaxPool(p) => windows::max_pool(cx, n, p),
        Op::AvgPool(p) => windows::avg_pool(cx, n, p),
        Op::Gather(g) => indexed::gather(cx, n, "Gather", g.axis),
        Op::GatherElements(g) => indexed::gather(cx, n, "GatherElements", g.axis),
        Op::ScatterElements(s) => indexed::scatter(cx, n, s),
        Op::UpdateSlice(u) => indexed::update_slice(cx, n, u),
        Op::NonZero(_) => indexed::non_zero(cx, n),
        Op::TopK(t) => indexed::top_k(cx, n, t),
        Op::Softmax(s) => along_axis(cx, n, s.axis),
        Op::LogSoftmax(s) => along_axis(cx, n, s.axis),
        Op::LayerNorm(l) => sums::layer_norm(cx, n, l),
        Op::BatchNorm(b) => sums::batch_norm(cx, n, b),
        Op::Gelu(g) => gelu(cx, n, g.tanh),
        Op::Quantize(q) => quant::quantize(cx, n, q),
        Op::Dequantize(q) => quant::dequantize(cx, n, q),
        _ => Ok(None),
    }
}

/// The operator that the op table names for an op, if it exists in this opset.
fn operator(cx: &Cx<'_>, n: &Node<'_>) -> Option<&'static str> {
    match n.op.spec().onnx {
        Onnx::Op(name, since, last) if (since..=last).contains(&cx.opset) => Some(name),
        _ => None,
    }
}

fn one(v: Result<Val, Diag>) -> Form {
    v.map(|v| Some(vec![v]))
}

fn both<'a>(n: &'a Node<'_>) -> Vec<&'a Val> {
    n.ins.iter().collect()
}

/// The diagnostic of a form that exists in a later opset only.
fn needs(cx: &Cx<'_>, what: &str, since: i64) -> Diag {
    let m = format!("no form in opset {}: {what} exists from opset {since} on", cx.opset);
    cx.fail("E-EXP-002", m).help(format!("export with --opset {since} or newer"))
}

fn along_axis(cx: &mut Cx<'_>, n: &Node<'_>, axis: i64) -> Form {
    let Some(name) = operator(cx, n) else { return Ok(None) };
    one(cx.typed1(name, &both(n), vec![int("axis", axis)], n.outs[0].dtype))
}

fn gelu(cx: &mut Cx<'_>, n: &Node<'_>, tanh: bool) -> Form {
    let Some(name) = operator(cx, n) else { return Ok(None) };
    let attrs = if tanh { vec![text("approximate", "tanh")] } else { Vec::new() };
    one(cx.typed1(name, &both(n), attrs, n.outs[0].dtype))
}

/// An axis counted from the start.
fn axis(a: i64, rank: usize) -> usize {
    usize::try_from(if a < 0 { a + rank as i64 } else { a }).unwrap_or(0)
}

/// True where an operator takes the type of the first operand as it is.
fn direct(cx: &Cx<'_>, n: &Node<'_>, name: &str) -> bool {
    takes(name, cx.opset, n.ins[0].dtype)
}

/// The attribute of a small number that is added to a variance.
fn epsilon(v: f64) -> tgc_proto::AttributeProto {
    float("epsilon", v)
}

/// Indices as ONNX takes them.
fn index(cx: &mut Cx<'_>, v: &Val) -> Val {
    match v.dtype {
        DType::I32 | DType::I64 => v.clone(),
        _ => cx.cast(v, DType::I64),
    }
}
