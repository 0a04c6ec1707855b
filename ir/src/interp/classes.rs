//! Evaluation by lowering class: the dispatch, what every class evaluator is given, and the pieces they share. Ops are
//! not known here.
#![deny(clippy::wildcard_enum_match_arm)]

use super::expr::Reg;
use super::index::{Leaf, Offset, Slots};
use super::value::{Val, check_run, copy, filled};
use super::{contract, cumulate, indexed, map, opaque, reduce, view, window};
use crate::class::Class;
use crate::diag::Diag;
use crate::types::DType;

/// One evaluation: operands, result types with concrete shapes, values of symbols.
pub(crate) struct Job<'a> {
    pub(crate) ins: &'a [&'a Val],
    pub(crate) outs: &'a [(DType, Vec<usize>)],
    pub(crate) leaf: Leaf<'a>,
    /// Carry error bounds.
    pub(crate) bounded: bool,
}

/// Evaluates a class.
pub(crate) fn eval(class: &Class, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    match class {
        Class::Map(c) => map::eval(c, job),
        Class::Reduce(c) => reduce::eval(c, job),
        Class::Contract(c) => Ok(vec![contract::eval(c, job)?]),
        Class::View(c) => Ok(vec![view::eval(c, job)?]),
        Class::Window(c) => window::eval(c, job),
        Class::Index(c) => Ok(vec![indexed::eval(c, job)?]),
        Class::Cumulate(c) => cumulate::eval(c, job),
        Class::Opaque(c) => opaque::eval(*c, job),
    }
}

impl<'a> Job<'a> {
    /// Operand `i`.
    pub(crate) fn input(&self, i: usize) -> Result<&'a Val, Diag> {
        self.ins.get(i).copied().ok_or_else(|| fault(format!("operand {i} is missing")))
    }

    /// Type and shape of result `i`.
    pub(crate) fn out(&self, i: usize) -> Result<&'a (DType, Vec<usize>), Diag> {
        self.outs.get(i).ok_or_else(|| fault(format!("result {i} has no type")))
    }

    /// Zeros for result `i`, with bounds of 0 if any operand carries bounds.
    pub(crate) fn new_out(&self, i: usize) -> Result<Val, Diag> {
        let (dtype, shape) = self.out(i)?;
        let mut v = Val::zeros(*dtype, shape)?;
        if self.bounded {
            v.err = Some(filled(v.numel(), 0.0)?);
        }
        Ok(v)
    }

    /// Slots for labels of these extents.
    pub(crate) fn slots(&self, extents: &[usize], vals: usize) -> Slots<'a> {
        Slots::new(self.leaf, extents, vals)
    }
}

/// A lowering or a graph that contradicts itself.
pub(crate) fn fault(message: impl Into<String>) -> Diag {
    Diag::error("E-RUN-011", message).help("this is a fault in the op's lowering; please report it")
}

/// Reads a row of `len` elements of `v` at `off` into `reg` from `pos` on. `at` is the row's start and is left so.
pub(crate) fn load(
    v: &Val,
    off: &Offset,
    at: &mut [i64],
    inner: Option<usize>,
    reg: &mut Reg,
    (pos, len): (usize, usize),
) -> Result<(), Diag> {
    if let Some(stride) = off.stride(inner) {
        let start = check_run(off.at(at), stride, len, v.numel())?;
        read(v, (start, stride), reg, (pos, len));
        return Ok(());
    }
    each_of_row(at, inner, len, |at, k| {
        let start = check_run(off.at(at), 0, 1, v.numel())?;
        read(v, (start, 0), reg, (pos + k, 1));
        Ok(())
    })
}

fn read(v: &Val, (start, stride): (usize, i64), reg: &mut Reg, (pos, len): (usize, usize)) {
    if reg.f.is_empty() {
        v.buf.read_i(start, stride, &mut reg.i[pos..pos + len]);
    } else {
        v.buf.read_f(start, stride, &mut reg.f[pos..pos + len]);
    }
    if !reg.e.is_empty() {
        match &v.err {
            Some(e) => copy(&mut reg.e, (pos, 1), e, (start, stride), len),
            None => reg.e[pos..pos + len].fill(0.0),
        }
    }
}

/// Calls `f` for each element of a row with `at` at that element; `at` is left at the row's start.
pub(crate) fn each_of_row(
    at: &mut [i64],
    inner: Option<usize>,
    len: usize,
    mut f: impl FnMut(&mut [i64], usize) -> Result<(), Diag>,
) -> Result<(), Diag> {
    let Some(s) = inner else { return if len > 0 { f(at, 0) } else { Ok(()) } };
    let first = at[s];
    for k in 0..len {
        at[s] = first + k as i64;
        f(at, k)?;
    }
    at[s] = first;
    Ok(())
}

/// Copies a row of `len` elements with its bounds.
pub(crate) fn copy_row(out: &mut Val, to: (usize, i64), from: &Val, at: (usize, i64), len: usize) {
    out.buf.copy_run(to, &from.buf, at, len);
    if let Some(e) = &mut out.err {
        match &from.err {
            Some(f) => copy(e, to, f, at, len),
            None => copy(e, to, &[0.0], (0, 0), len),
        }
    }
}

/// Stores the first `n` elements of a register at `start`.
pub(crate) fn store(out: &mut Val, start: usize, stride: i64, reg: &Reg, n: usize) {
    if reg.f.is_empty() {
        out.buf.write_i(start, stride, &reg.i[..n]);
    } else {
        out.buf.write_f(start, stride, &reg.f[..n]);
    }
    if let Some(e) = out.err.as_mut().filter(|_| !reg.e.is_empty()) {
        copy(e, (start, stride), &reg.e, (0, 1), n);
    }
}

/// The read of a dense operand over the labels of `to` with right-aligned numpy broadcasting.
pub(crate) fn broadcast(from: &[usize], to: &[usize]) -> Result<Offset, Diag> {
    let misfit = || Diag::error("E-RUN-015", format!("shape {from:?} does not broadcast to {to:?}"));
    let skip = to.len().checked_sub(from.len()).ok_or_else(misfit)?;
    let mut lin = Vec::with_capacity(from.len());
    for (i, (&d, s)) in from.iter().zip(super::value::strides(from)).enumerate() {
        if d != 1 && d != to[i + skip] {
            return Err(misfit().help("each size must be equal to the result's or 1"));
        }
        lin.push((i + skip, if d == 1 { 0 } else { s as i64 }));
    }
    Ok(Offset::affine(0, lin))
}
