//! The kernel interpreter: evaluates a kernel element by element in the normative order and with the scalar semantics of
//! `tgc_ir::scalar`, so that compiled code on targets with fused multiply-add equals it bit for bit. Nothing here is
//! vectorised or scheduled. Transcendental functions must have been lowered (`lower::math`).
//!
//! Order of a stage: points in row-major order of its grid labels, then its inner labels; for each the loads and nodes in
//! order of the nodes (a load happens at its `Arg` node; one that no node names does not happen), then `post`, then the
//! stores in order. `Contract`: the first chunk's chain starts from +0 and is the total; every further chunk is a chain
//! from +0 of its own, added to the total. `Reduce`: see `tgc_ir::class::Reduce`; the partials that exist are
//! `max(1, min(lanes, extent of the last reduction label))`, joined for s = lanes/2, lanes/4 .. 1 by
//! `part[i] = combine(part[i], part[i + s])` for i < s, i + s < existing.

mod program;
#[cfg(test)]
mod tests;

use super::{Buf, Item, Kernel, Kind, LocalAxis, Mode, Role, Stage};
use crate::lower::math;
use program::{Ix, Names, Program};
use tgc_ir::class::{Combine, Reducer};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::scalar::{Bin, Expr, Scalar, eval_bin};
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{DType, Dim, Pred};

/// Most bytes of one local buffer.
const LOCAL_LIMIT: i64 = 1 << 32;

/// Why a run ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// An index was out of range at this site (1-based).
    Trap(u32),
    /// The kernel or its arguments are at fault.
    Fault(Box<Diag>),
}

fn fault(k: &Kernel, message: String) -> Stop {
    Stop::Fault(Box::new(Diag::error("E-KRN-020", message).at(&Loc::new(format!("kernel {}", k.name)))))
}

/// Runs a kernel, which is verified first, on dense row-major arguments (packed ones too: how they lie changes no
/// result); output arguments come in with their final shape and are replaced.
pub fn run(kernel: &Kernel, params: &[i64], args: &mut [Tensor]) -> Result<(), Stop> {
    run_tiled(kernel, params, args, None)
}

/// As [`run`], tile by tile with these sizes; one tile holds everything when none are given.
pub fn run_tiled(
    kernel: &Kernel,
    params: &[i64],
    args: &mut [Tensor],
    tiles: Option<&[u32]>,
) -> Result<(), Stop> {
    check_lowered(kernel)?;
    if let Some(d) = super::verify::verify(kernel).into_iter().next() {
        return Err(Stop::Fault(Box::new(d)));
    }
    if params.len() != kernel.params.len() || args.len() != kernel.args.len() {
        return Err(fault(kernel, format!("{} parameters and {} arguments given", params.len(), args.len())));
    }
    let mut labels: Vec<u32> = (0..kernel.grid.len() as u32).collect();
    collect_labels(&kernel.body, &mut labels);
    let names = Names {
        params: kernel.params.iter().map(|p| &**p).zip(params.iter().copied()).collect(),
        slots: labels.iter().enumerate().map(|(i, l)| (*l, i)).collect(),
    };
    let mut m = Machine {
        k: kernel,
        names,
        labels: vec![0; labels.len()],
        args: Vec::new(),
        locals: Vec::new(),
        tile: Vec::new(),
    };
    for (arg, t) in kernel.args.iter().zip(args.iter()) {
        let dims = m.extents(&arg.dims)?;
        if t.dtype != arg.dtype || !t.shape.iter().map(|d| *d as i64).eq(dims.iter().copied()) {
            return Err(fault(
                kernel,
                format!("`{}` is {}{dims:?}, given {}{:?}", arg.name, arg.dtype, t.dtype, t.shape),
            ));
        }
        m.args.push(Memory { dtype: t.dtype, dims, bytes: t.data.bytes().to_vec() });
    }
    let grid = m.extents(&kernel.grid)?;
    let items = m.compile(&kernel.body)?;
    let sizes: Vec<i64> = match tiles {
        Some(t) => t.iter().map(|t| i64::from(*t).max(1)).collect(),
        None => grid.iter().map(|e| (*e).max(1)).collect(),
    };
    let counts: Vec<i64> =
        grid.iter().zip(&sizes).map(|(e, t)| e.max(&0) / t + i64::from(e % t != 0)).collect();
    let mut at = vec![0; grid.len()];
    if counts.iter().all(|c| *c > 0) {
        loop {
            m.tile =
                (0..grid.len()).map(|g| (at[g] * sizes[g], ((at[g] + 1) * sizes[g]).min(grid[g]))).collect();
            m.tile(&items)?;
            if !advance(&mut at, &counts.iter().map(|c| (0, *c)).collect::<Vec<_>>()) {
                break;
            }
        }
    }
    for ((arg, mem), t) in kernel.args.iter().zip(m.args).zip(args) {
        if matches!(arg.role, Role::Out | Role::InOut) {
            t.data = Data::new(mem.bytes);
        }
    }
    Ok(())
}

