//! A stage for a node that gets one, by class.

use super::read::{Building, Reader, at_labels, condition};
use super::{scan, scatter, unbuilt};
use crate::kernel::{Item, Kind, Mode};
use tgc_ir::class::{Access, Class, Contract, Reduce, Reducer, Window};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{NodeId, Value};
use tgc_ir::scalar::{Bin, ENode, Expr, Scalar};
use tgc_ir::types::{DType, Dim, Pred};

/// Adds the stage (or stages) of node `id`.
pub(crate) fn lower(r: &mut Reader<'_>, id: NodeId) -> Result<(), Diag> {
    let cx = r.cx;
    let name = cx.region.op_of(id).map_or("?", |o| o.name());
    match cx.classes.get(&id) {
        None | Some(Class::Map(_) | Class::View(_)) => lower_elementwise(r, id, name),
        Some(Class::Index(ix)) if ix.scatter.is_none() => lower_elementwise(r, id, name),
        Some(Class::Index(ix)) => scatter::lower(r, id, name, ix),
        Some(Class::Reduce(red)) => lower_reduce(r, id, name, red),
        Some(Class::Contract(c)) => lower_contract(r, id, name, c),
        Some(Class::Window(w)) => lower_window(r, id, name, w),
        Some(Class::Cumulate(c)) => scan::lower(r, id, name, c),
        Some(Class::Opaque(_)) => Err(unbuilt(cx.region, id, "the runtime kernel of")),
    }
}

/// Map, view, gather, or an output that is an input or a constant.
fn lower_elementwise(r: &mut Reader<'_>, id: NodeId, name: &str) -> Result<(), Diag> {
    let results = r.cx.region.node(id).map_or(0, |n| n.results.len() as u32);
    let (mut b, labels) = r.start(name, Value { node: id, result: 0 });
    let mut roots = Vec::new();
    for result in 0..results {
        roots.push(r.compute(&mut b, Value { node: id, result }, &labels, &Pred::True)?);
    }
    b.stage.expr.roots = roots;
    r.end(b, id, &labels);
    Ok(())
}

fn lower_reduce(r: &mut Reader<'_>, id: NodeId, name: &str, red: &Reduce) -> Result<(), Diag> {
    let operands = r.cx.region.operands(id);
    let shape = r.cx.ty(operands[0]).shape;
    let (mut b, labels) = r.start(name, Value { node: id, result: 0 });
    let mut index = Vec::new();
    let mut out = 0;
    for (i, extent) in shape.iter().enumerate() {
        if red.axes.contains(&i) {
            out += usize::from(red.keepdims);
            index.push(r.reduction(&mut b, extent));
        } else {
            index.push(labels[out].clone());
            out += 1;
        }
    }
    let mut roots = Vec::new();
    for &o in &operands {
        roots.push(r.read(&mut b, o, &index, &Pred::True)?);
    }
    b.stage.expr.roots = roots;
    b.stage.kind = Kind::Reduce { reducer: red.reducer.clone(), lanes: red.lanes };
    r.end(b, id, &labels);
    Ok(())
}

fn lower_contract(r: &mut Reader<'_>, id: NodeId, name: &str, c: &Contract) -> Result<(), Diag> {
    let operands = r.cx.region.operands(id);
    let v = Value { node: id, result: 0 };
    let (mut b, labels) = r.start(name, v);
    let mut at: Vec<Dim> = vec![Dim::from(0); c.extents.len()];
    for (l, d) in c.out.iter().zip(&labels) {
        at[*l as usize] = d.clone();
    }
    for &l in &c.red {
        let extent = &c.extents[l as usize];
        if !extent.is(1) {
            at[l as usize] = r.reduction(&mut b, extent);
        }
    }
    let mut roots = Vec::new();
    for (o, access) in operands.iter().zip(&c.operands) {
        let n = read_access(r, &mut b, *o, access, &at)?;
        roots.push(b.stage.expr.cast(c.acc, n));
    }
    b.stage.expr.roots = roots;
    b.stage.kind = Kind::Contract { chunk: c.chunk };
    let dtype = r.cx.ty(v).dtype;
    if dtype != c.acc {
        let mut post = Expr::default();
        let a = post.arg(0, c.acc);
        post.roots = vec![post.cast(dtype, a)];
        b.stage.post = Some(post);
    }
    r.end(b, id, &labels);
    Ok(())
}

