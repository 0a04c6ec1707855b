//! The Window class: a reducer over window positions, for a block of result elements at a time.

use super::classes::{Job, fault, load};
use super::expr::{BLOCK, Reg};
use super::index::Space;
use super::reduce::Machine;
use super::value::Val;
use crate::class::Window;
use crate::diag::Diag;

/// Window steps beyond which nothing is run: a wrong kernel size would seem to hang.
const MOST_STEPS: usize = 1 << 36;

/// Evaluates a window reduction.
pub(crate) fn eval(c: &Window, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let x = job.input(0)?;
    let mut outs = (0..job.outs.len()).map(|i| job.new_out(i)).collect::<Result<Vec<_>, _>>()?;
    let shape = &job.out(0)?.1;
    if outs.iter().any(|o| o.shape != *shape) {
        return Err(fault("the results of a window reduction differ in shape"));
    }
    let sizes = job.slots(&[], 0);
    let (rank, mut extents) = (shape.len(), shape.clone());
    for d in &c.extents {
        let e = sizes.number(d)?;
        extents.push(usize::try_from(e).map_err(|_| fault(format!("a window label has extent {e}")))?);
    }
    let slots = job.slots(&extents, 0);
    let when = slots.cond(&c.access.when)?;
    let read = slots.linear(&c.access.index, &x.shape, !when.always())?;
    let mut m = Machine::new(&c.reducer, &sizes, job.bounded)?;
    let space = Space::new(shape);
    let positions = Space::of(extents[rank..].iter().enumerate().map(|(i, &e)| (rank + i, 0, e)));
    if positions.size().saturating_mul(space.size()) > MOST_STEPS {
        let msg = format!(
            "a window of {} positions over {} elements is too much work",
            positions.size(),
            space.size()
        );
        return Err(Diag::error("E-RUN-023", msg).help("use a smaller window or smaller sizes"));
    }
    let inner = space.inner();
    let mut at = vec![0i64; extents.len()];
    let mut ins = vec![Reg::new(x.dtype, job.bounded)];
    for start in (0..space.size()).step_by(BLOCK) {
        let n = BLOCK.min(space.size() - start);
        let mut state = m.start();
        for p in 0..positions.size() {
            let mut mask = [false; BLOCK];
            let reg = &mut ins[0];
            // masked elements still pass through the step; let it see numbers
            if reg.f.is_empty() {
                reg.i[..n].fill(0)
            } else {
                reg.f[..n].fill(0.0)
            }
            reg.exact(n);
            positions.seek(p, &mut at);
            space.walk(&mut at, start, n, |at, pos, len| {
                when.runs(at, inner, len, |at, range| {
                    mask[pos + range.start..pos + range.end].fill(true);
                    let first = inner.map_or(0, |s| at[s]);
                    if let Some(s) = inner {
                        at[s] = first + range.start as i64;
                    }
                    load(x, &read, at, inner, reg, (pos + range.start, range.len()))?;
                    if let Some(s) = inner {
                        at[s] = first;
                    }
                    Ok(())
                })
            })?;
            m.step(&mut state, &ins, &[p as i64; BLOCK], n, Some(&mask))?;
        }
        m.finish_at(&state, n, &mut outs, start)?;
    }
    Ok(outs)
}
