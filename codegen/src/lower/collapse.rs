//! Joins labels that run over memory as one: two grid axes whose product is walked in order by every access become one,
//! so that rows of a matrix, pixels of an image and all of an elementwise tensor are cut evenly whatever the shape.
//! Results do not change: points are only counted differently.

use super::pack;
use crate::kernel::{Buf, Item, Kernel, Kind, Load, LocalAxis, Mode, Stage, flat, mentions};
use tgc_ir::scalar::{ENode, Expr};
use tgc_ir::types::{Atom, Dim};

/// Steps of a sum from which computing an operand's place by division, once for all of them, does not matter.
const LONG_SUM: i64 = 32;

/// Joins what can be joined.
pub(crate) fn collapse(kernel: &mut Kernel) {
    for i in 0..kernel.body.len() {
        while let Some(joined) = joined_sums(kernel, i) {
            kernel.body[i] = Item::Stage(joined);
        }
    }
    while let Some(joined) = pairs(kernel).into_iter().find_map(|(a, b)| joined_axes(kernel, a, b)) {
        *kernel = joined;
    }
}

fn pairs(k: &Kernel) -> Vec<(u32, u32)> {
    let n = k.grid.len() as u32;
    (0..n).flat_map(|a| (0..n).map(move |b| (a, b))).filter(|(a, b)| a != b).collect()
}

/// The kernel with grid axes a and b as one, b fastest; None where some access would not follow.
fn joined_axes(k: &Kernel, a: u32, b: u32) -> Option<Kernel> {
    let (ea, eb) = (k.grid[a as usize].clone(), k.grid[b as usize].clone());
    if eb.as_const().is_some_and(|e| e < 1) || k.body.iter().any(|i| matches!(i, Item::Loop { .. })) {
        return None;
    }
    let mut out = k.clone();
    // The pair takes the place of a; b's number goes and higher ones move down.
    let number = |g: u32| if g > b { g - 1 } else { g };
    let p = Dim::label(number(a));
    let grid = k.grid.len() as u32;
    let label = |d: &Dim| {
        d.subst(&|atom| match atom {
            Atom::Label(l) if *l == a => Some(p.floordiv(&eb)),
            Atom::Label(l) if *l == b => Some(p.rem(&eb)),
            Atom::Label(l) if *l < grid => Some(Dim::label(number(*l))),
            _ => None,
        })
    };
    out.grid[a as usize] = ea * eb.clone();
    out.grid.remove(b as usize);
    for l in &mut out.locals {
        l.axes = joined_local(&l.axes, a, b, &number)?;
    }
    for i in 0..out.body.len() {
        let Item::Stage(old) = &k.body[i] else { return None };
        let mut s = old.clone();
        if old.over.contains(&a) != old.over.contains(&b) {
            return None;
        }
        s.over = old.over.iter().filter(|g| **g != b).map(|g| number(*g)).collect();
        let uses = |d: &Dim| d.any_leaf(|x| matches!(x, Atom::Label(l) if *l == a || *l == b));
        if mentions(&old.when, &uses)
            || expr_mentions(&old.expr, &uses)
            || old.post.iter().any(|e| expr_mentions(e, &uses))
        {
            return None;
        }
        relabel(&mut s.expr, &label);
        s.post.iter_mut().for_each(|e| relabel(e, &label));
        let long = matches!(old.kind, Kind::Contract { .. })
            && old.red.iter().filter_map(|r| r.1.as_const()).product::<i64>() >= LONG_SUM;
        let in_sum = |load: &Load| {
            load.index.iter().any(|d| old.red.iter().any(|r| d.any_leaf(|x| *x == Atom::Label(r.0))))
        };
        // Only one operand may be found by division: a block shares the other one.
        let moving = old.loads.iter().filter(|l| in_sum(l) && l.index.iter().any(uses)).count();
        for (new, load) in s.loads.iter_mut().zip(&old.loads) {
            let (index, local) = joined_index(k, load.from, &load.index, a, b, &label);
            new.index = index;
            if let Mode::Fill(c, _) | Mode::Trap(_, c) = &mut new.mode {
                *c = c.map(&label);
            }
            let conditional = match &load.mode {
                Mode::Fill(c, _) | Mode::Trap(_, c) => mentions(c, &uses),
                Mode::Proved => false,
            };
            let plain = local || follows(&out, new.from, &new.index, number(a));
            let divided = long && moving == 1 && in_sum(load) && pack::vector_label(k, old) != Some(b);
            if (!plain || conditional) && !divided {
                return None;
            }
        }
        for (new, st) in s.stores.iter_mut().zip(&old.stores) {
            let (index, local) = joined_index(k, st.to, &st.index, a, b, &label);
            new.index = index;
            if st.site != 0 || !(local || follows(&out, new.to, &new.index, number(a))) {
                return None;
            }
        }
        out.body[i] = Item::Stage(s);
    }
    merge_dims(&mut out, number(a), &eb);
    Some(out)
}

