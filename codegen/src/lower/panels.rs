//! Gives contractions of two computed operands what packed weights give the others: the operand that a register block's
//! vectors run along is first copied to a tile-local buffer of panels, so that the block reads it front to back. Also
//! done where that operand is computed as it is read, for example converted from a narrow type.

use super::pack::{self, PANEL};
use crate::kernel::{Buf, Item, Kernel, Kind, Load, Local, LocalAxis, Mode, Stage, Store, flat};
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::class::Combine;
use tgc_ir::scalar::{ENode, Expr};
use tgc_ir::types::{Atom, Dim, Pred};

/// Rows from which the copy pays.
const LEAST_ROWS: i64 = 8;

/// Adds a copying stage before every contraction that profits.
pub(crate) fn add(k: &mut Kernel) {
    let mut i = 0;
    while i < k.body.len() {
        if let Item::Stage(s) = &k.body[i]
            && let Some((local, copy, contract)) = copied(k, s)
        {
            k.locals.push(local);
            k.body[i] = Item::Stage(contract);
            k.body.insert(i, Item::Stage(copy));
            i += 1;
        }
        i += 1;
    }
}

fn copied(k: &Kernel, s: &Stage) -> Option<(Local, Stage, Stage)> {
    let &[a, b] = &s.expr.roots[..] else { return None };
    if !matches!(s.kind, Kind::Contract { .. }) || s.when != Pred::True || s.red.is_empty() {
        return None;
    }
    let points: Vec<u32> = s.over.iter().copied().chain(s.inner.iter().map(|i| i.0)).collect();
    let vector = pack::vector_label(k, s)?;
    let (in_a, in_b) = (labels_of(s, a), labels_of(s, b));
    let (which, mine, other) = match (in_a.contains(&vector), in_b.contains(&vector)) {
        (true, false) => (0, &in_a, &in_b),
        (false, true) => (1, &in_b, &in_a),
        _ => return None,
    };
    let root = s.expr.roots[which];
    let rows = points.iter().any(|p| {
        other.contains(p)
            && !mine.contains(p)
            && extent(k, s, *p).is_none_or(|e| e.as_const().is_none_or(|e| e >= LEAST_ROWS))
    });
    let columns = extent(k, s, vector)?.as_const().is_none_or(|e| e >= 8);
    if !rows || !columns || !reads_badly(k, s, root, vector) {
        return None;
    }
    build(k, s, which, vector, mine)
}

/// True unless a block would read the operand front to back already.
fn reads_badly(k: &Kernel, s: &Stage, root: u32, vector: u32) -> bool {
    let &(ENode::Arg(i), _) = &s.expr.nodes[root as usize] else { return true };
    let l = &s.loads[i as usize];
    if let Buf::Arg(a) = l.from
        && k.args[a as usize].packed.is_some()
    {
        return false;
    }
    let Some(at) = flat(k, l.from, &l.index) else { return true };
    let step = |label: u32| at.affine(label).and_then(|(c, _)| c.as_const());
    let last = s.red.last().and_then(|r| step(r.0));
    !(step(vector) == Some(1) && last.is_some_and(|l| l <= i64::from(PANEL)))
}

fn extent(k: &Kernel, s: &Stage, label: u32) -> Option<Dim> {
    let inner = s.inner.iter().chain(&s.red).find(|l| l.0 == label).map(|l| l.1.clone());
    inner.or_else(|| k.grid.get(label as usize).cloned())
}

/// Labels that a node's value depends on.
fn labels_of(s: &Stage, root: u32) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    let mut add = |d: &Dim| {
        d.leaves(&mut |a| {
            if let Atom::Label(l) = a {
                out.insert(*l);
            }
        });
    };
    for n in reachable(&s.expr, &[root]) {
        match &s.expr.nodes[n as usize].0 {
            ENode::Arg(i) => {
                let l = &s.loads[*i as usize];
                l.index.iter().for_each(&mut add);
                if let Mode::Fill(p, _) | Mode::Trap(_, p) = &l.mode {
                    let cell = std::cell::RefCell::new(&mut add);
                    p.map(&|d| {
                        (cell.borrow_mut())(d);
                        d.clone()
                    });
                }
            }
            ENode::Dim(d) => add(d),
            _ => {}
        }
    }
    out
}

