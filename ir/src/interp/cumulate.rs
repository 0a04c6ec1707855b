//! The Cumulate class: prefix operations along one axis, many lines at a time.

use super::classes::{Job, fault};
use super::expr::{BLOCK, Reg};
use super::reduce::Machine;
use super::value::Val;
use crate::class::Cumulate;
use crate::diag::Diag;

/// Evaluates a prefix operation.
pub(crate) fn eval(c: &Cumulate, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let x = job.input(0)?;
    let mut outs = (0..job.outs.len()).map(|i| job.new_out(i)).collect::<Result<Vec<_>, _>>()?;
    let Some(&d) = x.shape.get(c.axis) else { return Err(fault("the axis of a prefix operation does not exist")) };
    if outs.iter().any(|o| o.shape != x.shape) || job.ins.iter().any(|v| v.shape != x.shape) {
        return Err(fault("the values of a prefix operation differ in shape"));
    }
    let inner: usize = x.shape[c.axis + 1..].iter().product();
    let outer: usize = x.shape[..c.axis].iter().product();
    let mut m = Machine::new(&c.reducer, &job.slots(&[], 0), job.bounded)?;
    let mut ins: Vec<Reg> = job.ins.iter().map(|v| Reg::new(v.dtype, job.bounded)).collect();
    // lines with neighbouring elements advance together: a block is part of one outer index
    for (o, i0) in (0..outer).flat_map(|o| (0..inner).step_by(BLOCK).map(move |i| (o, i))) {
        let n = BLOCK.min(inner - i0);
        let mut state = m.start();
        for p in 0..d {
            let j = if c.reverse { d - 1 - p } else { p };
            let start = (o * d + j) * inner + i0;
            if c.exclusive {
                m.finish(&state, n, &mut outs, start, 1)?;
            }
            for (reg, v) in ins.iter_mut().zip(job.ins) {
                super::reduce::read_block(v, start, reg, n)?;
            }
            m.step(&mut state, &ins, &[p as i64; BLOCK], n, None)?;
            if !c.exclusive {
                m.finish(&state, n, &mut outs, start, 1)?;
            }
        }
    }
    Ok(outs)
}