/// An operand read where the access applies, zero elsewhere.
fn read_access(
    r: &mut Reader<'_>,
    b: &mut Building,
    o: Value,
    access: &Access,
    at: &[Dim],
) -> Result<u32, Diag> {
    let index: Vec<Dim> = access.index.iter().map(|d| at_labels(d, at)).collect();
    let when = access.when.map(&|d| r.simplify(b, &at_labels(d, at)));
    let n = r.read(b, o, &index, &when)?;
    if when == Pred::True || is_zero_filled(b, n, &when) {
        return Ok(n);
    }
    let c = condition(&mut b.stage.expr, &when);
    let zero = Scalar::from_int(b.stage.expr.dtype(n), 0);
    let z = b.stage.expr.constant(zero);
    Ok(b.stage.expr.select(c, n, z))
}

fn is_zero_filled(b: &Building, n: u32, when: &Pred) -> bool {
    match b.stage.expr.nodes.get(n as usize) {
        Some((ENode::Arg(i), _)) => {
            matches!(b.stage.loads.get(*i as usize).map(|l| &l.mode), Some(Mode::Fill(p, _)) if p == when)
        }
        _ => false,
    }
}

/// Windows skip positions outside: the reducer gets a condition as a further input and keeps its state without it.
fn lower_window(r: &mut Reader<'_>, id: NodeId, name: &str, w: &Window) -> Result<(), Diag> {
    let operands = r.cx.region.operands(id);
    let (mut b, mut at) = r.start(name, Value { node: id, result: 0 });
    let labels = at.clone();
    for e in &w.extents {
        let l = r.reduction(&mut b, e);
        at.push(l);
    }
    let index: Vec<Dim> = w.access.index.iter().map(|d| at_labels(d, &at)).collect();
    let when = w.access.when.map(&|d| r.simplify(&b, &at_labels(d, &at)));
    let x = r.read(&mut b, operands[0], &index, &when)?;
    let (reducer, roots) = if when == Pred::True || fills_with_identity(&mut b, x, &w.reducer, &when) {
        (w.reducer.clone(), vec![x])
    } else {
        let c = condition(&mut b.stage.expr, &when);
        (conditional(&w.reducer, b.stage.expr.dtype(x)), vec![x, c])
    };
    b.stage.expr.roots = roots;
    b.stage.kind = Kind::Reduce { reducer, lanes: 1 };
    r.end(b, id, &labels);
    Ok(())
}

/// Makes a plain padded read give the reducer's first state outside, where reducing that changes nothing.
fn fills_with_identity(b: &mut Building, x: u32, r: &Reducer, when: &Pred) -> bool {
    let (Some((ENode::Arg(i), dtype)), [init]) = (b.stage.expr.nodes.get(x as usize), &r.init[..]) else {
        return false;
    };
    let idle = match plain_step(r) {
        // a sum that starts at +0 is never -0, so adding +0 keeps it
        Some(Bin::Add) => init.bits == 0,
        Some(Bin::Max | Bin::Min) => true,
        _ => false,
    };
    let plain = idle && init.dtype == *dtype;
    match b.stage.loads.get_mut(*i as usize).map(|l| &mut l.mode) {
        Some(Mode::Fill(p, v)) if plain && p == when => {
            *v = *init;
            true
        }
        _ => false,
    }
}

/// The operation of a reducer whose step is that operation on state and input, nothing more.
fn plain_step(r: &Reducer) -> Option<Bin> {
    match (&r.step.nodes[..], &r.step.roots[..]) {
        ([(ENode::Arg(0), _), (ENode::Arg(1), _), (ENode::Bin(op, 0, 1), _)], [2]) => Some(*op),
        _ => None,
    }
}

/// The reducer with a second input that says whether the element counts.
fn conditional(red: &Reducer, input: DType) -> Reducer {
    let states = red.init.len() as u32;
    let mut e = Expr::default();
    let old: Vec<u32> = red.init.iter().enumerate().map(|(i, s)| e.arg(i as u32, s.dtype)).collect();
    let x = e.arg(states, input);
    let c = e.arg(states + 1, DType::Bool);
    let pos = e.arg(states + 2, DType::I64);
    let mut args = old.clone();
    args.extend([x, pos]);
    let new = e.inline(&red.step, &args);
    e.roots = old.iter().zip(new).map(|(&o, n)| e.select(c, n, o)).collect();
    Reducer { step: e, ..red.clone() }
}

/// Pushes a finished stage that is not a node's only one.
pub(crate) fn push(r: &mut Reader<'_>, b: Building) {
    r.kernel.body.push(Item::Stage(b.stage));
}
