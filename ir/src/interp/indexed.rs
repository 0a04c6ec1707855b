//! The Index class: gathers and scatters, with every index checked.

use super::bound;
use super::classes::{Job, copy_row, each_of_row, fault};
use super::index::{Offset, Slots, Space};
use super::value::{Val, check_run, strides};
use crate::class::{Combine, Index};
use crate::diag::Diag;
use crate::scalar::{Bin, eval_bin};

struct Reads<'a> {
    /// Index operand, where it is read, bound.
    list: Vec<(&'a Val, Offset, i64)>,
    /// Slot of the first value.
    first: usize,
    /// Set when an index that the error could change was read.
    unsure: bool,
}

impl<'a> Reads<'a> {
    fn new(c: &Index, job: &Job<'a>, slots: &Slots<'_>, labels: usize) -> Result<Reads<'a>, Diag> {
        let mut list = Vec::with_capacity(c.reads.len());
        for (operand, index, bound) in &c.reads {
            let v = job.input(*operand)?;
            list.push((v, slots.linear(index, &v.shape, false)?, slots.number(bound)?));
        }
        Ok(Reads { list, first: labels, unsure: false })
    }

    fn vary(&self, inner: Option<usize>) -> bool {
        inner.is_some_and(|s| self.list.iter().any(|r| r.1.uses(s)))
    }

    /// Puts the values of the index operands into their slots.
    fn fetch(&mut self, at: &mut [i64]) -> Result<(), Diag> {
        for (k, (v, off, bound)) in self.list.iter().enumerate() {
            let i = check_run(off.at(at), 0, 1, v.numel())?;
            let mut x = [0];
            v.buf.read_i(i, 0, &mut x);
            let [x] = x;
            self.unsure |= v.error(i) > 0.0;
            let hit = if x < 0 { x.saturating_add(*bound) } else { x };
            if hit < 0 || hit >= *bound {
                let msg = format!(
                    "index {x} (element {i} of the indices) is out of range; allowed: {}..{bound}",
                    -bound
                );
                return Err(Diag::error("E-RUN-016", msg).help("correct the indices given to this node"));
            }
            at[self.first + k] = hit;
        }
        Ok(())
    }
}

/// Evaluates a gather or scatter.
pub(crate) fn eval(c: &Index, job: &Job<'_>) -> Result<Val, Diag> {
    match c.scatter {
        None => gather(c, job),
        Some(how) => scatter(c, how, job),
    }
}

fn gather(c: &Index, job: &Job<'_>) -> Result<Val, Diag> {
    let (mut out, from) = (job.new_out(0)?, job.input(0)?);
    if out.dtype != from.dtype {
        return Err(fault("a gather changes the element type"));
    }
    let shape = out.shape.clone();
    let slots = job.slots(&shape, c.reads.len());
    let mut reads = Reads::new(c, job, &slots, shape.len())?;
    let read = slots.linear(&c.at, &from.shape, false)?;
    let space = Space::new(&shape);
    let inner = space.inner();
    let (whole, stride) = (!reads.vary(inner), read.stride(inner));
    let mut at = vec![0; slots.count()];
    space.walk(&mut at, 0, space.size(), |at, pos, len| {
        if let Some(stride) = stride.filter(|_| whole) {
            reads.fetch(at)?;
            let start = check_run(read.at(at), stride, len, from.numel())?;
            copy_row(&mut out, (pos, 1), from, (start, stride), len);
            return Ok(());
        }
        each_of_row(at, inner, len, |at, k| {
            reads.fetch(at)?;
            let start = check_run(read.at(at), 0, 1, from.numel())?;
            copy_row(&mut out, (pos + k, 1), from, (start, 0), 1);
            Ok(())
        })
    })?;
    if reads.unsure {
        out.unbounded();
    }
    Ok(out)
}

fn scatter(c: &Index, how: Combine, job: &Job<'_>) -> Result<Val, Diag> {
    let (from, updates) = (job.input(0)?, job.input(job.ins.len().saturating_sub(1))?);
    let mut out = job.new_out(0)?;
    if from.dtype != out.dtype || updates.dtype != out.dtype || from.shape != out.shape {
        return Err(fault("a scatter's result differs from its first operand"));
    }
    let total = out.numel();
    copy_row(&mut out, (0, 1), from, (0, 1), total);
    let shape = &updates.shape;
    let slots = job.slots(shape, c.reads.len());
    let mut reads = Reads::new(c, job, &slots, shape.len())?;
    let write = slots.linear(&c.at, &out.shape, false)?;
    let read = Offset::affine(0, strides(shape).into_iter().map(|s| s as i64).enumerate());
    let space = Space::new(shape);
    let inner = space.inner();
    let whole = !reads.vary(inner) && how == Combine::Set;
    let (step, from_step) = (write.stride(inner), read.stride(inner).unwrap_or(0));
    let mut at = vec![0; slots.count()];
    space.walk(&mut at, 0, space.size(), |at, _, len| {
        let first = read.at(at);
        if let Some(step) = step.filter(|_| whole) {
            reads.fetch(at)?;
            let to = check_run(write.at(at), step, len, total)?;
            copy_row(&mut out, (to, step), updates, (first as usize, from_step), len);
            return Ok(());
        }
        each_of_row(at, inner, len, |at, k| {
            reads.fetch(at)?;
            let to = check_run(write.at(at), 0, 1, total)?;
            join(&mut out, to, updates, (first + from_step * k as i64) as usize, how);
            Ok(())
        })
    })?;
    if reads.unsure {
        out.unbounded();
    }
    Ok(out)
}

fn join(out: &mut Val, to: usize, updates: &Val, from: usize, how: Combine) {
    let op = match how {
        Combine::Set => return copy_row(out, (to, 1), updates, (from, 1), 1),
        Combine::Add => Bin::Add,
        Combine::Mul => Bin::Mul,
        Combine::Min => Bin::Min,
        Combine::Max => Bin::Max,
    };
    let (a, b) = (out.scalar(to), updates.scalar(from));
    let r = eval_bin(op, a, b);
    if out.err.is_some() {
        let terms = ((a.as_f64(), out.error(to)), (b.as_f64(), updates.error(from)));
        let e = bound::bin(op, out.dtype, terms.0, terms.1, r.as_f64(), false);
        if let Some(errs) = &mut out.err {
            errs[to] = e;
        }
    }
    out.set(to, r);
}