/// A local's axes with the pair as one; None if it has only one of them, or not side by side.
fn joined_local(axes: &[LocalAxis], a: u32, b: u32, number: &dyn Fn(u32) -> u32) -> Option<Vec<LocalAxis>> {
    let tile = |x: &LocalAxis| match x {
        LocalAxis::Tile { grid, lo, hi } => Some((*grid, *lo, *hi)),
        _ => None,
    };
    let at = |g: u32| axes.iter().position(|x| tile(x).is_some_and(|t| t.0 == g));
    let skip = match (at(a), at(b)) {
        (None, None) => None,
        (Some(i), Some(j))
            if j == i + 1 && tile(&axes[i]) == Some((a, 0, 0)) && tile(&axes[j]) == Some((b, 0, 0)) =>
        {
            Some(j)
        }
        _ => return None,
    };
    let kept = axes.iter().enumerate().filter(|(i, _)| Some(*i) != skip);
    Some(
        kept.map(|(_, x)| match tile(x) {
            Some((grid, lo, hi)) => LocalAxis::Tile { grid: number(grid), lo, hi },
            None => x.clone(),
        })
        .collect(),
    )
}

/// Indices with the pair as one; true if the buffer is a local that has the pair as one axis.
fn joined_index(
    k: &Kernel,
    buf: Buf,
    index: &[Dim],
    a: u32,
    b: u32,
    label: &dyn Fn(&Dim) -> Dim,
) -> (Vec<Dim>, bool) {
    if let Buf::Local(l) = buf {
        let axes = &k.locals[l as usize].axes;
        let of = |g: u32| axes.iter().position(|x| matches!(x, LocalAxis::Tile { grid, .. } if *grid == g));
        if let (Some(i), Some(j)) = (of(a), of(b)) {
            let whole = label(&(Dim::label(a) * k.grid[b as usize].clone() + Dim::label(b)));
            let mut out: Vec<Dim> = index.iter().map(label).collect();
            out[i] = whole;
            out.remove(j);
            return (out, true);
        }
    }
    (index.iter().map(label).collect(), false)
}

/// True if the place of an access moves evenly with the label: no division by the joined extent is left.
fn follows(k: &Kernel, buf: Buf, index: &[Dim], label: u32) -> bool {
    let divided = |d: &Dim| {
        d.terms().any(|(_, atoms)| {
            atoms.iter().any(|x| {
                !matches!(x, Atom::Label(_) | Atom::Sym(_) | Atom::Val(_))
                    && Dim::atom(x.clone()).any_leaf(|y| *y == Atom::Label(label))
            })
        })
    };
    match flat(k, buf, index) {
        Some(d) => !divided(&d),
        None => false,
    }
}

