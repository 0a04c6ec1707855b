//! Rules about positions that are known when the program is built: indices that are numbers or follow from positions.

use super::splat::{class, splat_constant};
use super::{Rewrite, Rule, pair, remake, result, rules, splat_of};
use tgc_ir::class::{Class, broadcast_index};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Gather, Op, Reshape, Slice};
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::scalar::{Bin, ENode, Scalar};
use tgc_ir::types::{Atom, DType, Dim};

pub(crate) const RULES: &[Rule] =
    rules![gather_constant, gather_in_order, slice_of_concat, compare_positions];

/// Most nodes looked through for what an element is.
const DEPTH: usize = 24;

/// `gather(x, i) = reshape(slice x)` for one index that is a number.
fn gather_constant(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Gather(Gather { axis })) = g.op_of(id) else { return None };
    let (x, at) = pair(g, id)?;
    let shape = &g.ty(x)?.shape;
    let axis = usize::try_from(if *axis < 0 { *axis + shape.len() as i64 } else { *axis }).ok()?;
    let at = i64::try_from(splat_of(g, at).filter(|_| g.ty(at).is_some_and(|t| t.numel().is(1)))?.as_int()?)
        .ok()?;
    let start = if at < 0 { shape.get(axis)?.clone() + Dim::from(at) } else { Dim::from(at) };
    let mut starts = vec![Dim::from(0); shape.len()];
    starts[axis] = start;
    let mut sizes = shape.clone();
    *sizes.get_mut(axis)? = Dim::from(1);
    let mut p = Patch::new(g, id);
    let part = p.op(Slice { starts, sizes, steps: vec![1; shape.len()] }, &[PVal::Old(x)]).ok()?;
    let new = p.op(Reshape { shape: g.ty(result(id))?.shape.clone() }, &[part]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// `gather(x, i) = reshape x` where i counts the elements of the axis from first to last.
fn gather_in_order(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Gather(Gather { axis })) = g.op_of(id) else { return None };
    let (x, at) = pair(g, id)?;
    let (shape, read) = (&g.ty(x)?.shape, &g.ty(at)?.shape);
    let first = *axis == 0 || *axis == -(shape.len() as i64);
    if !first || read.iter().cloned().product::<Dim>() != *shape.first()? {
        return None;
    }
    let mut counted = Dim::from(0);
    for (l, d) in read.iter().enumerate() {
        counted = counted * d.clone() + label(l, d);
    }
    let labels: Vec<Dim> = read.iter().enumerate().map(|(l, d)| label(l, d)).collect();
    if position(g, at, &labels, DEPTH)? != counted {
        return None;
    }
    remake(g, id, Reshape { shape: g.ty(result(id))?.shape.clone() }, &[x])
}

/// `slice(concat(.., x, ..)) = slice x` for a part that lies in one operand.
fn slice_of_concat(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Slice(s)) = g.op_of(id) else { return None };
    let y = *g.operands(id).first()?;
    let Some(Op::Concat(c)) = g.op_of(y.node) else { return None };
    let axis = usize::try_from(if c.axis < 0 { c.axis + s.starts.len() as i64 } else { c.axis }).ok()?;
    let (start, size) = (s.starts.get(axis)?.as_const()?, s.sizes.get(axis)?.as_const()?);
    if *s.steps.get(axis)? != 1 {
        return None;
    }
    let mut lo = 0;
    for x in g.operands(y.node) {
        let hi = lo + g.ty(x)?.shape.get(axis)?.as_const()?;
        if lo <= start && start.checked_add(size)? <= hi {
            let mut starts = s.starts.clone();
            starts[axis] = Dim::from(start - lo);
            return remake(g, id, Slice { starts, sizes: s.sizes.clone(), steps: s.steps.clone() }, &[x]);
        }
        lo = hi;
    }
    None
}