fn check_lowered(k: &Kernel) -> Result<(), Stop> {
    let mut programs: Vec<&Expr> = Vec::new();
    for s in k.stages() {
        programs.push(&s.expr);
        programs.extend(&s.post);
        if let Kind::Reduce { reducer: r, .. } = &s.kind {
            programs.extend([&r.step, &r.combine, &r.finish]);
        }
    }
    match programs.into_iter().find_map(math::unlowered) {
        Some(op) => {
            Err(fault(k, format!("{op} is no primitive operation; lower the math of the kernel first")))
        }
        None => Ok(()),
    }
}

fn collect_labels(items: &[Item], out: &mut Vec<u32>) {
    for item in items {
        match item {
            Item::Stage(s) => out.extend(s.inner.iter().chain(&s.red).map(|l| l.0)),
            Item::Loop { var, body, .. } => {
                out.push(*var);
                collect_labels(body, out);
            }
        }
    }
}

/// The next position in a box, last index fastest; false after the last.
fn advance(at: &mut [i64], ranges: &[(i64, i64)]) -> bool {
    for i in (0..at.len()).rev() {
        at[i] += 1;
        if at[i] < ranges[i].1 {
            return true;
        }
        at[i] = ranges[i].0;
    }
    false
}

/// A dense buffer.
struct Memory {
    dtype: DType,
    dims: Vec<i64>,
    bytes: Vec<u8>,
}

impl Memory {
    fn get(&self, at: usize) -> u64 {
        let n = self.dtype.size();
        Scalar::from_bytes(self.dtype, &self.bytes[at * n..]).bits
    }

    fn set(&mut self, at: usize, v: u64) {
        let n = self.dtype.size();
        self.bytes[at * n..][..n].copy_from_slice(&v.to_le_bytes()[..n]);
    }
}

struct CLoad<'k> {
    from: Buf,
    index: Vec<Ix>,
    mode: &'k Mode,
}

struct CStore {
    to: Buf,
    index: Vec<Ix>,
    value: usize,
    op: Combine,
    site: u32,
}

struct CStage<'k> {
    s: &'k Stage,
    inner: Vec<(usize, Ix)>,
    red: Vec<(usize, Ix)>,
    loads: Vec<CLoad<'k>>,
    expr: Program,
    post: Option<Program>,
    stores: Vec<CStore>,
    reducer: Option<(&'k Reducer, [Program; 3])>,
}

enum CItem<'k> {
    Stage(Box<CStage<'k>>),
    Loop { slot: usize, lo: Ix, hi: Ix, body: Vec<CItem<'k>> },
}

struct Machine<'k> {
    k: &'k Kernel,
    names: Names<'k>,
    labels: Vec<i64>,
    args: Vec<Memory>,
    locals: Vec<Memory>,
    /// First and one past the last index on each grid axis.
    tile: Vec<(i64, i64)>,
}

impl<'k> Machine<'k> {
    fn extents(&self, dims: &[Dim]) -> Result<Vec<i64>, Stop> {
        let value = |d: &Dim| {
            self.names.bind(d).as_const().ok_or_else(|| fault(self.k, format!("`{d}` has no value")))
        };
        dims.iter().map(value).collect()
    }

