//! Schedules: how a kernel is tiled, vectorised and unrolled for one instruction set. Data beside the kernel; the
//! default is always valid, and no valid schedule changes a result by a bit.

mod check;
mod choose;
mod memory;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

pub use memory::{local_extents, local_offsets, scratch, tile_count};

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
    /// Rows and columns of a Contract's register block; (1, 1) until blocking is built.
    pub block: (u32, u32),
}

impl Schedule {
    /// Everything scalar, one tile size for all axes: valid for any kernel.
    pub fn scalar(kernel: &Kernel, tile: u32) -> Schedule {
        let plain = StageSchedule { vector: None, width: 1, unroll: 1, block: (1, 1) };
        Schedule { tiles: vec![tile.max(1); kernel.grid.len()], stages: vec![plain; kernel.stages().len()] }
    }
}

impl fmt::Display for Schedule {
    /// One line: tile sizes, then vector label, width, unroll and block of each stage.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tiles {:?}", self.tiles)?;
        for s in &self.stages {
            match s.vector {
                Some(l) => write!(f, "; #{l} x{} unroll {}", s.width, s.unroll)?,
                None => write!(f, "; scalar unroll {}", s.unroll)?,
            }
            if s.block != (1, 1) {
                write!(f, " block {}x{}", s.block.0, s.block.1)?;
            }
        }
        Ok(())
    }
}
