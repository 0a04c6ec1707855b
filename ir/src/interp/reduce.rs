//! The Reduce class, and the running of reducers that windows and prefix operations share. Many independent reductions
//! advance together, a block of them at a time; a few long ones are cut into pieces joined in order.

use super::bound;
use super::classes::{Job, fault, load, store};
use super::expr::{BLOCK, Feed, Prog, Reg, Rounding};
use super::index::{Offset, Slots, Space};
use super::value::{Buf, Val, check_run, filled, round, strides};
use crate::class::{Reduce, Reducer};
use crate::diag::Diag;
use crate::scalar::{Bin, ENode, Expr, Scalar};
use crate::types::DType;

/// Fewer reductions than this are cut into pieces.
const FEW: usize = 128;

/// Positions of the reduced axes that are tabulated when their strides do not collapse into one.
const TABLE: usize = 1 << 22;

/// A reducer's programs, ready to run.
pub(crate) struct Machine<'e> {
    step: Prog<'e>,
    combine: Prog<'e>,
    finish: Prog<'e>,
    init: &'e Reducer,
    bounded: bool,
    results: Vec<Reg>,
}

/// State of up to [`BLOCK`] reductions.
pub(crate) type State = Vec<Reg>;

/// Arguments of a step: states, then inputs, then the position.
struct StepFeed<'a> {
    state: &'a State,
    ins: &'a [Reg],
    position: &'a [i64],
}

impl Feed for StepFeed<'_> {
    fn arg(&mut self, arg: u32, reg: &mut Reg, n: usize) -> Result<(), Diag> {
        let (arg, states) = (arg as usize, self.state.len());
        if arg < states {
            reg.copy(&self.state[arg], n);
        } else if let Some(x) = self.ins.get(arg - states) {
            if x.f.is_empty() != reg.f.is_empty() {
                return Err(fault("a reducer reads an operand as another type"));
            }
            reg.copy(x, n);
        } else if arg == states + self.ins.len() && reg.f.is_empty() {
            reg.i[..n].copy_from_slice(&self.position[..n]);
            reg.exact(n);
        } else {
            return Err(fault("a reducer reads an argument that does not exist"));
        }
        Ok(())
    }

    fn dim(&mut self, dim: &Offset, out: &mut [i64]) -> Result<(), Diag> {
        out.fill(dim.at(&[]));
        Ok(())
    }
}

