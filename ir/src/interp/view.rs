//! The View class: boxes of the result copied from where their index maps point.

use super::classes::{Job, copy_row, each_of_row, fault};
use super::index::{Offset, Slots, Space};
use super::value::{Val, check_run, strides};
use crate::class::{Piece, View};
use crate::diag::Diag;

/// Evaluates a view.
pub(crate) fn eval(c: &View, job: &Job<'_>) -> Result<Val, Diag> {
    let mut out = job.new_out(0)?;
    if let Some(fill) = c.fill {
        if fill.dtype != out.dtype {
            return Err(fault(format!("a fill of type {} in a view of {}", fill.dtype, out.dtype)));
        }
        if fill.bits != 0 {
            (0..out.numel()).for_each(|i| out.set(i, fill));
        }
    }
    for p in &c.pieces {
        piece(p, job, &mut out)?;
    }
    Ok(out)
}

fn piece(p: &Piece, job: &Job<'_>, out: &mut Val) -> Result<(), Diag> {
    let from = job.input(p.operand)?;
    if from.dtype != out.dtype || p.lo.len() != out.shape.len() || p.hi.len() != out.shape.len() {
        return Err(fault("a piece of a view does not fit its result"));
    }
    let number = job.slots(&[], 0);
    let mut axes = Vec::with_capacity(out.shape.len());
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for (i, ((lo, hi), &extent)) in p.lo.iter().zip(&p.hi).zip(&out.shape).enumerate() {
        let (lo, hi) = (number.number(lo)?, number.number(hi)?);
        if lo < 0 || hi > extent as i64 {
            let msg = format!("a piece covers {lo}..{hi} on axis {i} of extent {extent}");
            return Err(Diag::error("E-RUN-011", msg).help("the sizes of the inputs do not fit this node"));
        }
        if hi <= lo {
            return Ok(());
        }
        axes.push((i, lo, (hi - lo) as usize));
        lows.push(lo);
        highs.push(hi);
    }
    let space = Space::of(axes);
    let read = Slots::in_box(job.leaf, &lows, &highs).linear(&p.index, &from.shape, false)?;
    let write = Offset::affine(0, strides(&out.shape).into_iter().map(|s| s as i64).enumerate());
    let inner = space.inner();
    let (step, total) = (write.stride(inner).unwrap_or(0), out.numel());
    space.walk(&mut vec![0; lows.len()], 0, space.size(), |at, _, len| {
        let to = check_run(write.at(at), step, len, total)?;
        if let Some(stride) = read.stride(inner) {
            let start = check_run(read.at(at), stride, len, from.numel())?;
            copy_row(out, (to, step), from, (start, stride), len);
            return Ok(());
        }
        each_of_row(at, inner, len, |at, k| {
            let start = check_run(read.at(at), 0, 1, from.numel())?;
            copy_row(out, ((to as i64 + step * k as i64) as usize, 1), from, (start, 0), 1);
            Ok(())
        })
    })
}
