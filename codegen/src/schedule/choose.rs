//! The default schedule: tile sizes by a rule of thumb, for every stage the label whose accesses are contiguous as the
//! vector label. Nothing here measures.

use super::check::{MAX_TILE, lanes_label, vectorisable};
use super::{Isa, Schedule, StageSchedule, scratch};
use crate::kernel::{Buf, Kernel, Kind, Load, LocalAxis, Mode, Stage, flat, packed_label, without_panels};
use tgc_ir::class::Combine;
use tgc_ir::types::{Atom, Dim};

/// Points of a tile for elementwise work, and for contractions.
const POINTS: u32 = 4096;
const CONTRACT_POINTS: u32 = 512;

/// Bytes of locals a tile aims at.
const LOCALS: i64 = 256 << 10;

/// What an extent that is not known counts as: of a grid, and of a local.
const UNKNOWN: i64 = 1024;
const UNKNOWN_LOCAL: i64 = 256;

impl Schedule {
    /// A schedule that is valid for every verified kernel.
    pub fn default_for(kernel: &Kernel, isa: Isa) -> Schedule {
        let stages: Vec<StageSchedule> = kernel.stages().into_iter().map(|s| stage(kernel, s, isa)).collect();
        let contract = kernel.stages().iter().any(|s| matches!(s.kind, Kind::Contract { .. }));
        let blocked = kernel
            .stages()
            .into_iter()
            .zip(&stages)
            .find(|(s, plan)| matches!(s.kind, Kind::Contract { .. }) && plan.vector.is_some());
        let order: Vec<u32> = (0..kernel.grid.len() as u32).collect();
        let mut tiles = vec![1; kernel.grid.len()];
        if let Some((s, plan)) = blocked {
            let order = contract_tiles(kernel, s, plan, &mut tiles);
            return fit(kernel, Schedule { tiles, order, stages });
        }
        let points = if contract { CONTRACT_POINTS } else { POINTS };
        let mut left = points;
        for (tile, extent) in tiles.iter_mut().zip(&kernel.grid).rev() {
            *tile = extent_guess(extent).clamp(1, i64::from(left.min(MAX_TILE))) as u32;
            if extent.as_const().is_none() && *tile > 1 {
                *tile = tile.next_power_of_two().min(left.max(1));
            }
            left = (left / *tile).max(1);
        }
        fit(kernel, Schedule { tiles, order, stages })
    }
}

/// Smaller tiles until the locals fit, as far as they grow with the tiles.
fn fit(kernel: &Kernel, mut s: Schedule) -> Schedule {
    let least = Schedule { tiles: vec![1; s.tiles.len()], ..s.clone() };
    let fixed = known(&scratch(kernel, &least));
    while known(&scratch(kernel, &s)).saturating_sub(fixed) > LOCALS {
        let Some(axis) = shrinkable(kernel, &s) else { break };
        let half = s.tiles[axis].div_ceil(2);
        s.tiles[axis] = if half > WHOLE { half / WHOLE * WHOLE } else { half };
    }
    s
}

/// Tiles stay multiples of this: whole register blocks.
const WHOLE: u32 = 12;

/// Bytes of one operand's rows that a tile reads again for every block of columns: half of a 512 KiB second-level cache.
const ROW_BYTES: i64 = 256 << 10;
/// Columns of a tile: a few panels.
const COLUMNS: i64 = 64;
/// Most rows of a tile, multiples of 6 and 12; where a tile copies its columns first, and where it does not.
const MOST_COPIED_ROWS: i64 = 1920;
const MOST_ROWS: i64 = 480;
/// Tiles that serve several threads evenly.
const ENOUGH_TILES: i64 = 16;

