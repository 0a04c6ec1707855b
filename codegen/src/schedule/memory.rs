//! Sizes that follow from a kernel and its tile sizes: the scratch memory of a worker and the number of tiles.

use super::Schedule;
use crate::kernel::{Kernel, LocalAxis};
use tgc_ir::types::Dim;

/// Alignment of every local in scratch memory, in bytes.
const ALIGN: i64 = 64;

/// Extents of local number `local` in scratch memory: full tiles with their halos, whatever the extent of the grid.
pub fn local_extents(kernel: &Kernel, schedule: &Schedule, local: usize) -> Vec<Dim> {
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
pub fn local_offsets(kernel: &Kernel, schedule: &Schedule) -> Vec<Dim> {
    layout(kernel, schedule).0
}

/// Bytes of scratch memory a worker needs, over the kernel's parameters.
pub fn scratch(kernel: &Kernel, schedule: &Schedule) -> Dim {
    layout(kernel, schedule).1
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
