//! Sizes that follow from a kernel and its tile sizes: the scratch memory of a worker and the number of tiles.

use super::{Schedule, StageSchedule};
use crate::kernel::{Kernel, Kind, LocalAxis, Stage};
use tgc_ir::types::Dim;

/// Alignment of every local in scratch memory, in bytes.
const ALIGN: i64 = 64;

/// Extents of local number `local` in scratch memory: full tiles with their halos, whatever the extent of the grid.
pub(crate) fn local_extents(kernel: &Kernel, schedule: &Schedule, local: usize) -> Vec<Dim> {
    let Some(l) = kernel.locals.get(local) else { return Vec::new() };
    let extent = |a: &LocalAxis| match a {
        LocalAxis::Tile { grid, lo, hi } => {
            let tile = schedule.tiles.get(*grid as usize).copied().unwrap_or(1);
            Dim::from(i64::from(tile) + i64::from(*lo) + i64::from(*hi))
        }
        LocalAxis::Full(d) => d.clone(),
        LocalAxis::Ring(n) => Dim::from(i64::from(*n)),
    };
    l.axes.iter().map(extent).collect()
}

/// How a contraction of more than one chunk is run over a tile: a chunk for all rows and columns before the next one, so
/// that the part of both operands in use stays in cache. Sums of the chunks before are kept in scratch memory, row-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkSums {
    /// Columns of a row of sums: the tile's, in whole vectors.
    pub(crate) columns: u32,
    /// Positions of the outermost reduction label that make a chunk.
    pub(crate) count: i64,
    /// Bytes of all sums.
    pub(crate) bytes: i64,
}

/// [`ChunkSums`] of a stage that has rows and columns on grid axes, and whose chunks end between positions of its outermost
/// reduction label.
pub(crate) fn chunk_sums(s: &Stage, plan: &StageSchedule, tiles: &[u32]) -> Option<ChunkSums> {
    let Kind::Contract { chunk } = s.kind else { return None };
    let ((rows, _), vector) = (plan.rows?, plan.vector?);
    let (rows, columns) = (*tiles.get(rows as usize)?, *tiles.get(vector as usize)?);
    let chunk = i64::from(chunk.max(1));
    let (outermost, inner) = s.red.split_first()?;
    let mut step = 1i64;
    for (_, extent) in inner.iter().rev() {
        step = step.checked_mul(extent.as_const().filter(|e| *e > 0)?).filter(|n| chunk % n == 0)?;
    }
    if outermost.1.as_const().is_some_and(|e| e.saturating_mul(step) <= chunk) {
        return None;
    }
    let columns = columns.div_ceil(plan.width) * plan.width;
    let size = s.expr.roots.first().map_or(4, |r| s.expr.dtype(*r).size());
    let bytes = i64::from(rows) * i64::from(columns) * size as i64;
    Some(ChunkSums { columns, count: chunk / step, bytes })
}

/// Byte offset of the sums of chunks in a worker's scratch memory: behind the locals.
pub(crate) fn sums_offset(kernel: &Kernel, schedule: &Schedule) -> Dim {
    layout(kernel, schedule).1
}

/// Byte offset of every local in scratch memory, and the size of all of them, over the kernel's parameters.
fn layout(kernel: &Kernel, schedule: &Schedule) -> (Vec<Dim>, Dim) {
    let (mut at, mut out) = (Dim::from(0), Vec::new());
    for (i, l) in kernel.locals.iter().enumerate() {
        out.push(at.clone());
        let bytes: Dim = local_extents(kernel, schedule, i).into_iter().product();
        let bytes = bytes * Dim::from(l.dtype.size());
        at = at + (bytes + Dim::from(ALIGN - 1)).floordiv(&Dim::from(ALIGN)) * Dim::from(ALIGN);
    }
    (out, at)
}

/// Byte offset of every local in a worker's scratch memory, multiples of 64, over the kernel's parameters.
pub(crate) fn local_offsets(kernel: &Kernel, schedule: &Schedule) -> Vec<Dim> {
    layout(kernel, schedule).0
}

/// Bytes of scratch memory a worker needs, over the kernel's parameters.
pub fn scratch(kernel: &Kernel, schedule: &Schedule) -> Dim {
    let stages = kernel.stages().into_iter().zip(&schedule.stages);
    let sums = stages.filter_map(|(s, plan)| chunk_sums(s, plan, &schedule.tiles)).map(|c| c.bytes).max();
    layout(kernel, schedule).1 + Dim::from(sums.unwrap_or(0))
}

/// Number of tiles of a launch, over the kernel's parameters; tiles are numbered row-major over the grid axes in the
/// schedule's order.
pub fn tile_count(kernel: &Kernel, schedule: &Schedule) -> Dim {
    let count = |(extent, tile): (&Dim, &u32)| {
        let tile = Dim::from(i64::from((*tile).max(1)));
        (extent.clone() + tile.clone() - Dim::from(1)).floordiv(&tile)
    };
    kernel.grid.iter().zip(&schedule.tiles).map(count).product()
}
