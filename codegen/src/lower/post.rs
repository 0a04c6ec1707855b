//! Merges a stage that only finishes what a reducing stage stored into that stage's `post`, so that the value never
//! goes through memory.

use super::plan::cost;
use crate::kernel::{Buf, Item, Kernel, Kind, Load, Mode, Stage};
use std::collections::BTreeMap;
use tgc_ir::scalar::{ENode, Expr};
use tgc_ir::types::{Atom, Dim};

/// Largest number of nodes moved into a `post`.
const LIMIT: usize = 64;
/// Cost up to which a program is run on a contraction's whole register block at once; costlier ones would spill it, and
/// run over the tile in memory.
const HEAVY: u64 = 11;

/// Merges where possible, then drops locals that nothing uses.
pub(crate) fn merge(kernel: &mut Kernel) {
    let mut i = 0;
    while i + 1 < kernel.body.len() {
        let merged = match (&kernel.body[i], &kernel.body[i + 1]) {
            (Item::Stage(a), Item::Stage(b)) => merged(kernel, a, b),
            _ => None,
        };
        match merged {
            Some(stage) => {
                kernel.body[i] = Item::Stage(stage);
                kernel.body.remove(i + 1);
            }
            None => i += 1,
        }
    }
    drop_locals(kernel);
}

fn merged(kernel: &Kernel, a: &Stage, b: &Stage) -> Option<Stage> {
    let one_local = match &a.stores[..] {
        [s] if matches!(s.to, Buf::Local(_)) && s.value == 0 => s,
        _ => return None,
    };
    let fits = !matches!(a.kind, Kind::Map)
        && b.kind == Kind::Map
        && a.when == b.when
        && a.over == b.over
        && a.inner.len() == b.inner.len()
        && a.inner.iter().zip(&b.inner).all(|(x, y)| x.1 == y.1)
        && b.expr.nodes.len() <= LIMIT
        && (!matches!(a.kind, Kind::Contract { .. }) || cost(&b.expr) <= HEAVY);
    let reads = b.loads.iter().any(|l| l.from == one_local.to);
    if !fits || !reads || readers(kernel, one_local.to) != 1 {
        return None;
    }
    let rename: BTreeMap<u32, u32> = b.inner.iter().zip(&a.inner).map(|(y, x)| (y.0, x.0)).collect();
    let label = |d: &Dim| {
        d.subst(&|atom| match atom {
            Atom::Label(l) => rename.get(l).map(|&n| Dim::label(n)),
            _ => None,
        })
    };
    let mut out = a.clone();
    let results = match &a.kind {
        Kind::Reduce { reducer, .. } => reducer.finish.roots.len() as u32,
        _ => 1,
    };
    let mut post = Expr::default();
    let first = match &a.post {
        Some(p) => {
            post = p.clone();
            p.roots.first().copied()?
        }
        None => {
            let dtype = match &a.kind {
                Kind::Reduce { reducer, .. } => {
                    reducer.finish.roots.first().map(|&r| reducer.finish.dtype(r))?
                }
                _ => a.expr.roots.first().map(|&r| a.expr.dtype(r))?,
            };
            post.arg(0, dtype)
        }
    };
    let mut args = Vec::new();
    for (i, l) in b.loads.iter().enumerate() {
        if l.from == one_local.to {
            let same = l.index.iter().map(label).eq(one_local.index.iter().cloned());
            if !same || l.mode != Mode::Proved {
                return None;
            }
            args.push(first);
            continue;
        }
        if l.index.iter().any(|d| d.any_leaf(|a| matches!(a, Atom::Val(_))))
            || matches!(l.mode, Mode::Trap(..))
        {
            return None;
        }
        let mode = match &l.mode {
            Mode::Fill(p, v) => Mode::Fill(p.map(&label), *v),
            m => m.clone(),
        };
        let load = Load { from: l.from, index: l.index.iter().map(label).collect(), mode };
        let at = out.loads.iter().position(|x| *x == load).unwrap_or_else(|| {
            out.loads.push(load);
            out.loads.len() - 1
        });
        let dtype =
            b.expr.nodes.iter().find(|n| n.0 == ENode::Arg(i as u32)).map_or(kernel.dtype(l.from), |n| n.1);
        args.push(post.arg(results + at as u32, dtype));
    }
    let mut expr = b.expr.clone();
    for (n, _) in &mut expr.nodes {
        if let ENode::Dim(d) = n {
            *d = label(d);
        }
    }
    post.roots = post.inline(&expr, &args);
    out.post = Some(post);
    out.name = format!("{}+{}", a.name, b.name);
    out.stores = b.stores.clone();
    for s in &mut out.stores {
        if s.site != 0 {
            return None;
        }
        s.index = s.index.iter().map(label).collect();
    }
    Some(out)
}

/// Number of stages that read a buffer.
fn readers(kernel: &Kernel, buf: Buf) -> usize {
    kernel.stages().iter().filter(|s| s.loads.iter().any(|l| l.from == buf)).count()
}

/// Drops locals that nothing uses.
pub(super) fn drop_locals(kernel: &mut Kernel) {
    let used: Vec<u32> = (0..kernel.locals.len() as u32)
        .filter(|&l| {
            let hit = |b: Buf| b == Buf::Local(l);
            kernel
                .stages()
                .iter()
                .any(|s| s.loads.iter().any(|x| hit(x.from)) || s.stores.iter().any(|x| hit(x.to)))
        })
        .collect();
    let mut locals = Vec::new();
    for (n, &l) in used.iter().enumerate() {
        let mut local = kernel.locals[l as usize].clone();
        local.name = format!("t{n}");
        locals.push(local);
    }
    kernel.locals = locals;
    let renumber = |b: &mut Buf| {
        if let Buf::Local(l) = b {
            *l = used.iter().position(|u| u == l).unwrap_or(0) as u32;
        }
    };
    visit(&mut kernel.body, &mut |s| {
        s.loads.iter_mut().for_each(|l| renumber(&mut l.from));
        s.stores.iter_mut().for_each(|x| renumber(&mut x.to));
    });
}

/// Calls `f` on every stage.
pub(super) fn visit(items: &mut [Item], f: &mut dyn FnMut(&mut Stage)) {
    for i in items {
        match i {
            Item::Stage(s) => f(s),
            Item::Loop { body, .. } => visit(body, f),
        }
    }
}