    fn compile(&self, items: &'k [Item]) -> Result<Vec<CItem<'k>>, Stop> {
        let slot =
            |l: u32| self.names.slots.get(&l).copied().ok_or_else(|| fault(self.k, format!("no label #{l}")));
        let ix = |d: &Dim| self.names.index(d);
        let mut out = Vec::new();
        for item in items {
            out.push(match item {
                Item::Loop { var, lo, hi, body } => {
                    CItem::Loop { slot: slot(*var)?, lo: ix(lo), hi: ix(hi), body: self.compile(body)? }
                }
                Item::Stage(s) => {
                    let axes = |v: &[(u32, Dim)]| {
                        v.iter().map(|(l, d)| Ok((slot(*l)?, ix(d)))).collect::<Result<_, Stop>>()
                    };
                    let program = |e: &Expr| Program::new(e, &self.names);
                    CItem::Stage(Box::new(CStage {
                        s,
                        inner: axes(&s.inner)?,
                        red: axes(&s.red)?,
                        loads: s
                            .loads
                            .iter()
                            .map(|l| CLoad {
                                from: l.from,
                                index: l.index.iter().map(ix).collect(),
                                mode: &l.mode,
                            })
                            .collect(),
                        expr: program(&s.expr),
                        post: s.post.as_ref().map(program),
                        stores: s
                            .stores
                            .iter()
                            .map(|st| CStore {
                                to: st.to,
                                index: st.index.iter().map(ix).collect(),
                                value: st.value as usize,
                                op: st.op,
                                site: st.site,
                            })
                            .collect(),
                        reducer: match &s.kind {
                            Kind::Reduce { reducer: r, .. } => {
                                Some((r, [program(&r.step), program(&r.combine), program(&r.finish)]))
                            }
                            Kind::Map | Kind::Contract { .. } => None,
                        },
                    }))
                }
            });
        }
        Ok(out)
    }

    fn tile(&mut self, items: &[CItem<'k>]) -> Result<(), Stop> {
        self.locals.clear();
        for l in &self.k.locals {
            let mut dims = Vec::new();
            for a in &l.axes {
                dims.push(match a {
                    LocalAxis::Tile { grid, lo, hi } => {
                        let (a, b) = self.tile[*grid as usize];
                        b - a + i64::from(*lo) + i64::from(*hi)
                    }
                    LocalAxis::Full(d) => self.extents(std::slice::from_ref(d))?[0].max(0),
                    LocalAxis::Ring(n) => i64::from(*n),
                });
            }
            let size = dims.iter().try_fold(l.dtype.size() as i64, |a, d| a.checked_mul(*d));
            let Some(size) = size.filter(|s| *s <= LOCAL_LIMIT) else {
                return Err(fault(self.k, format!("the local `{}` of {dims:?} is too large", l.name)));
            };
            self.locals.push(Memory { dtype: l.dtype, dims, bytes: vec![0; size as usize] });
        }
        self.items(items)
    }

    fn items(&mut self, items: &[CItem<'k>]) -> Result<(), Stop> {
        for item in items {
            match item {
                CItem::Stage(s) => self.stage(s)?,
                CItem::Loop { slot, lo, hi, body } => {
                    let (lo, hi) = (self.plain(lo)?, self.plain(hi)?);
                    for v in lo..hi {
                        self.labels[*slot] = v;
                        self.items(body)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Value of an expression over parameters and labels.
    fn plain(&self, ix: &Ix) -> Result<i64, Stop> {
        let v = self.names.value(ix, &self.labels, &|_| None);
        v.ok_or_else(|| fault(self.k, "an extent or index has no 64-bit value".into()))
    }

    fn holds(&self, p: &Pred) -> Result<bool, Stop> {
        if *p == Pred::True {
            return Ok(true);
        }
        let r = p.eval(&|a| self.names.leaf(a, &self.labels, &|_| None));
        r.map_err(|e| fault(self.k, format!("a condition has no value: {e}")))
    }

    fn stage(&mut self, c: &CStage<'k>) -> Result<(), Stop> {
        if !self.holds(&c.s.when)? {
            return Ok(());
        }
        let mut points: Vec<(usize, (i64, i64))> =
            c.s.over.iter().map(|g| (self.names.slots[g], self.tile[*g as usize])).collect();
        for (slot, d) in &c.inner {
            points.push((*slot, (0, self.plain(d)?)));
        }
        let mut red = Vec::new();
        for (slot, d) in &c.red {
            red.push((*slot, (0, self.plain(d)?)));
        }
        let mut regs = Vec::new();
        let mut todo = self.begin(&points);
        while todo {
            let mut results = match &c.s.kind {
                Kind::Map => {
                    self.evaluate(c, &mut regs)?;
                    c.expr.roots.iter().map(|r| regs[*r as usize]).collect()
                }
                Kind::Reduce { lanes, .. } => self.reduce(c, &red, i64::from(*lanes), &mut regs)?,
                Kind::Contract { chunk } => vec![self.contract(c, &red, u64::from(*chunk), &mut regs)?],
            };
            if let Some(post) = &c.post {
                let mut out = Vec::new();
                post.run(&self.names, &self.labels, &mut out, |i, _| match results.get(i as usize) {
                    Some(r) => Ok(*r),
                    None => self.load(&c.loads[i as usize - results.len()], &|_| None),
                })?;
                results = post.roots.iter().map(|r| out[*r as usize]).collect();
            }
            for st in &c.stores {
                self.store(st, results[st.value], &|n| c.expr.integer(&regs, n))?;
            }
            todo = self.step(&points);
        }
        Ok(())
    }

    /// Sets labels to the first position; false for an empty box.
    fn begin(&mut self, axes: &[(usize, (i64, i64))]) -> bool {
        axes.iter().for_each(|(slot, r)| self.labels[*slot] = r.0);
        axes.iter().all(|(_, r)| r.0 < r.1)
    }

    fn step(&mut self, axes: &[(usize, (i64, i64))]) -> bool {
        for (slot, r) in axes.iter().rev() {
            self.labels[*slot] += 1;
            if self.labels[*slot] < r.1 {
                return true;
            }
            self.labels[*slot] = r.0;
        }
        false
    }

    fn evaluate(&self, c: &CStage<'k>, regs: &mut Vec<u64>) -> Result<(), Stop> {
        c.expr.run(&self.names, &self.labels, regs, |i, regs| {
            self.load(&c.loads[i as usize], &|n| c.expr.integer(regs, n))
        })
    }

    fn reduce(
        &mut self,
        c: &CStage<'k>,
        red: &[(usize, (i64, i64))],
        lanes: i64,
        regs: &mut Vec<u64>,
    ) -> Result<Vec<u64>, Stop> {
        let Some((reducer, [step, combine, finish])) = &c.reducer else { return Ok(Vec::new()) };
        let last = red.last().map_or(1, |r| r.1.1);
        let existing = lanes.min(last).max(1) as usize;
        let init: Vec<u64> = reducer.init.iter().map(|s| s.bits).collect();
        let mut parts = vec![init; existing];
        let (mut position, mut work) = (0u64, Vec::new());
        let mut todo = self.begin(red);
        while todo {
            self.evaluate(c, regs)?;
            let lane = red.last().map_or(0, |r| self.labels[r.0] % lanes) as usize;
            let part = &mut parts[lane];
            let (states, inputs) = (part.len(), c.expr.roots.len());
            step.run(&self.names, &self.labels, &mut work, |i, _| {
                let i = i as usize;
                Ok::<_, Stop>(match i.checked_sub(states) {
                    None => part[i],
                    Some(j) if j < inputs => regs[c.expr.roots[j] as usize],
                    Some(_) => position,
                })
            })?;
            for (p, r) in part.iter_mut().zip(&step.roots) {
                *p = work[*r as usize];
            }
            position += 1;
            todo = self.step(red);
        }
        let mut s = lanes as usize / 2;
        while s > 0 {
            for i in 0..s.min(existing.saturating_sub(s)) {
                let n = parts[i].len();
                combine.run(&self.names, &self.labels, &mut work, |j, _| {
                    let j = j as usize;
                    Ok::<_, Stop>(if j < n { parts[i][j] } else { parts[i + s][j - n] })
                })?;
                parts[i] = combine.roots.iter().map(|r| work[*r as usize]).collect();
            }
            s /= 2;
        }
        finish.run(&self.names, &self.labels, &mut work, |j, _| Ok::<_, Stop>(parts[0][j as usize]))?;
        Ok(finish.roots.iter().map(|r| work[*r as usize]).collect())
    }

    fn contract(
        &mut self,
        c: &CStage<'k>,
        red: &[(usize, (i64, i64))],
        chunk: u64,
        regs: &mut Vec<u64>,
    ) -> Result<u64, Stop> {
        let [a, b] = c.expr.roots[..] else { return Ok(0) };
        let dtype = c.s.expr.dtype(a);
        let scalar = |bits: u64| Scalar { dtype, bits };
        let (mut total, mut chain, mut position) = (None, scalar(0), 0u64);
        let mut todo = self.begin(red);
        while todo {
            if position > 0 && position.is_multiple_of(chunk) {
                total = Some(total.map_or(chain, |t| eval_bin(Bin::Add, t, chain)));
                chain = scalar(0);
            }
            self.evaluate(c, regs)?;
            let (x, y) = (scalar(regs[a as usize]), scalar(regs[b as usize]));
            chain = tgc_ir::scalar::eval_fma(x, y, chain);
            position += 1;
            todo = self.step(red);
        }
        Ok(total.map_or(chain, |t| eval_bin(Bin::Add, t, chain)).bits)
    }

    fn memory(&self, b: Buf) -> &Memory {
        match b {
            Buf::Arg(i) => &self.args[i as usize],
            Buf::Local(i) => &self.locals[i as usize],
        }
    }

    /// Linear position of an element; None when an index is outside.
    fn position(&self, b: Buf, index: &[Ix], vals: &dyn Fn(u32) -> Option<i64>) -> Option<usize> {
        let m = self.memory(b);
        let mut at = 0i64;
        for (i, ix) in index.iter().enumerate() {
            let mut v = self.names.value(ix, &self.labels, vals)?;
            if let Buf::Local(l) = b {
                match &self.k.locals[l as usize].axes[i] {
                    LocalAxis::Tile { grid, lo, .. } => v -= self.tile[*grid as usize].0 - i64::from(*lo),
                    LocalAxis::Ring(n) => v = v.rem_euclid(i64::from(*n)),
                    LocalAxis::Full(_) => {}
                }
            }
            if v < 0 || v >= m.dims[i] {
                return None;
            }
            at = at * m.dims[i] + v;
        }
        Some(at as usize)
    }

    fn load(&self, l: &CLoad<'k>, vals: &dyn Fn(u32) -> Option<i64>) -> Result<u64, Stop> {
        match l.mode {
            Mode::Fill(p, v) if !self.holds(p)? => return Ok(v.bits),
            Mode::Trap(_, p) if !self.holds(p)? => return Ok(0),
            Mode::Proved | Mode::Fill(..) | Mode::Trap(..) => {}
        }
        match (self.position(l.from, &l.index, vals), l.mode) {
            (Some(at), _) => Ok(self.memory(l.from).get(at)),
            (None, Mode::Trap(site, _)) => Err(Stop::Trap(*site)),
            (None, _) => Err(fault(self.k, format!("a load from {:?} is out of bounds", l.from))),
        }
    }

    fn store(&mut self, st: &CStore, v: u64, vals: &dyn Fn(u32) -> Option<i64>) -> Result<(), Stop> {
        let Some(at) = self.position(st.to, &st.index, vals) else {
            return Err(match st.site {
                0 => fault(self.k, format!("a store to {:?} is out of bounds", st.to)),
                site => Stop::Trap(site),
            });
        };
        let m = match st.to {
            Buf::Arg(i) => &mut self.args[i as usize],
            Buf::Local(i) => &mut self.locals[i as usize],
        };
        let op = match st.op {
            Combine::Set => None,
            Combine::Add => Some(Bin::Add),
            Combine::Mul => Some(Bin::Mul),
            Combine::Min => Some(Bin::Min),
            Combine::Max => Some(Bin::Max),
        };
        let v = match op {
            None => v,
            Some(op) => {
                eval_bin(op, Scalar { dtype: m.dtype, bits: m.get(at) }, Scalar { dtype: m.dtype, bits: v })
                    .bits
            }
        };
        m.set(at, v);
        Ok(())
    }
}