/// `a < b` or `a <= b` of positions, decided where it is the same for every element.
fn compare_positions(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let op = g.op_of(id)?;
    let less = matches!(op, Op::Lt(_));
    if !less && !matches!(op, Op::Le(_)) {
        return None;
    }
    let (a, b) = pair(g, id)?;
    let ty = g.ty(result(id))?;
    let labels: Vec<Dim> = ty.shape.iter().enumerate().map(|(l, d)| label(l, d)).collect();
    let at = |v: Value| {
        let map = broadcast_index(&g.ty(v)?.shape, &ty.shape);
        let at: Vec<Dim> = map.iter().map(|d| replaced(d, &labels)).collect();
        position(g, v, &at, DEPTH)
    };
    let over = at(b)? - at(a)?;
    let least = Dim::from(i64::from(less));
    let low = g.symbols.range(&(extreme(&over, &ty.shape, false)? - least.clone())).0;
    let high = g.symbols.range(&(extreme(&over, &ty.shape, true)? - least)).1;
    let value = if low >= 0 {
        true
    } else if high < 0 {
        false
    } else {
        return None;
    };
    remake(g, id, splat_constant(ty, Scalar::bool(value)), &[])
}

/// Label of an axis, or the only index of it.
fn label(l: usize, extent: &Dim) -> Dim {
    if extent.is(1) { Dim::from(0) } else { Dim::label(l as u32) }
}

fn replaced(d: &Dim, index: &[Dim]) -> Dim {
    d.subst(&|a| if let Atom::Label(l) = a { index.get(*l as usize).cloned() } else { None })
}

/// Least or greatest value of something affine over labels of these extents.
fn extreme(d: &Dim, extents: &[Dim], greatest: bool) -> Option<Dim> {
    let mut d = d.clone();
    for (l, e) in extents.iter().enumerate() {
        let (c, rest) = d.affine(l as u32)?;
        let last = (c.as_const()? > 0) == greatest;
        d = rest + if last { c * (e.clone() - Dim::from(1)) } else { Dim::from(0) };
    }
    Some(d)
}

/// The element of `v` at an index, as an expression over the labels in the index and sizes, where it is made from
/// positions and sizes alone. Only i64, which holds every size.
fn position(g: &Graph, v: Value, index: &[Dim], depth: usize) -> Option<Dim> {
    if depth == 0 || g.ty(v)?.dtype != DType::I64 {
        return None;
    }
    if let Some(c) = splat_of(g, v) {
        return Some(Dim::from(i64::try_from(c.as_int()?).ok()?));
    }
    let operands = g.operands(v.node);
    let class = class(g, v.node)?;
    if let Class::View(view) = class {
        let [piece] = &view.pieces[..] else { return None };
        let whole = view.fill.is_none() && piece.lo.iter().all(|d| d.is(0));
        let at: Vec<Dim> = piece.index.iter().map(|d| replaced(d, index)).collect();
        return if whole { position(g, *operands.get(piece.operand)?, &at, depth - 1) } else { None };
    }
    let Class::Map(map) = class else { return None };
    let mut values: Vec<Dim> = Vec::new();
    for (node, dtype) in &map.expr.nodes {
        if *dtype != DType::I64 {
            return None;
        }
        values.push(match node {
            ENode::Dim(d) => replaced(d, index),
            ENode::Const(c) => Dim::from(i64::try_from(c.as_int()?).ok()?),
            ENode::Cast(a) => values.get(*a as usize)?.clone(),
            ENode::Arg(i) => {
                let x = *operands.get(*i as usize)?;
                let read = broadcast_index(&g.ty(x)?.shape, &g.ty(v)?.shape);
                let at: Vec<Dim> = read.iter().map(|d| replaced(d, index)).collect();
                position(g, x, &at, depth - 1)?
            }
            ENode::Bin(op @ (Bin::Add | Bin::Sub | Bin::Mul), a, b) => {
                let (a, b) = (values.get(*a as usize)?.clone(), values.get(*b as usize)?.clone());
                match op {
                    Bin::Add => a + b,
                    Bin::Sub => a - b,
                    _ => a * b,
                }
            }
            _ => return None,
        });
    }
    values.get(*map.expr.roots.get(v.result as usize)? as usize).cloned()
}
