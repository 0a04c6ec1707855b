//! Which buffers of a launch may be one: inputs that a kernel merely copies, and outputs that it may write over an input.
//! Sound, not complete: what is not shown is not said. What must not be here: programs, lifetimes, code.

use super::{Arg, Buf, Item, Kernel, Kind, Mode, Role, Stage, Store, row_major};
use std::collections::BTreeSet;
use tgc_ir::class::Combine;
use tgc_ir::scalar::ENode;
use tgc_ir::types::{Atom, Dim, Pred};

/// The input that the kernel's one output repeats element for element in row-major order, whatever the shapes: what is
/// left of reshapes and of transposes that move no element.
pub(crate) fn copied(k: &Kernel) -> Option<u32> {
    let [Item::Stage(s)] = &k.body[..] else { return None };
    let ([load], [store], [root]) = (&s.loads[..], &s.stores[..], &s.expr.roots[..]) else { return None };
    let (Buf::Arg(from), Buf::Arg(to)) = (load.from, store.to) else { return None };
    let (a, y) = (k.args.get(from as usize)?, k.args.get(to as usize)?);
    let outputs = k.args.iter().filter(|a| matches!(a.role, Role::Out | Role::InOut)).count();
    let plain = s.kind == Kind::Map
        && s.when == Pred::True
        && store.op == Combine::Set
        && load.mode == Mode::Proved
        && outputs == 1
        && y.role == Role::Out;
    let same = a.dtype == y.dtype && a.packed.is_none() && numel(a) == numel(y);
    let (node, dtype) = s.expr.nodes.get(*root as usize)?;
    let repeats = *node == ENode::Arg(0) && *dtype == a.dtype;
    let moves = linear(k, s, a, &load.index) != linear(k, s, y, &store.index);
    (plain && same && repeats && !moves).then_some(from)
}

/// Pairs of an output and an input such that the output may lie exactly on the input, each in one pair at most. Code
/// generators must not count on the two being apart, nor keep anything but final values in an output.
///
/// The output is written by one stage, at an index in which every label of the stage is an axis of its own, or that counts
/// the labels' points without gaps. In that stage the input is read at the same element only, by the point that then writes it. Earlier stages of the tile may read it
/// anywhere within the tile: no other tile writes there.
pub(crate) fn in_place(k: &Kernel) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for (y, out) in k.args.iter().enumerate().filter(|(_, a)| a.role == Role::Out) {
        let free = |a: u32| !pairs.iter().any(|p| p.1 == a);
        let inputs = (0..k.args.len() as u32).filter(|a| free(*a));
        let found = inputs.into_iter().find(|a| fits(k, y as u32, out, *a));
        pairs.extend(found.map(|a| (y as u32, a)));
    }
    pairs
}

fn fits(k: &Kernel, y: u32, out: &Arg, a: u32) -> bool {
    let Some(input) = k.args.get(a as usize) else { return false };
    if input.role != Role::In
        || input.dtype.size() != out.dtype.size()
        || input.packed.is_some()
        || numel(input) != numel(out)
        || in_loops(k, Buf::Arg(a))
        || in_loops(k, Buf::Arg(y))
    {
        return false;
    }
    let stages: Vec<&Stage> =
        k.body.iter().filter_map(|i| if let Item::Stage(s) = i { Some(s) } else { None }).collect();
    let mut writes = stages
        .iter()
        .enumerate()
        .flat_map(|(i, s)| s.stores.iter().filter(|st| st.to == Buf::Arg(y)).map(move |st| (i, *s, st)));
    let (Some((at, writer, store)), None) = (writes.next(), writes.next()) else { return false };
    let plain = writer.when == Pred::True && store.op == Combine::Set;
    let place = linear(k, writer, out, &store.index);
    let plain = plain && (own_axes(k, writer, store) || dense(k, writer, &place));
    plain
        && stages.iter().enumerate().all(|(i, s)| {
            s.loads.iter().enumerate().filter(|(_, l)| l.from == Buf::Arg(a)).all(|(n, l)| match i.cmp(&at) {
                std::cmp::Ordering::Less => in_tile(k, input, out, &l.index, store),
                std::cmp::Ordering::Equal => {
                    linear(k, s, input, &l.index) == place && (s.kind == Kind::Map || only_post(s, n))
                }
                std::cmp::Ordering::Greater => false,
            })
        })
}

