//! `merge_siblings`: products of one value with several weights of one height become one product with the weights side by
//! side, and the results slices of it: the value is read and packed once, and one kernel has more to share among threads.
//! A bias and a factor that follow each product are merged with it.
//!
//! Only where all that reads the results are rearrangements or contractions, which read a slice as well as a whole
//! buffer (queries, keys and values of attention). Elementwise work stays an epilogue of its own product: a product merged
//! away from it would go through memory once more, which costs more than reading the value twice.
//!
//! Weights are joined here, in one pass over their bytes, as they are stored: what widens them (a cast and a scale) is
//! merged too and stays where it is.

use crate::pass::{Changed, Cx, Editor, Pass};
use crate::rules::splat::class;
use crate::rules::{pair, result, splat_of};
use std::collections::BTreeMap;
use tgc_ir::class::Class;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Add, Constant, Matmul, Mul, Op, Slice, Weight};
use tgc_ir::patch::{Edit, PVal, Patch};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{DType, Dim};

/// Most products merged to one: what is merged is computed, and kept, together.
const MOST: usize = 4;
/// Bytes up to which a weight with several readers is copied.
const SMALL: usize = 64 << 10;
/// Most nodes between a product and the weight it reads.
const DEPTH: usize = 6;

pub(crate) struct MergeSiblings;

impl Pass for MergeSiblings {
    const NAME: &'static str = "merge_siblings";
    const SUMMARY: &'static str = "makes one product of those of one value with several weights";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &["canonicalise", "fold_constants", "decompose"];

    fn run(editor: &mut Editor<'_>, cx: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = Changed::No;
        for group in groups(editor.graph(), cx) {
            let Some(edit) = merge(editor.graph(), &group, cx)? else { continue };
            if editor.apply(edit, "merge_matmul")?.is_none() {
                return Ok(changed);
            }
            changed = Changed::Yes;
        }
        Ok(changed)
    }
}

/// A product with a weight, and the bias and factor that follow it.
struct Sibling {
    x: Value,
    weight: Value,
    bias: Option<Value>,
    factor: Option<Scalar>,
    /// What is read of it all.
    end: Value,
    width: usize,
    dtype: DType,
}

/// Siblings that can be merged, two or more, in the graph's order.
fn groups(g: &Graph, cx: &Cx<'_>) -> Vec<Vec<Sibling>> {
    let mut by_kind: BTreeMap<(Value, String), Vec<Sibling>> = BTreeMap::new();
    let mut order: Vec<(Value, String)> = Vec::new();
    for id in g.topo() {
        let Some(s) = sibling(g, id) else { continue };
        let Some(kind) = kind(g, s.weight, s.width, DEPTH, cx) else { continue };
        let key = (s.x, kind);
        if !order.contains(&key) {
            order.push(key.clone());
        }
        by_kind.entry(key).or_default().push(s);
    }
    let mut out = Vec::new();
    for key in order {
        let mut list = by_kind.remove(&key).unwrap_or_default();
        while list.len() > 1 {
            let rest = list.split_off(list.len().min(MOST));
            out.push(std::mem::replace(&mut list, rest));
        }
    }
    out
}

fn sibling(g: &Graph, id: NodeId) -> Option<Sibling> {
    let Some(Op::Matmul(_)) = g.op_of(id) else { return None };
    let (x, weight) = pair(g, id)?;
    let shape = &g.ty(weight)?.shape;
    let [_, columns] = &shape[..] else { return None };
    let width = usize::try_from(columns.as_const()?).ok().filter(|n| *n > 0)?;
    let dtype = g.ty(result(id))?.dtype;
    let mut s = Sibling { x, weight, bias: None, factor: None, end: result(id), width, dtype };
    if !dtype.is_float() {
        return None;
    }
    if let Some((add, b)) = only_reader(g, s.end)
        && let (Some(Op::Add(_)), Some(t)) = (g.op_of(add), g.ty(b))
        && t.rank() == 1
        && t.shape.first() == Some(columns)
        && matches!(g.op_of(b.node), Some(Op::Weight(_) | Op::Constant(_)))
    {
        s.bias = Some(b);
        s.end = result(add);
    }
    if let Some((mul, c)) = only_reader(g, s.end)
        && let (Some(Op::Mul(_)), Some(c)) = (g.op_of(mul), splat_of(g, c))
        && g.ty(result(mul)) == g.ty(s.end)
    {
        s.factor = Some(c);
        s.end = result(mul);
    }
    let reads_part = |u: NodeId| matches!(class(g, u), Some(Class::View(_) | Class::Contract(_)));
    let readers = g.users(s.end);
    let fine = !g.is_output(s.end) && !readers.is_empty() && readers.iter().all(|u| reads_part(u.0));
    fine.then_some(s)
}