impl<'e> Machine<'e> {
    /// Prepares a reducer.
    pub(crate) fn new(r: &'e Reducer, slots: &Slots<'_>, bounded: bool) -> Result<Machine<'e>, Diag> {
        let prog = |e: &'e Expr| Prog::new(e, slots, Rounding::Never, bounded);
        if r.step.roots.len() != r.init.len() || r.combine.roots.len() != r.init.len() {
            return Err(fault("a reducer's programs do not fit its state"));
        }
        let (step, combine, finish) = (prog(&r.step)?, prog(&r.combine)?, prog(&r.finish)?);
        Ok(Machine { step, combine, finish, init: r, bounded, results: Vec::new() })
    }

    /// Fresh state.
    pub(crate) fn start(&self) -> State {
        let make = |s: &crate::scalar::Scalar| {
            let mut r = Reg::new(s.dtype, self.bounded);
            r.fill(*s, BLOCK);
            r
        };
        self.init.init.iter().map(make).collect()
    }

    /// One element into each of `n` states, except where `mask` is false.
    pub(crate) fn step(
        &mut self,
        state: &mut State,
        ins: &[Reg],
        position: &[i64],
        n: usize,
        mask: Option<&[bool]>,
    ) -> Result<(), Diag> {
        self.step.run(n, &mut StepFeed { state, ins, position })?;
        for (i, s) in state.iter_mut().enumerate() {
            let new = self.step.root(i);
            match mask {
                None => s.copy(new, n),
                Some(m) => {
                    for j in (0..n).filter(|&j| m[j]) {
                        if s.f.is_empty() {
                            s.i[j] = new.i[j]
                        } else {
                            s.f[j] = new.f[j]
                        }
                        if !s.e.is_empty() {
                            s.e[j] = new.e[j];
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn combine(&mut self, earlier: &mut State, later: &State, n: usize) -> Result<(), Diag> {
        self.combine.run(n, &mut StepFeed { state: earlier, ins: later, position: &[] })?;
        for (i, s) in earlier.iter_mut().enumerate() {
            s.copy(self.combine.root(i), n);
        }
        Ok(())
    }

    /// Results of `n` states, rounded to the outputs' types; one register an output.
    pub(crate) fn finish(&mut self, state: &State, n: usize, outs: &[Val]) -> Result<&[Reg], Diag> {
        self.finish.run(n, &mut StepFeed { state, ins: &[], position: &[] })?;
        let bounded = self.bounded;
        for (i, out) in outs.iter().enumerate() {
            if i >= self.init.finish.roots.len() || self.finish.root_type(i) != out.dtype {
                return Err(fault(format!("result {i} of a reducer does not fit its type")));
            }
            if self.results.len() <= i {
                self.results.push(Reg::new(out.dtype, bounded));
            }
            let (reg, to) = (self.finish.root(i), &mut self.results[i]);
            to.copy(reg, n);
            if reg.f.is_empty() {
                continue;
            }
            for j in 0..n {
                let r = round(out.dtype, reg.f[j]);
                to.f[j] = r;
                if let Some(e) = to.e.get_mut(j).filter(|e| **e > 0.0 || r != reg.f[j]) {
                    *e += 2.0 * crate::accuracy::ulp_at(out.dtype, r);
                    if !r.is_finite() && e.is_finite() {
                        *e = 0.0;
                    }
                }
            }
        }
        Ok(&self.results)
    }

    /// [`Machine::finish`] into the outputs from `start` on.
    pub(crate) fn finish_at(
        &mut self,
        state: &State,
        n: usize,
        outs: &mut [Val],
        start: usize,
    ) -> Result<(), Diag> {
        let regs = self.finish(state, n, outs)?;
        outs.iter_mut().zip(regs).for_each(|(out, reg)| store(out, start, 1, reg, n));
        Ok(())
    }
}

/// Where the elements of reductions are: lane `chunk * kept + i` reduces positions of its chunk for kept point `i`.
struct Layout {
    kept: Space,
    /// Elements of the kept points in the operand.
    kept_steps: Vec<i64>,
    red: usize,
    red_step: Option<i64>,
    table: Vec<i64>,
    red_space: Space,
    red_steps: Vec<i64>,
    chunks: usize,
    length: usize,
}

fn layout(c: &Reduce, shape: &[usize]) -> Result<Layout, Diag> {
    let steps = strides(shape);
    if c.axes.iter().any(|&a| a >= shape.len()) {
        return Err(fault("a reduced axis does not exist"));
    }
    let keep: Vec<usize> = (0..shape.len()).filter(|i| !c.axes.contains(i)).collect();
    let kept = Space::new(&keep.iter().map(|&a| shape[a]).collect::<Vec<_>>());
    let ext: Vec<usize> = c.axes.iter().map(|&a| shape[a]).collect();
    let red_steps: Vec<i64> = c.axes.iter().map(|&a| steps[a] as i64).collect();
    let red_space = Space::new(&ext);
    let red = red_space.size();
    let real: Vec<(usize, i64)> =
        ext.iter().copied().zip(red_steps.iter().copied()).filter(|x| x.0 != 1).collect();
    let one = real.windows(2).all(|w| w[0].1 == w[1].1 * w[1].0 as i64);
    let red_step = one.then(|| real.last().map_or(0, |x| x.1));
    let mut table = Vec::new();
    let many = kept.size();
    let mut chunks = 1;
    if many > 0 && many < FEW && red > 64 && (red_step.is_some() || red <= TABLE) {
        chunks = (BLOCK / many).min(red / 16).max(1);
        if red_step.is_none() {
            let mut at = vec![0; ext.len()];
            table = (0..red)
                .map(|p| {
                    red_space.seek(p, &mut at);
                    at.iter().zip(&red_steps).map(|(x, s)| x * s).sum()
                })
                .collect();
        }
    }
    let length = red.div_ceil(chunks).max(1);
    let kept_steps = keep.iter().map(|&a| steps[a] as i64).collect();
    Ok(Layout {
        kept,
        kept_steps,
        red,
        red_step,
        table,
        red_space,
        red_steps,
        chunks: red.div_ceil(length).max(1),
        length,
    })
}

/// Runs all reductions; `done` gets blocks of final states with the first kept point and their number.
fn run(
    c: &Reduce,
    ins: &[&Val],
    m: &mut Machine<'_>,
    lay: &Layout,
    mut done: impl FnMut(&mut Machine<'_>, &State, usize, usize) -> Result<(), Diag>,
) -> Result<(), Diag> {
    let many = lay.kept.size();
    let kept = Offset::affine(0, lay.kept_steps.iter().copied().enumerate());
    let mut feeds: Vec<Reg> = ins.iter().map(|v| Reg::new(v.dtype, m.bounded)).collect();
    let mut at = vec![0i64; lay.kept_steps.len()];
    let (mut base, mut position) = (vec![0i64; BLOCK], vec![0i64; BLOCK]);
    let mut red_at = vec![0i64; c.axes.len()];
    // with several chunks all lanes fit one block
    let width = if lay.chunks > 1 { many * lay.chunks } else { many.min(BLOCK) };
    for first in (0..many).step_by(BLOCK) {
        let n = if lay.chunks > 1 { width } else { width.min(many - first) };
        let points = n / lay.chunks;
        lay.kept.walk(&mut at, first, points, |at, pos, len| {
            let step = kept.stride(lay.kept.inner()).unwrap_or(0);
            let start = kept.at(at);
            base[pos..pos + len].iter_mut().enumerate().for_each(|(k, b)| *b = start + step * k as i64);
            Ok(())
        })?;
        let row = base[..points].windows(2).all(|w| w[1] == w[0] + 1);
        let mut state = m.start();
        for s in 0..lay.length.min(lay.red) {
            // only the last chunk can be short
            let active = if (lay.chunks - 1) * lay.length + s < lay.red { n } else { n - points };
            for chunk in 0..active / points.max(1) {
                let p = chunk * lay.length + s;
                let off = match (lay.red_step, lay.table.get(p)) {
                    (Some(step), _) => step * p as i64,
                    (None, Some(&t)) => t,
                    (None, None) => {
                        lay.red_space.seek(p, &mut red_at);
                        red_at.iter().zip(&lay.red_steps).map(|(x, s)| x * s).sum()
                    }
                };
                position[chunk * points..(chunk + 1) * points].fill(p as i64);
                for (reg, v) in feeds.iter_mut().zip(ins) {
                    gather(v, (&base[..points], row), off, reg, chunk * points)?;
                }
            }
            m.step(&mut state, &feeds, &position, active, None)?;
        }
        let mut joined = state;
        if lay.chunks > 1 {
            let all = joined;
            joined = part(&all, 0, points);
            for chunk in 1..lay.chunks {
                m.combine(&mut joined, &part(&all, chunk * points, points), points)?;
            }
        }
        done(m, &joined, first, points)?;
    }
    Ok(())
}

/// States `from..from + n` moved to the front.
fn part(state: &State, from: usize, n: usize) -> State {
    let cut = |r: &Reg| {
        let mut out = r.clone();
        if r.f.is_empty() {
            out.i.copy_within(from..from + n, 0)
        } else {
            out.f.copy_within(from..from + n, 0)
        }
        if !r.e.is_empty() {
            out.e.copy_within(from..from + n, 0);
        }
        out
    };
    state.iter().map(cut).collect()
}

/// Elements `base + off`; `row` says that `base` is a row of neighbours.
pub(crate) fn gather(
    v: &Val,
    (base, row): (&[i64], bool),
    off: i64,
    reg: &mut Reg,
    pos: usize,
) -> Result<(), Diag> {
    if let (true, Some(&b)) = (row, base.first()) {
        return load(v, &Offset::affine(b + off, [(0, 1)]), &mut [0], Some(0), reg, (pos, base.len()));
    }
    for (k, &b) in base.iter().enumerate() {
        let i = check_run(b + off, 0, 1, v.numel())?;
        if reg.f.is_empty() {
            v.buf.read_i(i, 0, &mut reg.i[pos + k..pos + k + 1]);
        } else {
            v.buf.read_f(i, 0, &mut reg.f[pos + k..pos + k + 1]);
        }
        if !reg.e.is_empty() {
            reg.e[pos + k] = v.error(i);
        }
    }
    Ok(())
}

/// True for a reducer that only adds (or takes the greatest or least of) the operand's own elements.
pub(crate) fn plain(r: &Reducer) -> Option<Bin> {
    let op = r.as_simple()?;
    let cast_only = |e: &Expr, arg: u32| {
        let [root] = e.roots[..] else { return None };
        let mut at = root;
        while let ENode::Cast(a) = e.nodes[at as usize].0 {
            at = a;
        }
        (e.nodes[at as usize].0 == ENode::Arg(arg)).then_some(())
    };
    cast_only(&r.finish, 0)?;
    let [root] = r.step.roots[..] else { return None };
    let ENode::Bin(o, a, b) = r.step.nodes[root as usize].0 else { return None };
    let mut side = r.step.clone();
    side.roots = vec![b];
    cast_only(&side, 1)?;
    (o == op && r.step.nodes[a as usize].0 == ENode::Arg(0)).then_some(op)
}

/// Evaluates a reduction.
pub(crate) fn eval(c: &Reduce, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let x = job.input(0)?;
    if job.ins.iter().any(|v| v.shape != x.shape) {
        return Err(fault("the operands of a reduction differ in shape"));
    }
    let lay = layout(c, &x.shape)?;
    let mut outs = (0..job.outs.len()).map(|i| job.new_out(i)).collect::<Result<Vec<_>, _>>()?;
    if outs.iter().any(|o| o.numel() != lay.kept.size()) {
        return Err(fault("the result of a reduction has another shape"));
    }
    let acc = c.reducer.init.first().map_or(x.dtype, |s| s.dtype);
    let sums = plain(&c.reducer) == Some(Bin::Add) && acc.is_float() && x.dtype.is_float() && outs.len() == 1;
    if sums {
        let total = float_sums(c, &lay, x, job)?;
        let out = &mut outs[0];
        for (i, &s) in total.iter().enumerate() {
            let r = round(out.dtype, s);
            out.buf.write_f(i, 1, &[r]);
        }
        if job.bounded {
            out.err = Some(sum_errors(c, &lay, x, (acc, out.dtype), &total, job)?);
        }
        return Ok(outs);
    }
    let mut m = Machine::new(&c.reducer, &job.slots(&[], 0), job.bounded)?;
    run(c, job.ins, &mut m, &lay, |m, state, first, n| m.finish_at(state, n, &mut outs, first))?;
    if job.bounded && acc.is_float() && c.reducer.as_simple() == Some(Bin::Mul) {
        product_errors(c, &lay, x, acc, &mut outs, job)?;
    }
    Ok(outs)
}

/// Unbounds the products whose factors in another order would leave the accumulator's range.
fn product_errors(
    c: &Reduce,
    lay: &Layout,
    x: &Val,
    acc: DType,
    outs: &mut [Val],
    job: &Job<'_>,
) -> Result<(), Diag> {
    let zero = Scalar::from_f64(DType::F64, 0.0);
    let sum = Reducer::simple(Bin::Add, DType::F64, DType::F64, zero, DType::F64);
    let logs = |sign: f64| -> Result<Vec<f64>, Diag> {
        let one = |i: usize| {
            let log = sign * x.number(i).abs().ln();
            if log.is_finite() { log.max(0.0) } else { 0.0 }
        };
        let buf = Buf::F64((0..x.numel()).map(one).collect());
        let x = Val { dtype: DType::F64, shape: x.shape.clone(), buf, err: None };
        float_sums(&Reduce { reducer: sum.clone(), ..c.clone() }, lay, &x, job)
    };
    let (up, down) = (logs(1.0)?, logs(-1.0)?);
    for out in outs {
        for (i, e) in out.err.iter_mut().flatten().enumerate() {
            if bound::order_matters(acc, up[i], down[i]) {
                *e = f64::INFINITY;
            }
        }
    }
    Ok(())
}

/// Sums in f64: straight along rows where the last axis is summed, else many at a time.
fn float_sums(c: &Reduce, lay: &Layout, x: &Val, job: &Job<'_>) -> Result<Vec<f64>, Diag> {
    let mut out = filled(lay.kept.size(), 0.0)?;
    if lay.red_step == Some(1) && lay.red >= 8 {
        let kept = Offset::affine(0, lay.kept_steps.iter().copied().enumerate());
        let mut at = vec![0i64; lay.kept_steps.len()];
        let mut row = vec![0.0; BLOCK];
        for (i, o) in out.iter_mut().enumerate() {
            lay.kept.seek(i, &mut at);
            let start = check_run(kept.at(&at), 1, lay.red, x.numel())?;
            for p in (0..lay.red).step_by(BLOCK) {
                let n = BLOCK.min(lay.red - p);
                x.buf.read_f(start + p, 1, &mut row[..n]);
                *o += row_sum(&row[..n]);
            }
        }
        return Ok(out);
    }
    let mut m = Machine::new(&c.reducer, &job.slots(&[], 0), false)?;
    run(c, &[x], &mut m, lay, |_, state, first, n| {
        if let Some(s) = state.first() {
            out[first..first + n].copy_from_slice(&s.f[..n]);
        }
        Ok(())
    })?;
    Ok(out)
}

fn row_sum(row: &[f64]) -> f64 {
    let (whole, rest) = row.as_chunks::<8>();
    let mut lanes = [0.0; 8];
    for c in whole {
        for (l, x) in lanes.iter_mut().zip(c) {
            *l += x;
        }
    }
    lanes.iter().sum::<f64>() + rest.iter().sum::<f64>()
}

fn sum_errors(
    c: &Reduce,
    lay: &Layout,
    x: &Val,
    (acc, out): (DType, DType),
    total: &[f64],
    job: &Job<'_>,
) -> Result<Vec<f64>, Diag> {
    let like = |buf: Buf| Val { dtype: x.dtype, shape: x.shape.clone(), buf, err: None };
    let terms = float_sums(c, lay, &like(x.magnitudes()), job)?;
    let prop = match &x.err {
        Some(_) => float_sums(c, lay, &like(x.errors()?), job)?,
        None => filled(total.len(), 0.0)?,
    };
    let one = |((&s, &t), &p): ((&f64, &f64), &f64)| bound::sum(lay.red, acc, out, s, t, p);
    Ok(total.iter().zip(&terms).zip(&prop).map(one).collect())
}
