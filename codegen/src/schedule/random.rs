//! Random valid schedules, for property tests.

use super::check::{lanes_label, row_labels, vectorisable};
use super::{Schedule, StageSchedule};
use crate::kernel::Kernel;
use crate::kernel::random::Rng;

impl Schedule {
    /// A random schedule that is valid for a verified kernel.
    pub(crate) fn random(kernel: &Kernel, r: &mut Rng) -> Schedule {
        let stages = kernel.stages().into_iter().map(|s| {
            let width = r.pick(&[2, 4, 8, 16, 32]);
            let labels: Vec<u32> = vectorisable(s).into_iter().chain(lanes_label(s, width)).collect();
            let unroll = 1 + r.below(4) as u32;
            if labels.is_empty() || r.once_in(4) {
                return StageSchedule { unroll, ..StageSchedule::SCALAR };
            }
            let vector = Some(r.pick(&labels));
            let rows = row_labels(s, vector);
            let rows = (!rows.is_empty() && !r.once_in(4)).then(|| (r.pick(&rows), 1 + r.below(7) as u32));
            StageSchedule { vector, width, unroll, rows }
        });
        let stages = stages.collect();
        let mut order: Vec<u32> = (0..kernel.grid.len() as u32).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, r.below(i + 1));
        }
        Schedule {
            tiles: kernel.grid.iter().map(|_| r.pick(&[1, 2, 3, 5, 8, 16, 31, 64])).collect(),
            order,
            stages,
        }
    }
}
