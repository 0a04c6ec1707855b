//! `fold_constants`: evaluates what depends on constants (and weights) only, by the reference interpreter. Bounded: the
//! result is small and no larger than its operands unless tiny, and a weight is replaced only by something no larger, so
//! that narrow weights stay narrow.

use crate::pass::{Changed, Cx, Editor, Pass};
use crate::rules::splat::splat_constant;
use tgc_ir::class::Class;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Constant, Lowering, Op, Weight};
use tgc_ir::patch::{Edit, Patch};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Dim, Type};

/// Largest folded constant in bytes.
const MAX_RESULT: usize = 64 << 10;
/// A result up to this many bytes may be larger than its operands.
const TINY: usize = 1 << 10;
/// Most elementary steps spent on one fold, by a rough count.
const MAX_WORK: usize = 1 << 28;

pub(crate) struct FoldConstants;

impl Pass for FoldConstants {
    const NAME: &'static str = "fold_constants";
    const SUMMARY: &'static str = "evaluates what depends on constants only, within bounds";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &[];

    fn run(editor: &mut Editor<'_>, cx: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = Changed::No;
        for id in editor.graph().topo() {
            let Some(fold) = evaluate(editor.graph(), id, cx) else { continue };
            let (edit, rule) = replacement(editor.graph(), id, fold, cx)?;
            if editor.apply(edit, rule)?.is_none() {
                return Ok(changed);
            }
            changed = Changed::Yes;
        }
        Ok(changed)
    }
}

/// Values of a node's results, and the weights they were made from.
struct Fold {
    results: Vec<Tensor>,
    weights: Vec<String>,
}

/// Evaluates the node if all bounds hold. A node that cannot be evaluated (an index out of range, say) is left for the
/// program to report.
fn evaluate(g: &Graph, id: NodeId, cx: &Cx<'_>) -> Option<Fold> {
    let node = g.node(id)?;
    let operands = g.operands(id);
    if operands.is_empty() || !node.regions.is_empty() {
        return None;
    }
    let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
    let mut weights = Vec::new();
    let (mut held, mut most) = (0usize, 0usize);
    for v in &operands {
        let bytes = operand_bytes(g, *v, cx, &mut weights)?;
        held = held.saturating_add(bytes.0);
        most = most.max(bytes.1);
    }
    let sizes: Vec<usize> = outs.iter().map(bytes).collect::<Option<_>>()?;
    let size = sizes.iter().try_fold(0usize, |a, b| a.checked_add(*b))?;
    let class = class(g, id, &outs)?;
    let fits = if weights.is_empty() {
        size <= MAX_RESULT && (size <= held || size <= TINY) && size.saturating_mul(most) <= MAX_WORK
    } else {
        size <= held && matches!(class, Some(Class::Map(_) | Class::View(_)))
    };
    if !fits || weights.iter().any(|w| cx.weight_uses.get(w) != Some(&1)) {
        return None;
    }
    let ins: Vec<Tensor> = operands.iter().map(|v| tensor(g, *v, cx)).collect::<Option<_>>()?;
    let results =
        tgc_ir::interp::eval_node(&node.op, &ins, &[], &g.symbols, &Default::default(), &outs).ok()?;
    let right = results.len() == outs.len() && results.iter().zip(&outs).all(|(r, t)| r.ty() == *t);
    right.then_some(Fold { results, weights })
}

/// Bytes that would be freed with the operand, and bytes read; None unless it is a constant or a weight.
fn operand_bytes(g: &Graph, v: Value, cx: &Cx<'_>, weights: &mut Vec<String>) -> Option<(usize, usize)> {
    let op = g.op_of(v.node)?;
    let full = bytes(g.ty(v)?)?;
    if let Op::Constant(c) = op {
        return (full <= MAX_RESULT).then_some((c.value.data.bytes().len(), full));
    }
    let Op::Weight(w) = op else { return None };
    cx.weights.get(&w.name)?;
    weights.push(w.name.clone());
    Some((full, full))
}

/// The class of a core op (the inner None: a composite); None for structure.
fn class(g: &Graph, id: NodeId, outs: &[Type]) -> Option<Option<Class>> {
    let ins: Vec<Type> = g.operands(id).iter().map(|v| g.ty(*v).cloned()).collect::<Option<_>>()?;
    match g.op_of(id)?.lower(&ins, outs, &g.symbols).ok()? {
        Lowering::Class(c) => Some(Some(c)),
        Lowering::Decompose(_) | Lowering::Template(..) => Some(None),
        Lowering::Structure => None,
    }
}

fn bytes(t: &Type) -> Option<usize> {
    t.as_fixed()?.into_iter().try_fold(t.dtype.size(), usize::checked_mul)
}

fn tensor(g: &Graph, v: Value, cx: &Cx<'_>) -> Option<Tensor> {
    let op = g.op_of(v.node)?;
    if let Op::Weight(w) = op {
        return cx.weights.get(&w.name).cloned();
    }
    let Op::Constant(c) = op else { return None };
    if c.shape.is_none() {
        return Some(c.value.clone());
    }
    let shape = g.ty(v)?.as_fixed()?;
    let n = shape.iter().try_fold(1usize, |a, d| a.checked_mul(*d))?;
    let value = c.value.get(0);
    Some(Tensor::from_scalars(value.dtype, &shape, std::iter::repeat_n(value, n)))
}

/// Constants (or new weights) in place of the results.
fn replacement(g: &Graph, id: NodeId, fold: Fold, cx: &mut Cx<'_>) -> Result<(Edit, &'static str), Diag> {
    let rule = if fold.weights.is_empty() { "fold_constant" } else { "fold_weight" };
    let mut p = Patch::new(g, id);
    for (r, value) in fold.results.into_iter().enumerate() {
        let op = match fold.weights.first() {
            None => constant(value),
            Some(first) => {
                let name = cx.add_weight(
                    &format!("{first}.{}", g.op_of(id).map_or("", |op| op.name())),
                    value.clone(),
                );
                cx.replaced.push(name.clone());
                Weight {
                    name,
                    dtype: value.dtype,
                    shape: value.shape.iter().map(|&d| Dim::from(d)).collect(),
                }
                .into()
            }
        };
        let new = p.op(op, &[])?;
        p.replace(Value { node: id, result: r as u32 }, new);
    }
    cx.replaced.extend(fold.weights);
    Ok((p.finish(), rule))
}

fn constant(value: Tensor) -> Op {
    let first = value.get(0);
    if value.numel() > 1 && value.scalars().all(|s| s == first) {
        return splat_constant(&value.ty(), first);
    }
    Constant { value, shape: None }.into()
}
