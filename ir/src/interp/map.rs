//! The Map class: a scalar program for every element, a block at a time.

use super::classes::{Job, broadcast, each_of_row, fault, load, store};
use super::expr::{BLOCK, Feed, Prog, Reg, Rounding};
use super::index::{Offset, Space};
use super::value::Val;
use crate::class::Map;
use crate::diag::Diag;

struct Rows<'a> {
    ins: &'a [&'a Val],
    reads: Vec<Offset>,
    /// Operands with the result's own shape, read straight through.
    dense: Vec<bool>,
    space: Space,
    at: Vec<i64>,
    start: usize,
}

impl Feed for Rows<'_> {
    fn arg(&mut self, arg: u32, reg: &mut Reg, n: usize) -> Result<(), Diag> {
        let Some(v) = self.ins.get(arg as usize) else {
            return Err(fault(format!("operand {arg} is missing")));
        };
        let off = &self.reads[arg as usize];
        if self.dense[arg as usize] {
            let flat = Offset::affine(self.start as i64, [(0, 1)]);
            return load(v, &flat, &mut [0], Some(0), reg, (0, n));
        }
        let inner = self.space.inner();
        self.space.walk(&mut self.at, self.start, n, |at, pos, len| load(v, off, at, inner, reg, (pos, len)))
    }

    fn dim(&mut self, dim: &Offset, out: &mut [i64]) -> Result<(), Diag> {
        let inner = self.space.inner();
        let n = out.len();
        self.space.walk(&mut self.at, self.start, n, |at, pos, len| {
            each_of_row(at, inner, len, |at, k| {
                out[pos + k] = dim.at(at);
                Ok(())
            })
        })
    }
}

/// Evaluates a map.
pub(crate) fn eval(c: &Map, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let shape = &job.out(0)?.1;
    let mut prog = Prog::new(&c.expr, &job.slots(shape, 0), Rounding::EachNode, job.bounded)?;
    let mut outs = (0..job.outs.len()).map(|i| job.new_out(i)).collect::<Result<Vec<_>, _>>()?;
    for (i, (dtype, s)) in job.outs.iter().enumerate() {
        if s != shape || i >= c.expr.roots.len() || prog.root_type(i) != *dtype {
            return Err(fault(format!("result {i} of a map does not fit its type")));
        }
    }
    let reads = job.ins.iter().map(|v| broadcast(&v.shape, shape)).collect::<Result<Vec<_>, _>>()?;
    let dense = job.ins.iter().map(|v| v.shape == *shape).collect();
    let at = vec![0; shape.len()];
    let mut feed = Rows { ins: job.ins, reads, dense, space: Space::new(shape), at, start: 0 };
    let total = feed.space.size();
    while feed.start < total {
        let n = BLOCK.min(total - feed.start);
        prog.run(n, &mut feed)?;
        for (i, out) in outs.iter_mut().enumerate() {
            store(out, feed.start, 1, prog.root(i), n);
        }
        feed.start += n;
    }
    Ok(outs)
}
