//! Random valid schedules, for property tests.

use super::check::{lanes_label, vectorisable};
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
                return StageSchedule { vector: None, width: 1, unroll, block: (1, 1) };
            }
            StageSchedule { vector: Some(r.pick(&labels)), width, unroll, block: (1, 1) }
        });
        let stages = stages.collect();
        Schedule { tiles: kernel.grid.iter().map(|_| r.pick(&[1, 2, 3, 5, 8, 16, 31, 64])).collect(), stages }
    }
}
