//! Turns the entry's symbols into the kernel's dim parameters `d0`, `d1` .. in order of first occurrence, so that equal
//! work under different symbols gives equal kernels.

use crate::kernel::{Item, Kernel, LocalAxis, Mode, Stage};
use indexmap::IndexMap;
use std::sync::Arc;
use tgc_ir::scalar::{ENode, Expr};
use tgc_ir::types::{Atom, Dim, Pred};

/// Renames symbols in place; gives the value of each parameter over the old symbols.
pub(crate) fn extract(kernel: &mut Kernel) -> Vec<Dim> {
    let mut seen: IndexMap<Arc<str>, Arc<str>> = IndexMap::new();
    map_dims(kernel, &mut |d| {
        d.leaves(&mut |a| {
            if let Atom::Sym(s) = a {
                let n = seen.len();
                seen.entry(s.clone()).or_insert_with(|| Arc::from(format!("d{n}")));
            }
        });
        d.clone()
    });
    map_dims(kernel, &mut |d| {
        d.subst(&|a| match a {
            Atom::Sym(s) => seen.get(s).map(|n| Dim::sym(n)),
            _ => None,
        })
    });
    kernel.params = seen.values().cloned().collect();
    seen.keys().map(|s| Dim::sym(s)).collect()
}

/// Replaces every dim of the kernel.
fn map_dims(k: &mut Kernel, f: &mut dyn FnMut(&Dim) -> Dim) {
    for a in &mut k.args {
        a.dims.iter_mut().for_each(|d| *d = f(d));
    }
    k.grid.iter_mut().for_each(|d| *d = f(d));
    for l in &mut k.locals {
        for a in &mut l.axes {
            if let LocalAxis::Full(d) = a {
                *d = f(d);
            }
        }
    }
    items(&mut k.body, f);
}

fn items(body: &mut [Item], f: &mut dyn FnMut(&Dim) -> Dim) {
    for i in body {
        match i {
            Item::Stage(s) => stage(s, f),
            Item::Loop { lo, hi, body, .. } => {
                *lo = f(lo);
                *hi = f(hi);
                items(body, f);
            }
        }
    }
}

fn stage(s: &mut Stage, f: &mut dyn FnMut(&Dim) -> Dim) {
    s.when = pred(&s.when, f);
    s.inner.iter_mut().chain(&mut s.red).for_each(|(_, d)| *d = f(d));
    for l in &mut s.loads {
        l.index.iter_mut().for_each(|d| *d = f(d));
        match &mut l.mode {
            Mode::Fill(p, _) | Mode::Trap(_, p) => *p = pred(p, f),
            Mode::Proved => {}
        }
    }
    expr(&mut s.expr, f);
    if let Some(p) = &mut s.post {
        expr(p, f);
    }
    for x in &mut s.stores {
        x.index.iter_mut().for_each(|d| *d = f(d));
    }
}

fn expr(e: &mut Expr, f: &mut dyn FnMut(&Dim) -> Dim) {
    for (n, _) in &mut e.nodes {
        if let ENode::Dim(d) = n {
            *d = f(d);
        }
    }
}

fn pred(p: &Pred, f: &mut dyn FnMut(&Dim) -> Dim) -> Pred {
    match p {
        Pred::True => Pred::True,
        Pred::Eq(a, b) => Pred::Eq(f(a), f(b)),
        Pred::Le(a, b) => Pred::Le(f(a), f(b)),
        Pred::Broadcastable(a, b) => Pred::Broadcastable(f(a), f(b)),
        Pred::And(v) => Pred::And(v.iter().map(|p| pred(p, f)).collect()),
        Pred::Or(v) => Pred::Or(v.iter().map(|p| pred(p, f)).collect()),
        Pred::Not(p) => Pred::Not(Box::new(pred(p, f))),
    }
}
