//! Which schedules are valid for a kernel. Validity has nothing to do with speed; no valid schedule changes a result.

use super::{Isa, Schedule, StageSchedule, scratch};
use crate::kernel::{Kernel, Kind, Stage};
use tgc_ir::class::Combine;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::types::Atom;

/// Greatest tile size on an axis.
pub(super) const MAX_TILE: u32 = 1 << 16;

/// Greatest scratch memory of a worker where it is known, in bytes.
const MAX_SCRATCH: i64 = 64 << 20;

impl Schedule {
    /// Ok if code for the kernel can be made with this schedule. The kernel is a verified one.
    pub fn check(&self, kernel: &Kernel, isa: Isa) -> Result<(), Diag> {
        let stages = kernel.stages();
        let fail = |place: String, message: String| {
            Err(Diag::error("E-SCH-001", message)
                .at(&Loc::new(place))
                .help("use the default schedule, which is always valid"))
        };
        let whole = || format!("schedule of kernel {}", kernel.name);
        if !matches!(isa.vector_bytes, 16 | 32 | 64) {
            return fail(
                whole(),
                format!("vectors of {} bytes; allowed are 16, 32 and 64", isa.vector_bytes),
            );
        }
        if self.tiles.len() != kernel.grid.len() || self.stages.len() != stages.len() {
            return fail(
                whole(),
                format!(
                    "{} tile sizes and {} stages; the kernel has {} grid axes and {} stages",
                    self.tiles.len(),
                    self.stages.len(),
                    kernel.grid.len(),
                    stages.len()
                ),
            );
        }
        let mut axes = self.order.clone();
        axes.sort_unstable();
        if !axes.into_iter().eq(0..kernel.grid.len() as u32) {
            return fail(
                whole(),
                format!("tiles in the order {:?}, which is no order of all grid axes", self.order),
            );
        }
        if let Some(t) = self.tiles.iter().find(|t| **t == 0 || **t > MAX_TILE) {
            return fail(whole(), format!("a tile of {t} elements; allowed are 1 to {MAX_TILE}"));
        }
        if let Some(bytes) = scratch(kernel, self).as_const().filter(|b| *b > MAX_SCRATCH) {
            return fail(whole(), format!("{bytes} bytes of locals a tile; at most {MAX_SCRATCH}"));
        }
        for (s, plan) in stages.iter().zip(&self.stages) {
            if let Err(m) = stage(s, plan) {
                return fail(format!("schedule of kernel {}, stage {:?}", kernel.name, s.name), m);
            }
        }
        Ok(())
    }
}

fn stage(s: &Stage, plan: &StageSchedule) -> Result<(), String> {
    if let Some((label, count)) = plan.rows {
        if !row_labels(s, plan.vector).contains(&label) {
            return Err(format!(
                "rows of label #{label}; labels that can be: {:?}",
                row_labels(s, plan.vector)
            ));
        }
        if !(1..=16).contains(&count) {
            return Err(format!("{count} rows; allowed are 1 to 16"));
        }
    }
    if !(1..=8).contains(&plan.unroll) {
        return Err(format!("unroll {}; allowed are 1 to 8", plan.unroll));
    }
    if !plan.width.is_power_of_two() || plan.width > 64 {
        return Err(format!("vectors of {} elements; allowed are powers of two up to 64", plan.width));
    }
    match plan.vector {
        None if plan.width != 1 => Err(format!("{} elements a vector without a vector label", plan.width)),
        None => Ok(()),
        Some(l) if !vectorisable(s).contains(&l) && lanes_label(s, plan.width) != Some(l) => Err(format!(
            "label #{l} cannot be run in vectors of {}; labels that can: {:?}",
            plan.width,
            vectorisable(s)
        )),
        Some(_) => Ok(()),
    }
}

/// Point labels that may be run in vectors: all, unless the stage's stores depend on the order of points.
pub(super) fn vectorisable(s: &Stage) -> Vec<u32> {
    let ordered = s.stores.iter().any(|st| {
        st.op != Combine::Set || st.index.iter().any(|d| d.any_leaf(|a| matches!(a, Atom::Val(_))))
    });
    if ordered { Vec::new() } else { s.over.iter().copied().chain(s.inner.iter().map(|l| l.0)).collect() }
}

/// Labels whose positions can be rows of a contraction's block beside this vector label.
pub(super) fn row_labels(s: &Stage, vector: Option<u32>) -> Vec<u32> {
    match (&s.kind, vector) {
        (Kind::Contract { .. }, Some(v)) => vectorisable(s).into_iter().filter(|l| *l != v).collect(),
        _ => Vec::new(),
    }
}

/// The last reduction label of a `Reduce` whose lanes are a multiple of the width.
pub(super) fn lanes_label(s: &Stage, width: u32) -> Option<u32> {
    match &s.kind {
        Kind::Reduce { lanes, .. } if lanes % width.max(1) == 0 => s.red.last().map(|l| l.0),
        _ => None,
    }
}