/// The node that alone reads `v`, and its other operand.
fn only_reader(g: &Graph, v: Value) -> Option<(NodeId, Value)> {
    let [(user, _)] = g.users(v)[..] else { return None };
    let (a, b) = pair(g, user)?;
    if g.is_output(v) || (a != v && b != v) {
        return None;
    }
    Some((user, if a == v { b } else { a }))
}

/// How a product's weight is made, in words that are equal for weights that can be put side by side; None for what is
/// not made from weights as wide as the product, or from weights that others read too.
fn kind(g: &Graph, v: Value, width: usize, depth: usize, cx: &Cx<'_>) -> Option<String> {
    let t = g.ty(v)?;
    let op = g.op_of(v.node)?;
    if let Some(c) = splat_of(g, v).filter(|_| matches!(op, Op::Constant(_))) {
        return Some(format!("{c:?} {}", t.rank()));
    }
    if let Op::Weight(w) = op {
        let columns = t.shape.last()?.as_const()? == width as i64;
        let size = cx.weights.get(&w.name)?.data.bytes().len();
        let free = cx.weight_uses.get(&w.name) == Some(&1) || size <= SMALL;
        let outer = &t.shape[..t.rank() - 1];
        return (columns && free && size > 0).then(|| format!("{} {outer:?}", t.dtype));
    }
    let operands = g.operands(v.node);
    if depth == 0 || operands.is_empty() || !matches!(class(g, v.node)?, Class::Map(_)) {
        return None;
    }
    // One operand at least is as wide as the result, or merged it would have another shape.
    let wide = |x: &Value| g.ty(*x).is_some_and(|x| x.shape.last() == t.shape.last());
    if !operands.iter().any(|x| wide(x) && splat_of(g, *x).is_none()) {
        return None;
    }
    let mut parts = vec![format!("{} {:?}", op.name(), op.attrs().into_iter().collect::<Vec<_>>())];
    for x in operands {
        parts.push(kind(g, x, width, depth - 1, cx)?);
    }
    Some(format!("({})", parts.join(", ")))
}

fn merge(g: &Graph, group: &[Sibling], cx: &mut Cx<'_>) -> Result<Option<Edit>, Diag> {
    let Some(first) = group.first() else { return Ok(None) };
    let widths: Vec<usize> = group.iter().map(|s| s.width).collect();
    let mut p = Patch::new(g, first.end.node);
    let weights: Vec<Value> = group.iter().map(|s| s.weight).collect();
    let Some(weight) = side_by_side(g, &weights, &mut p, cx)? else { return Ok(None) };
    let mut all = p.op(Matmul {}, &[PVal::Old(first.x), weight])?;
    if group.iter().any(|s| s.bias.is_some()) {
        let parts: Option<Vec<Tensor>> = group.iter().map(|s| bias(g, s, cx)).collect();
        let Some(parts) = parts else { return Ok(None) };
        let name = group.iter().find_map(|s| weight_name(g, s.bias?)).unwrap_or("bias");
        let vector = add_weight(&mut p, cx, name, joined(&parts))?;
        for s in group {
            cx.replaced.extend(s.bias.and_then(|b| weight_name(g, b)).map(String::from));
        }
        all = p.op(Add {}, &[all, vector])?;
    }
    if group.iter().any(|s| s.factor.is_some()) {
        // A product with 1 changes nothing.
        let one = Scalar::from_f64(first.dtype, 1.0);
        let of = |s: &Sibling| std::iter::repeat_n(s.factor.unwrap_or(one), s.width);
        let vector = Tensor::from_scalars(first.dtype, &[widths.iter().sum()], group.iter().flat_map(of));
        let vector = p.op(Constant { value: vector, shape: None }, &[])?;
        all = p.op(Mul {}, &[all, vector])?;
    }
    let mut at = 0;
    for s in group {
        let Some(sizes) = g.ty(s.end).map(|t| t.shape.clone()) else { return Ok(None) };
        let mut starts = vec![Dim::from(0); sizes.len()];
        if let Some(last) = starts.last_mut() {
            *last = Dim::from(at);
        }
        at += s.width;
        let part = p.op(Slice { steps: vec![1; sizes.len()], starts, sizes }, &[all])?;
        if p.ty(part) != g.ty(s.end) {
            return Ok(None);
        }
        p.replace(s.end, part);
    }
    Ok(Some(p.finish()))
}