/// Tile sizes for a contraction in register blocks; gives the order of the axes. With several tiles of columns those come
/// outermost, so that threads share the columns and a tile's columns stay in cache while all rows pass.
fn contract_tiles(k: &Kernel, s: &Stage, plan: &StageSchedule, tiles: &mut [u32]) -> Vec<u32> {
    let axes = tiles.len() as u32;
    let column = plan.vector.filter(|v| *v < axes);
    let row = plan.rows.filter(|r| r.0 < axes);
    let mut order: Vec<u32> = (0..axes).collect();
    let mut count: i64 = 1;
    for g in order.iter().filter(|g| Some(**g) != column && Some(**g) != row.map(|r| r.0)) {
        count = count.saturating_mul(extent_guess(&k.grid[*g as usize]));
    }
    if let Some(c) = column {
        let extent = extent_guess(&k.grid[c as usize]);
        // A local of panels has the tile's width: one register block, so that it is read front to back.
        let panels = s.loads.iter().any(|l| match l.from {
            Buf::Local(i) => k
                .locals
                .get(i as usize)
                .is_some_and(|l| matches!(l.axes.last(), Some(LocalAxis::Tile { grid, .. }) if *grid == c)),
            Buf::Arg(_) => false,
        });
        let most = if panels { i64::from(plan.width * plan.unroll) } else { COLUMNS };
        let tile = extent.clamp(1, most.max(1));
        // In whole vectors: panels of packed weights begin at multiples of them.
        let whole = i64::from(plan.width.max(16));
        tiles[c as usize] = (tile + whole - 1) as u32 / whole as u32 * whole as u32;
        let columns = extent.max(1).div_euclid(i64::from(tiles[c as usize])).max(1);
        count = count.saturating_mul(columns);
        if columns >= 4 || row.is_some_and(|r| k.grid[r.0 as usize].as_const().is_none()) {
            order.retain(|g| *g != c);
            order.insert(0, c);
        }
    }
    if let Some((r, rows)) = row {
        let rows = i64::from(rows);
        let extent = extent_guess(&k.grid[r as usize]).max(1);
        let in_blocks = |n: i64| (n.saturating_add(rows - 1) / rows).max(1) * rows;
        let copied = s.loads.iter().any(|l| matches!(l.from, Buf::Local(_)) && reduces(s, l) && !uses(l, r));
        let most = match copied {
            // Every tile copies its columns first.
            true => MOST_COPIED_ROWS,
            false => (ROW_BYTES / row_bytes(k, s)).clamp(2 * rows, MOST_ROWS) / rows * rows,
        };
        let mut parts = extent.saturating_add(most - 1) / most;
        if count.saturating_mul(parts) < ENOUGH_TILES {
            parts = (ENOUGH_TILES / count.max(1)).min(extent / (4 * rows)).max(parts);
        }
        let known = k.grid[r as usize].as_const().is_some();
        tiles[r as usize] =
            if known { in_blocks(extent.saturating_add(parts - 1) / parts.max(1)) } else { most } as u32;
    }
    order
}

