//! Schedules: how a kernel is tiled, vectorised and unrolled for one instruction set. Data beside the kernel; the
//! default is always valid, and no valid schedule changes a result by a bit.

mod check;
mod choose;
mod memory;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

pub(crate) use choose::widths;
pub(crate) use memory::{ChunkSums, chunk_sums, sums_offset};
pub(crate) use memory::{local_extents, local_offsets};
pub use memory::{scratch, tile_count};

use crate::kernel::Kernel;
use std::fmt;

/// What a schedule may count on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa {
    /// Bytes of a vector register: 16, 32 or 64.
    pub vector_bytes: u32,
    /// Fused multiply-add in hardware.
    pub fma: bool,
}

/// A schedule for one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Tile size on each grid axis, at least 1.
    pub tiles: Vec<u32>,
    /// All grid axes, outermost first: tiles are numbered so that the last one's follow each other.
    pub order: Vec<u32>,
    /// One for each stage in the order of [`Kernel::stages`].
    pub stages: Vec<StageSchedule>,
}

/// Schedule of one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageSchedule {
    /// Label run in vectors: a grid or inner label, or the last reduction label of a `Reduce` whose lanes are a multiple
    /// of the width. None: scalar.
    pub vector: Option<u32>,
    /// Elements of a vector, a power of two up to 64; 1 without a vector label.
    pub width: u32,
    /// Vectors taken at once, 1 to 8.
    pub unroll: u32,
    /// Of a `Contract` in vectors: another point label, and how many of its positions are taken side by side with the
    /// vectors (the rows of its register block), 1 to 16.
    pub rows: Option<(u32, u32)>,
}

impl StageSchedule {
    /// One element at a time.
    pub const SCALAR: StageSchedule = StageSchedule { vector: None, width: 1, unroll: 1, rows: None };
}

impl Schedule {
    /// Everything scalar, one tile size for all axes: valid for any kernel.
    pub fn scalar(kernel: &Kernel, tile: u32) -> Schedule {
        let stages = vec![StageSchedule::SCALAR; kernel.stages().len()];
        let axes = kernel.grid.len();
        Schedule { tiles: vec![tile.max(1); axes], order: (0..axes as u32).collect(), stages }
    }
}

impl fmt::Display for Schedule {
    /// One line: tile sizes, then vector label, width, unroll and rows of each stage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tiles {:?}", self.tiles)?;
        if !self.order.is_sorted() {
            write!(f, " order {:?}", self.order)?;
        }
        for s in &self.stages {
            match s.vector {
                Some(l) => write!(f, "; #{l} x{} unroll {}", s.width, s.unroll)?,
                None => write!(f, "; scalar unroll {}", s.unroll)?,
            }
            if let Some((l, n)) = s.rows {
                write!(f, " rows #{l} x{n}")?;
            }
        }
        Ok(())
    }
}