/// Makes one axis of two in arguments that are only read and written over both as one.
fn merge_dims(k: &mut Kernel, p: u32, eb: &Dim) {
    let (first, second) = (Dim::label(p).floordiv(eb), Dim::label(p).rem(eb));
    for i in 0..k.args.len() {
        let buf = Buf::Arg(i as u32);
        if k.args[i].packed.is_some() {
            continue;
        }
        let stages = k.stages();
        let loads = stages.iter().flat_map(|s| s.loads.iter().filter(|l| l.from == buf).map(|l| &l.index));
        let stores = stages.iter().flat_map(|s| s.stores.iter().filter(|x| x.to == buf).map(|x| &x.index));
        let all: Vec<&Vec<Dim>> = loads.chain(stores).collect();
        let rank = k.args[i].dims.len();
        let at = (0..rank.saturating_sub(1)).find(|j| {
            k.args[i].dims[j + 1] == *eb
                && !all.is_empty()
                && all.iter().all(|x| x[*j] == first && x[j + 1] == second)
        });
        let Some(at) = at else { continue };
        let gone = k.args[i].dims.remove(at + 1);
        k.args[i].dims[at] = k.args[i].dims[at].clone() * gone;
        let merge = |b: Buf, index: &mut Vec<Dim>| {
            if b == buf {
                index.remove(at + 1);
                index[at] = Dim::label(p);
            }
        };
        for item in &mut k.body {
            if let Item::Stage(s) = item {
                s.loads.iter_mut().for_each(|l| merge(l.from, &mut l.index));
                s.stores.iter_mut().for_each(|x| merge(x.to, &mut x.index));
            }
        }
    }
}

/// Stage number `i` with two summed labels that follow each other as one.
fn joined_sums(k: &Kernel, i: usize) -> Option<Stage> {
    let Item::Stage(s) = &k.body[i] else { return None };
    if !matches!(s.kind, Kind::Contract { .. }) {
        return None;
    }
    (0..s.red.len().saturating_sub(1)).rev().find_map(|j| {
        let ((a, ea), (b, eb)) = (s.red[j].clone(), s.red[j + 1].clone());
        let p = Dim::label(b);
        let label = |d: &Dim| {
            d.subst(&|atom| match atom {
                Atom::Label(l) if *l == a => Some(p.floordiv(&eb)),
                Atom::Label(l) if *l == b => Some(p.rem(&eb)),
                _ => None,
            })
        };
        let uses = |d: &Dim| d.any_leaf(|x| matches!(x, Atom::Label(l) if *l == a || *l == b));
        let mut out = s.clone();
        out.red[j] = (b, ea * eb.clone());
        out.red.remove(j + 1);
        let conditional = s.loads.iter().any(|l| match &l.mode {
            Mode::Fill(c, _) | Mode::Trap(_, c) => mentions(c, &uses),
            Mode::Proved => false,
        });
        // Conditions and places are found once for all steps of the innermost sum.
        let long = j + 2 < s.red.len()
            && s.red.last().is_some_and(|r| r.1.as_const().is_some_and(|e| e >= LONG_SUM));
        if (conditional && !long) || expr_mentions(&s.expr, &uses) || eb.as_const().is_some_and(|e| e < 1) {
            return None;
        }
        for l in &mut out.loads {
            l.index = l.index.iter().map(&label).collect();
            if let Mode::Fill(c, _) | Mode::Trap(_, c) = &mut l.mode {
                *c = c.map(&label);
            }
            if !long && !follows(k, l.from, &l.index, b) {
                return None;
            }
        }
        Some(out)
    })
}

fn expr_mentions(e: &Expr, uses: &dyn Fn(&Dim) -> bool) -> bool {
    e.nodes.iter().any(|n| matches!(&n.0, ENode::Dim(d) if uses(d)))
}

fn relabel(e: &mut Expr, label: &dyn Fn(&Dim) -> Dim) {
    for (n, _) in &mut e.nodes {
        if let ENode::Dim(d) = n {
            *d = label(d);
        }
    }
}
