//! Buffers that share their bytes: a temporary whose last reader may write its result over it. What must not be here: what
//! kernels allow (`kernel::reuse`), or where buffers are placed (the runtime's planner).

use crate::kernel::{Kernel, reuse};
use tgc_runtime as rt;

/// Puts outputs of launches into one class with an input that dies there, where the kernel allows it. Lifetimes must be set.
pub(crate) fn share(program: &mut rt::Program, kernels: &[Kernel]) {
    let pairs: Vec<Vec<(u32, u32)>> = kernels.iter().map(reuse::in_place).collect();
    let mut classes: Vec<Option<u32>> = program.buffers.iter().map(|b| b.alias).collect();
    let mut next = classes.iter().flatten().max().map_or(0, |c| c + 1);
    let steps = program.segments.iter().flat_map(|s| &s.steps);
    for (at, step) in (0..).zip(steps) {
        let rt::Step::Launch { kernel, args, .. } = step else { continue };
        for &(out, input) in pairs.get(*kernel as usize).into_iter().flatten() {
            let (Some(&out), Some(&input)) = (args.get(out as usize), args.get(input as usize)) else {
                continue;
            };
            let alone = |b: u32| args.iter().filter(|a| **a == b).count() == 1;
            let (y, x) = (&program.buffers[out as usize], &program.buffers[input as usize]);
            let temporary = y.kind == rt::BufferKind::Temp && x.kind == rt::BufferKind::Temp;
            let hands_over = x.last == at && y.first == at && x.size == y.size;
            if !(temporary && hands_over && alone(out) && alone(input)) || classes[out as usize].is_some() {
                continue;
            }
            let class = *classes[input as usize].get_or_insert_with(|| {
                next += 1;
                next - 1
            });
            classes[out as usize] = Some(class);
        }
    }
    for (b, class) in program.buffers.iter_mut().zip(classes) {
        b.alias = class;
    }
}
