//! The Cumulate class: prefix operations along one axis, many lines at a time.

use super::classes::{Job, fault, store};
use super::expr::{BLOCK, Reg};
use super::reduce::{Machine, gather};
use super::value::Val;
use crate::class::Cumulate;
use crate::diag::Diag;

/// Evaluates a prefix operation.
pub(crate) fn eval(c: &Cumulate, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let x = job.input(0)?;
    let mut outs = (0..job.outs.len()).map(|i| job.new_out(i)).collect::<Result<Vec<_>, _>>()?;
    let Some(&d) = x.shape.get(c.axis) else {
        return Err(fault("the axis of a prefix operation does not exist"));
    };
    if outs.iter().any(|o| o.shape != x.shape) || job.ins.iter().any(|v| v.shape != x.shape) {
        return Err(fault("the values of a prefix operation differ in shape"));
    }
    let inner: usize = x.shape[c.axis + 1..].iter().product();
    let outer: usize = x.shape[..c.axis].iter().product();
    let mut m = Machine::new(&c.reducer, &job.slots(&[], 0), job.bounded)?;
    let mut ins: Vec<Reg> = job.ins.iter().map(|v| Reg::new(v.dtype, job.bounded)).collect();
    let lines = outer.saturating_mul(inner);
    let mut base = vec![0i64; BLOCK];
    for first in (0..if d == 0 { 0 } else { lines }).step_by(BLOCK) {
        let n = BLOCK.min(lines - first);
        for (k, b) in base[..n].iter_mut().enumerate() {
            let line = first + k;
            *b = (line / inner * d * inner + line % inner) as i64;
        }
        let row = base[..n].windows(2).all(|w| w[1] == w[0] + 1);
        let mut state = m.start();
        for p in 0..d {
            let j = if c.reverse { d - 1 - p } else { p };
            let off = (j * inner) as i64;
            if c.exclusive {
                put(m.finish(&state, n, &outs)?, &mut outs, (&base[..n], row), off);
            }
            for (reg, v) in ins.iter_mut().zip(job.ins) {
                gather(v, (&base[..n], row), off, reg, 0)?;
            }
            m.step(&mut state, &ins, &[p as i64; BLOCK], n, None)?;
            if !c.exclusive {
                put(m.finish(&state, n, &outs)?, &mut outs, (&base[..n], row), off);
            }
        }
    }
    Ok(outs)
}

/// Stores the results of lines that start at `base` at their element `off`.
fn put(regs: &[Reg], outs: &mut [Val], (base, row): (&[i64], bool), off: i64) {
    for (out, reg) in outs.iter_mut().zip(regs) {
        if row {
            store(out, (base[0] + off) as usize, 1, reg, base.len());
            continue;
        }
        for (k, &b) in base.iter().enumerate() {
            let to = (b + off) as usize;
            if reg.f.is_empty() {
                out.buf.write_i(to, 1, &reg.i[k..k + 1]);
            } else {
                out.buf.write_f(to, 1, &reg.f[k..k + 1]);
            }
            if let (Some(e), Some(&x)) = (&mut out.err, reg.e.get(k)) {
                e[to] = x;
            }
        }
    }
}