/// Values of one kind with their columns one after another.
fn side_by_side(
    g: &Graph,
    values: &[Value],
    p: &mut Patch<'_>,
    cx: &mut Cx<'_>,
) -> Result<Option<PVal>, Diag> {
    let Some(&first) = values.first() else { return Ok(None) };
    if let Some(c) = splat_of(g, first) {
        // Of one kind, so all the same; a matrix of them is as wide as what it is combined with.
        return Ok(Some(p.op(Constant::scalar(c), &[])?));
    }
    if let Some(name) = weight_name(g, first) {
        let tensors: Option<Vec<Tensor>> =
            values.iter().map(|v| cx.weights.get(weight_name(g, *v)?).cloned()).collect();
        let Some(tensors) = tensors else { return Ok(None) };
        let new = add_weight(p, cx, name, joined(&tensors))?;
        cx.replaced.extend(values.iter().filter_map(|v| weight_name(g, *v)).map(String::from));
        return Ok(Some(new));
    }
    let Some(op) = g.op_of(first.node) else { return Ok(None) };
    let mut args = Vec::new();
    for i in 0..g.operands(first.node).len() {
        let column: Option<Vec<Value>> = values.iter().map(|v| g.operands(v.node).get(i).copied()).collect();
        let Some(column) = column else { return Ok(None) };
        let Some(arg) = side_by_side(g, &column, p, cx)? else { return Ok(None) };
        args.push(arg);
    }
    Ok(Some(p.op(op.clone(), &args)?))
}

fn weight_name(g: &Graph, v: Value) -> Option<&str> {
    if let Some(Op::Weight(w)) = g.op_of(v.node) { Some(&w.name) } else { None }
}

/// Elements of a bias; where there is none, -0.0, which added changes nothing.
fn bias(g: &Graph, s: &Sibling, cx: &Cx<'_>) -> Option<Tensor> {
    let fill = |v: Scalar| Tensor::from_scalars(s.dtype, &[s.width], std::iter::repeat_n(v, s.width));
    let Some(b) = s.bias else { return Some(fill(Scalar::from_f64(s.dtype, -0.0))) };
    if let Some(c) = splat_of(g, b) {
        return Some(fill(c));
    }
    if let Some(Op::Constant(c)) = g.op_of(b.node) {
        return Some(c.value.clone());
    }
    cx.weights.get(weight_name(g, b)?).cloned()
}

fn add_weight(p: &mut Patch<'_>, cx: &mut Cx<'_>, base: &str, value: Tensor) -> Result<PVal, Diag> {
    let shape = value.shape.iter().map(|d| Dim::from(*d)).collect();
    let dtype = value.dtype;
    let name = cx.add_weight(&format!("{base}.merged"), value);
    cx.replaced.push(name.clone());
    p.op(Weight { name, dtype, shape }, &[])
}

/// Tensors that differ in their last dim only, joined along it.
fn joined(parts: &[Tensor]) -> Tensor {
    let Some(first) = parts.first() else { return Tensor::from_f64(DType::F32, &[0], &[]) };
    let width = |t: &Tensor| t.shape.last().copied().unwrap_or(1);
    let rows = first.numel() / width(first).max(1);
    let mut bytes = Vec::with_capacity(parts.iter().map(|t| t.data.bytes().len()).sum());
    for row in 0..rows {
        for t in parts {
            let n = width(t) * t.dtype.size();
            bytes.extend_from_slice(t.data.bytes().get(row * n..(row + 1) * n).unwrap_or(&[]));
        }
    }
    let mut shape = first.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = parts.iter().map(width).sum();
    }
    Tensor { dtype: first.dtype, shape, data: Data::new(bytes) }
}