/// Bytes of an operand that one more row brings in: a chunk's for a matrix, the innermost label's for windows, which
/// overlap.
fn row_bytes(k: &Kernel, s: &Stage) -> i64 {
    let size = s.loads.first().map_or(4, |l| k.dtype(l.from).size() as i64);
    let extents: Vec<i64> = s.red.iter().map(|r| extent_guess(&r.1)).collect();
    let Kind::Contract { chunk } = s.kind else { return size };
    let chunk = i64::from(chunk);
    match extents[..] {
        [] => size,
        [k] => k.min(chunk).saturating_mul(size).max(size),
        [.., last] => last.saturating_mul(2 * size).max(size),
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
    d.eval(&|_| Some(UNKNOWN_LOCAL)).unwrap_or(i64::MAX)
}

fn stage(k: &Kernel, s: &Stage, isa: Isa) -> StageSchedule {
    if let Kind::Contract { .. } = s.kind
        && let Some(plan) = contraction(k, s, isa)
    {
        return plan;
    }
    let bufs = s.loads.iter().map(|l| l.from).chain(s.stores.iter().map(|st| st.to));
    let widest =
        bufs.map(|b| k.dtype(b).size()).chain(s.expr.roots.iter().map(|r| s.expr.dtype(*r).size())).max();
    let width = (isa.vector_bytes / widest.unwrap_or(4).max(1) as u32).clamp(1, 64);
    let candidates = vectorisable(s).into_iter().map(|l| (score(k, s, l, width, true), l));
    let lanes = lanes_label(s, width).map(|l| (score(k, s, l, width, false), l));
    let best = candidates.chain(lanes).max_by_key(|c| c.0);
    match best {
        Some((points, l)) if points >= 0 && width > 1 => {
            let unroll = if matches!(s.kind, Kind::Contract { .. }) { 4 } else { 1 };
            StageSchedule { vector: Some(l), width, unroll, rows: None }
        }
        _ => StageSchedule::SCALAR,
    }
}

/// A register block: vectors along the label the stores are contiguous in, rows along the label the operand that does
/// not move with the vectors is read at. 6 rows of 2 vectors fill the 16 registers of SSE and AVX2, 12 of 2 the 32 of
/// AVX-512 and NEON: accumulators, the vectors of one operand, and one broadcast element of the other.
fn contraction(k: &Kernel, s: &Stage, isa: Isa) -> Option<StageSchedule> {
    let acc = s.expr.dtype(*s.expr.roots.first()?).size() as u32;
    let width = isa.vector_bytes / acc.max(1);
    let points: Vec<(u32, i64)> = vectorisable(s).into_iter().map(|l| (l, extent_of(k, s, l))).collect();
    let contiguous = |l: u32| s.stores.iter().all(|st| step(k, st.to, &st.index, l, width) == Some(1));
    let packed = packed_label(k, s).and_then(|l| points.iter().copied().find(|p| p.0 == l));
    let (vector, len) = packed.or_else(|| points.iter().copied().find(|p| contiguous(p.0)))?;
    if width < 2 || len < 2 {
        return None;
    }
    let moves = |l: &Load| step(k, l.from, &l.index, vector, width) != Some(0);
    let moving: Vec<&Load> = s.loads.iter().filter(|l| reduces(s, l) && moves(l)).collect();
    // A row shares the vectors of whatever does not move with the row.
    let shared = |row: u32| moving.iter().filter(|l| !uses(l, row)).count();
    let row = points
        .iter()
        .filter(|p| p.0 != vector && p.1 > 1 && shared(p.0) > 0)
        .max_by_key(|p| (shared(p.0), p.1.min(ROWS_ENOUGH), p.0));
    let both_move = s.loads.iter().filter(|l| reduces(s, l)).all(moves);
    let many_registers = isa.vector_bytes == 64 || (isa.vector_bytes == 16 && isa.fma);
    let (rows, vectors) = match (many_registers, both_move) {
        (true, false) => (12, 2),
        (false, false) => (6, 2),
        // Every row has a vector of its own in both operands.
        (_, true) => (6, 1),
    };
    Some(match row {
        Some(&(label, _)) => {
            StageSchedule { vector: Some(vector), width, unroll: vectors, rows: Some((label, rows)) }
        }
        None => StageSchedule { vector: Some(vector), width, unroll: 8, rows: None },
    })
}

fn uses(l: &Load, label: u32) -> bool {
    l.index.iter().any(|d| d.any_leaf(|a| *a == Atom::Label(label)))
}

/// Extents from which more rows are no better.
const ROWS_ENOUGH: i64 = 48;

fn extent_of(k: &Kernel, s: &Stage, label: u32) -> i64 {
    let inner = s.inner.iter().chain(&s.red).find(|l| l.0 == label).map(|l| &l.1);
    inner.or(k.grid.get(label as usize)).map_or(1, extent_guess)
}

/// True for a read that happens at every step of the sum.
fn reduces(s: &Stage, l: &Load) -> bool {
    let label = |x: u32| l.index.iter().any(|d| d.any_leaf(|a| *a == Atom::Label(x)));
    s.red.is_empty() || s.red.iter().any(|r| label(r.0))
}

/// Sizes in bytes of the elements a stage moves in vectors along a label (for `width` see [`step`]); none where it cannot do with part of a vector.
pub(crate) fn widths(k: &Kernel, s: &Stage, label: u32, width: u32) -> Vec<usize> {
    let plain = |d: &Dim| !d.any_leaf(|a| matches!(a, Atom::Val(_)));
    let loads = s.loads.iter().all(|l| !matches!(l.mode, Mode::Trap(..)) && l.index.iter().all(plain));
    let stores = s.stores.iter().all(|st| {
        st.op == Combine::Set
            && st.index.iter().all(plain)
            && step(k, st.to, &st.index, label, width) == Some(1)
    });
    if !loads || !stores || matches!(s.kind, Kind::Reduce { .. }) {
        return Vec::new();
    }
    s.loads.iter().map(|l| l.from).chain(s.stores.iter().map(|st| st.to)).map(|b| k.dtype(b).size()).collect()
}

/// How well the stage's accesses suit vectors along a label: contiguous ones count for it, strided ones against.
fn score(k: &Kernel, s: &Stage, label: u32, width: u32, stores: bool) -> i64 {
    let mut sum = 0;
    for l in &s.loads {
        sum += match step(k, l.from, &l.index, label, width) {
            Some(0) => 0,
            Some(1) => 2,
            _ => -2,
        };
    }
    for st in s.stores.iter().filter(|_| stores) {
        sum += if step(k, st.to, &st.index, label, width) == Some(1) { 3 } else { -3 };
    }
    let extent =
        s.inner.iter().chain(&s.red).find(|l| l.0 == label).map(|l| &l.1).or(k.grid.get(label as usize));
    match extent.and_then(Dim::as_const) {
        Some(n) if n < 4 => sum - 8,
        _ => sum,
    }
}

/// Distance in elements between neighbours along the label, inside vectors of `width` that start at a multiple of it (0:
/// anywhere), where it is 0 or 1; others are None.
fn step(k: &Kernel, b: Buf, index: &[Dim], label: u32, width: u32) -> Option<i64> {
    let uses = |d: &Dim| d.any_leaf(|a| *a == Atom::Label(label) || matches!(a, Atom::Val(_)));
    if !index.iter().any(uses) {
        return Some(0);
    }
    let at = flat(k, b, index)?;
    if at.any_leaf(|a| matches!(a, Atom::Val(_))) {
        return None;
    }
    let (c, _) = without_panels(&at, label, width).affine(label)?;
    c.as_const().filter(|c| matches!(c, 0 | 1))
}