/// The buffer, the stage that fills it, and the contraction that reads it.
fn build(
    k: &Kernel,
    s: &Stage,
    which: usize,
    vector: u32,
    mine: &BTreeSet<u32>,
) -> Option<(Local, Stage, Stage)> {
    let grid = k.grid.len() as u32;
    let mut next = 1 + largest_label(k);
    let mut fresh: BTreeMap<u32, u32> = BTreeMap::new();
    let (mut over, mut inner) = (Vec::new(), Vec::new());
    let (mut axes, mut index) = (Vec::new(), Vec::new());
    let panel = Dim::from(i64::from(PANEL));
    for l in mine.iter().copied().filter(|l| *l < grid) {
        over.push(l);
        if l != vector {
            axes.push(LocalAxis::Tile { grid: l, lo: 0, hi: 0 });
            index.push(Dim::label(l));
        }
    }
    let columns = extent(k, s, vector)?;
    if vector >= grid {
        axes.push(LocalAxis::Full((columns.clone() + panel.clone() - Dim::from(1)).floordiv(&panel)));
        index.push(Dim::label(vector).floordiv(&panel));
    }
    // Labels of the sum outermost first, and other points the operand depends on.
    let others = s.inner.iter().filter(|i| i.0 != vector).chain(&s.red);
    for (l, e) in others.filter(|l| mine.contains(&l.0)) {
        axes.push(LocalAxis::Full(e.clone()));
        index.push(Dim::label(*l));
        fresh.insert(*l, next);
        inner.push((next, e.clone()));
        next += 1;
    }
    if vector < grid {
        axes.push(LocalAxis::Tile { grid: vector, lo: 0, hi: 0 });
        index.push(Dim::label(vector));
    } else {
        axes.push(LocalAxis::Full(panel.clone()));
        index.push(Dim::label(vector).rem(&panel));
        fresh.insert(vector, next);
        inner.push((next, columns));
    }
    let local = k.locals.len() as u32;
    let root = s.expr.roots[which];
    let dtype = s.expr.dtype(root);
    let rename = |d: &Dim| {
        d.subst(&|a| match a {
            Atom::Label(l) => fresh.get(l).map(|n| Dim::label(*n)),
            _ => None,
        })
    };
    let mut loads = s.loads.clone();
    for l in &mut loads {
        l.index.iter_mut().for_each(|d| *d = rename(d));
        if let Mode::Fill(p, _) | Mode::Trap(_, p) = &mut l.mode {
            *p = p.map(&rename);
        }
    }
    let mut expr = s.expr.clone();
    expr.roots = vec![root];
    for (n, _) in &mut expr.nodes {
        if let ENode::Dim(d) = n {
            *d = rename(d);
        }
    }
    let mut copy = Stage {
        name: format!("panels of {}", s.name),
        when: Pred::True,
        over,
        inner,
        red: Vec::new(),
        kind: Kind::Map,
        loads,
        expr,
        post: None,
        stores: vec![Store {
            to: Buf::Local(local),
            index: index.iter().map(&rename).collect(),
            value: 0,
            op: Combine::Set,
            site: 0,
        }],
    };
    let mut contract = s.clone();
    let read = contract.loads.len() as u32;
    contract.loads.push(Load { from: Buf::Local(local), index, mode: Mode::Proved });
    let node = contract.expr.arg(read, dtype);
    contract.expr.roots[which] = node;
    drop_unused(&mut copy)?;
    drop_unused(&mut contract)?;
    Some((Local { name: format!("t{local}"), dtype, axes }, copy, contract))
}

fn largest_label(k: &Kernel) -> u32 {
    let stages = k.stages();
    let inner = stages.iter().flat_map(|s| s.inner.iter().chain(&s.red)).map(|l| l.0);
    inner.chain(0..k.grid.len() as u32).max().unwrap_or(0)
}

/// Removes nodes and loads that nothing needs. None for what cannot be renumbered: indices that are data.
fn drop_unused(s: &mut Stage) -> Option<()> {
    if s.loads.iter().any(|l| l.index.iter().any(|d| d.any_leaf(|a| matches!(a, Atom::Val(_))))) {
        return None;
    }
    let results = if matches!(s.kind, Kind::Map) { 0 } else { 1 };
    let mut used = BTreeSet::new();
    for n in reachable(&s.expr, &s.expr.roots) {
        if let ENode::Arg(i) = s.expr.nodes[n as usize].0 {
            used.insert(i);
        }
    }
    if let Some(p) = &s.post {
        for (n, _) in &p.nodes {
            if let ENode::Arg(i) = n
                && *i >= results
            {
                used.insert(i - results);
            }
        }
    }
    let place = |i: u32| used.iter().position(|u| *u == i).unwrap_or(0) as u32;
    s.expr = kept(&s.expr, &place);
    if let Some(p) = &mut s.post {
        for (n, _) in &mut p.nodes {
            if let ENode::Arg(i) = n
                && *i >= results
            {
                *i = results + place(*i - results);
            }
        }
    }
    s.loads = used.iter().map(|i| s.loads[*i as usize].clone()).collect();
    Some(())
}

/// Nodes that the given ones need, themselves among them.
fn reachable(e: &Expr, from: &[u32]) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    let mut todo = from.to_vec();
    while let Some(n) = todo.pop() {
        if out.insert(n) {
            todo.extend(e.nodes[n as usize].0.operands());
        }
    }
    out
}

/// The program without nodes that no root needs, its arguments renumbered.
fn kept(e: &Expr, place: &dyn Fn(u32) -> u32) -> Expr {
    let mut out = Expr::default();
    let mut at: BTreeMap<u32, u32> = BTreeMap::new();
    for n in reachable(e, &e.roots) {
        let (node, dtype) = &e.nodes[n as usize];
        let node = match node {
            ENode::Arg(i) => ENode::Arg(place(*i)),
            node => node.map_operands(|o| at.get(&o).copied().unwrap_or(o)),
        };
        at.insert(n, out.push(node, *dtype));
    }
    out.roots = e.roots.iter().filter_map(|r| at.get(r).copied()).collect();
    out
}
