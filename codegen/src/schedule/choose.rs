//! The default schedule: tile sizes by a rule of thumb, for every stage the label whose accesses are contiguous as the
//! vector label. Nothing here measures.

use super::check::{MAX_TILE, lanes_label, vectorisable};
use super::{Isa, Schedule, StageSchedule, scratch};
use crate::kernel::{Buf, Kernel, Kind, LocalAxis, Stage};
use tgc_ir::types::{Atom, Dim};

/// Points of a tile for elementwise work, and for contractions.
const POINTS: u32 = 4096;
const CONTRACT_POINTS: u32 = 512;

/// Bytes of locals a tile aims at.
const LOCALS: i64 = 256 << 10;

/// What an extent that is not known counts as.
const UNKNOWN: i64 = 1024;

impl Schedule {
    /// A schedule that is valid for every verified kernel.
    pub fn default_for(kernel: &Kernel, isa: Isa) -> Schedule {
        let stages: Vec<StageSchedule> = kernel.stages().into_iter().map(|s| stage(kernel, s, isa)).collect();
        let contract = kernel.stages().iter().any(|s| matches!(s.kind, Kind::Contract { .. }));
        let points = if contract { CONTRACT_POINTS } else { POINTS };
        let mut left = points;
        let mut tiles = vec![1; kernel.grid.len()];
        for (tile, extent) in tiles.iter_mut().zip(&kernel.grid).rev() {
            *tile = extent_guess(extent).clamp(1, i64::from(left.min(MAX_TILE))) as u32;
            if extent.as_const().is_none() && *tile > 1 {
                *tile = tile.next_power_of_two().min(left.max(1));
            }
            left = (left / *tile).max(1);
        }
        let mut out = Schedule { tiles, stages };
        while known(&scratch(kernel, &out)) > LOCALS {
            let Some(axis) = shrinkable(kernel, &out) else { break };
            out.tiles[axis] = out.tiles[axis].div_ceil(2);
        }
        out
    }
}

/// The outermost grid axis with a tile above 1 that some local's size depends on.
fn shrinkable(kernel: &Kernel, s: &Schedule) -> Option<usize> {
    let counts = |g: usize| {
        let axes = kernel.locals.iter().flat_map(|l| &l.axes);
        axes.into_iter().any(|a| matches!(a, LocalAxis::Tile { grid, .. } if *grid as usize == g))
    };
    (0..s.tiles.len()).find(|g| s.tiles[*g] > 1 && counts(*g))
}

fn extent_guess(d: &Dim) -> i64 {
    d.as_const().unwrap_or(UNKNOWN)
}

fn known(d: &Dim) -> i64 {
    d.eval(&|_| Some(UNKNOWN)).unwrap_or(i64::MAX)
}

fn stage(k: &Kernel, s: &Stage, isa: Isa) -> StageSchedule {
    let bufs = s.loads.iter().map(|l| l.from).chain(s.stores.iter().map(|st| st.to));
    let widest =
        bufs.map(|b| k.dtype(b).size()).chain(s.expr.roots.iter().map(|r| s.expr.dtype(*r).size())).max();
    let width = (isa.vector_bytes / widest.unwrap_or(4).max(1) as u32).clamp(1, 64);
    let scalar = StageSchedule { vector: None, width: 1, unroll: 1, block: (1, 1) };
    let candidates = vectorisable(s).into_iter().map(|l| (score(k, s, l, true), l));
    let lanes = lanes_label(s, width).map(|l| (score(k, s, l, false), l));
    let best = candidates.chain(lanes).max_by_key(|c| c.0);
    match best {
        Some((points, l)) if points >= 0 && width > 1 => {
            let unroll = if matches!(s.kind, Kind::Contract { .. }) { 4 } else { 1 };
            StageSchedule { vector: Some(l), width, unroll, ..scalar }
        }
        _ => scalar,
    }
}

/// How well the stage's accesses suit vectors along a label: contiguous ones count for it, strided ones against.
fn score(k: &Kernel, s: &Stage, label: u32, stores: bool) -> i64 {
    let mut sum = 0;
    for l in &s.loads {
        sum += match step(k, l.from, &l.index, label) {
            Some(0) => 0,
            Some(1) => 2,
            _ => -2,
        };
    }
    for st in s.stores.iter().filter(|_| stores) {
        sum += if step(k, st.to, &st.index, label) == Some(1) { 3 } else { -3 };
    }
    let extent =
        s.inner.iter().chain(&s.red).find(|l| l.0 == label).map(|l| &l.1).or(k.grid.get(label as usize));
    match extent.and_then(Dim::as_const) {
        Some(n) if n < 4 => sum - 8,
        _ => sum,
    }
}

/// Distance in elements between neighbours along the label where it is 0 or 1; others are None.
fn step(k: &Kernel, b: Buf, index: &[Dim], label: u32) -> Option<i64> {
    let (last, outer) = match index.split_last() {
        Some(x) => x,
        None => return Some(0),
    };
    let uses = |d: &Dim| d.any_leaf(|a| *a == Atom::Label(label) || matches!(a, Atom::Val(_)));
    let ring = match b {
        Buf::Local(l) => {
            k.locals.get(l as usize).is_some_and(|l| matches!(l.axes.last(), Some(LocalAxis::Ring(_))))
        }
        Buf::Arg(_) => false,
    };
    if outer.iter().any(uses) || (ring && uses(last)) {
        return None;
    }
    if !uses(last) {
        return Some(0);
    }
    last.affine(label).and_then(|(c, _)| c.as_const()).filter(|c| *c == 1)
}