/// True for a load that takes no part in what is reduced.
fn only_post(s: &Stage, load: usize) -> bool {
    !s.expr.nodes.iter().any(|n| n.0 == ENode::Arg(load as u32))
}

fn in_loops(k: &Kernel, b: Buf) -> bool {
    fn uses(items: &[Item], b: Buf) -> bool {
        items.iter().any(|i| match i {
            Item::Stage(s) => s.loads.iter().any(|l| l.from == b) || s.stores.iter().any(|st| st.to == b),
            Item::Loop { body, .. } => uses(body, b),
        })
    }
    k.body.iter().any(|i| matches!(i, Item::Loop { body, .. } if uses(body, b)))
}

/// Every label of the stage is the index of an axis of its own, so that no two points write one element.
fn own_axes(k: &Kernel, s: &Stage, store: &Store) -> bool {
    let mut own: BTreeSet<u32> = BTreeSet::new();
    for d in &store.index {
        match label(d) {
            Some(l) => {
                if !own.insert(l) {
                    return false;
                }
            }
            None if d.is(0) => {}
            None => return false,
        }
    }
    let all = s.over.iter().chain(s.inner.iter().map(|(l, _)| l));
    s.over.len() == k.grid.len() && all.into_iter().all(|l| own.contains(l) || single(k, s, *l))
}

/// The position is a count of all points of the stage, its labels being digits in some order.
fn dense(k: &Kernel, s: &Stage, place: &Dim) -> bool {
    let all = s.over.iter().map(|g| (*g, k.grid[*g as usize].clone()));
    let mut left: Vec<(u32, Dim)> = all.chain(s.inner.iter().cloned()).filter(|l| !l.1.is(1)).collect();
    let (mut step, mut rest) = (Dim::from(1), place.clone());
    while !left.is_empty() {
        let digit = |l: &(u32, Dim)| rest.affine(l.0).is_some_and(|(c, _)| c == step);
        let Some(i) = left.iter().position(digit) else { return false };
        let (label, extent) = left.swap_remove(i);
        rest = rest - Dim::label(label) * step.clone();
        step = step * extent;
    }
    s.over.len() == k.grid.len() && rest.is(0)
}

/// A load that holds each grid label where the store does reads nothing that other tiles write.
fn in_tile(k: &Kernel, input: &Arg, out: &Arg, index: &[Dim], store: &Store) -> bool {
    let labels = 0..k.grid.len() as u32;
    input.dims == out.dims
        && labels.into_iter().all(|g| {
            let axis = store.index.iter().position(|d| label(d) == Some(g));
            let same = axis.and_then(|i| index.get(i)).and_then(label) == Some(g);
            same || k.grid[g as usize].is(1)
        })
}

fn label(d: &Dim) -> Option<u32> {
    let mut found = None;
    d.leaves(&mut |a| {
        if let Atom::Label(l) = a {
            found = Some(*l);
        }
    });
    found.filter(|l| *d == Dim::label(*l))
}

/// True for a label that takes the value 0 only.
fn single(k: &Kernel, s: &Stage, l: u32) -> bool {
    let own = s.inner.iter().chain(&s.red).find(|x| x.0 == l).map(|x| &x.1);
    own.or(k.grid.get(l as usize)).is_some_and(|e| e.is(1))
}

fn numel(a: &Arg) -> Dim {
    a.dims.iter().cloned().product()
}

/// Position of an element in its row-major buffer.
fn linear(k: &Kernel, s: &Stage, a: &Arg, index: &[Dim]) -> Dim {
    row_major(index, &a.dims).subst(&|atom| match atom {
        Atom::Label(l) if single(k, s, *l) => Some(Dim::from(0)),
        _ => None,
    })
}
