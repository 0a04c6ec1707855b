//! Reductions in the normative order: `lanes` partials along the last reduction label, joined by the fixed tree. Partials
//! live in a stack array; while whole rounds of lanes are taken they are held in registers.

use super::build::{Emitter, Op, R, T, V, known};
use super::contract::SHORT;
use super::emit::{Emit, Lanes};
use super::internal;
use super::stage::{Axis, Copies};
use crate::kernel::Stage;
use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use tgc_ir::class::Reducer;
use tgc_ir::scalar::Expr;
use tgc_ir::types::{DType, Dim};

/// Most states held in registers when partials are not lanes of vectors.
const MOST_REGISTERS: u32 = 16;

/// The partials of one reduction.
struct Partials<'c> {
    /// An array for each state.
    arrays: Vec<PointerValue<'c>>,
    types: Vec<DType>,
    count: u32,
    /// Lanes of an element (points that are reduced side by side).
    width: u32,
}

impl<'c> Emit<'c, '_> {
    /// Results of a reduction at the current point. `along`: run the last label in vectors of this many lanes.
    pub(super) fn reduce(
        &mut self,
        s: &Stage,
        r: &Reducer,
        lanes: u32,
        along: Option<u32>,
        c: &Copies<'c>,
    ) -> R<Vec<V<'c>>> {
        let lanes = lanes.max(1);
        if !lanes.is_power_of_two() || along.is_some_and(|w| !lanes.is_multiple_of(w)) {
            return Err(internal(self.kernel, &format!("a reduction of {lanes} partials")));
        }
        let types: Vec<DType> = r.init.iter().map(|i| i.dtype).collect();
        let width = self.vector.map_or(1, |v| v.width);
        let mut arrays = Vec::new();
        for &d in &types {
            let t = self.ir.mem(d).map(|t| self.ir.widen(t, width));
            arrays.push(
                self.ir
                    .slot_array(t.ok_or_else(|| internal(self.kernel, "a state without a type"))?, lanes)?,
            );
        }
        let p = Partials { arrays, types, count: lanes, width };
        let init = r.init.iter().map(|&s| self.constant(s)).collect::<R<Vec<_>>>()?;
        let mut axes: Vec<Axis<'c>> = Vec::new();
        for (label, extent) in &s.red {
            axes.push((*label, self.ir.i64(0), self.extent(extent)?));
        }
        let last = axes.pop();
        let existing = match last {
            None => self.ir.i64(1),
            Some((_, _, len)) => match known(len) {
                Some(n) => self.ir.i64(n.clamp(1, i64::from(lanes))),
                None => {
                    let n = self.ir.smin(len, self.ir.i64(i64::from(lanes)))?;
                    self.ir.smax(n, self.ir.i64(1))?
                }
            },
        };
        let sizes: Vec<i64> = along.into_iter().map(i64::from).chain([1]).collect();
        self.blocks(self.ir.i64(0), existing, &sizes, &mut |e, i, w| e.put_states(&p, i, w as u32, &init))?;
        let steps = s.red.iter().try_fold(1i64, |n, r| n.checked_mul(r.1.as_const()?));
        let inside = if steps.is_some_and(|n| n <= SHORT) { self.all_inside(s, c)? } else { None };
        let mut part = |e: &mut Self| match last {
            None => {
                let zero = e.ir.i64(0);
                e.step_in_memory(s, r, &p, zero, 1)
            }
            Some((label, _, len)) => match along {
                Some(w) => e.rounds(s, r, &p, label, len, w),
                None if lanes * r.init.len() as u32 <= MOST_REGISTERS => e.rounds(s, r, &p, label, len, 1),
                None => e.each(e.ir.i64(0), len, 1, &mut |e, i| {
                    let at = e.ir.op(Op::And, i, e.ir.i64(i64::from(lanes) - 1))?;
                    e.scoped(label, i, &mut |e| e.step_in_memory(s, r, &p, at, 1))
                }),
            },
        };
        self.with_and_without_padding(s, inside, &mut |e| e.loops(&axes, &mut part))?;
        self.tree(&p, &r.combine, existing, along.unwrap_or(1))?;
        let zero = self.ir.i64(0);
        let states = self.get_states(&p, zero, 1)?;
        self.expr(&r.finish, false, &mut |e, i| {
            states.get(i as usize).copied().ok_or_else(|| internal(e.kernel, "a state that is not there"))
        })
    }

    /// All of the last label: whole rounds of `lanes` positions with the partials in registers, `w` to a vector, then the
    /// rest by the array.
    fn rounds(&mut self, s: &Stage, r: &Reducer, p: &Partials<'c>, label: u32, len: V<'c>, w: u32) -> R<()> {
        let lanes = i64::from(p.count);
        let (groups, w64) = (p.count / w, i64::from(w));
        let zero = self.ir.i64(0);
        let whole = match known(len) {
            Some(n) => self.ir.i64(n / lanes * lanes),
            None => self.ir.op(Op::And, len, self.ir.i64(-lanes))?,
        };
        let some = self.ir.icmp(IntPredicate::SGT, whole, zero)?;
        if known(some) != Some(0) {
            self.when(some, &mut |e| e.whole_rounds(s, r, p, label, whole, groups, w))?;
        }
        let left = match (known(len), known(whole)) {
            (Some(a), Some(b)) => self.ir.i64(a - b),
            _ => self.ir.op(Op::Sub, len, whole)?,
        };
        if lanes == 1 {
            return Ok(());
        }
        let sizes: &[i64] = if w > 1 { &[w64, 1] } else { &[1] };
        self.blocks(whole, left, sizes, &mut |e, i, size| {
            let at = e.ir.op(Op::And, i, e.ir.i64(lanes - 1))?;
            e.lanes_in_red(label, i, size as u32, &mut |e| e.step_in_memory(s, r, p, at, size as u32))
        })?;
        Ok(())
    }

    #[allow(clippy::too_many_arguments)] // the parts of one loop
    fn whole_rounds(
        &mut self,
        s: &Stage,
        r: &Reducer,
        p: &Partials<'c>,
        label: u32,
        whole: V<'c>,
        groups: u32,
        w: u32,
    ) -> R<()> {
        let lanes = p.width * w;
        let mut slots: Vec<Vec<PointerValue<'c>>> = Vec::new();
        let mut types: Vec<T<'c>> = Vec::new();
        for &d in &p.types {
            types.push(self.ir.widen(self.reg(d)?, lanes));
        }
        for g in 0..groups {
            let at = self.ir.i64(i64::from(g * w));
            let states = self.get_states(p, at, w)?;
            let mut row = Vec::new();
            for (t, v) in types.iter().zip(states) {
                let slot = self.ir.slot(*t)?;
                self.ir.b.build_store(slot, v)?;
                row.push(slot);
            }
            slots.push(row);
        }
        self.each(self.ir.i64(0), whole, i64::from(p.count), &mut |e, i| {
            for (g, row) in slots.iter().enumerate() {
                let base = e.ir.op(Op::Add, i, e.ir.i64(g as i64 * i64::from(w)))?;
                e.lanes_in_red(label, base, w, &mut |e| {
                    let mut old = Vec::new();
                    for (slot, t) in row.iter().zip(&types) {
                        old.push(e.ir.b.build_load(*t, *slot, "")?);
                    }
                    let new = e.step(s, r, &old)?;
                    for (slot, v) in row.iter().zip(new) {
                        e.ir.b.build_store(*slot, e.ir.splat(v, lanes)?)?;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        })?;
        for (g, row) in slots.iter().enumerate() {
            let mut states = Vec::new();
            for (slot, t) in row.iter().zip(&types) {
                states.push(self.ir.b.build_load(*t, *slot, "")?);
            }
            let at = self.ir.i64(g as i64 * i64::from(w));
            self.put_states(p, at, w, &states)?;
        }
        Ok(())
    }

    /// A reduction label at `base`: in vectors when `w` is above 1, else beside the vector label of the point, if any.
    fn lanes_in_red(
        &mut self,
        label: u32,
        base: V<'c>,
        w: u32,
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        if w == 1 {
            return self.scoped(label, base, body);
        }
        self.depth += 1;
        let lanes = Lanes { label, width: w, base, depth: self.depth, aligned: true, active: None };
        let r = self.lanes_of(lanes, body);
        self.depth -= 1;
        r
    }

    fn step_in_memory(&mut self, s: &Stage, r: &Reducer, p: &Partials<'c>, at: V<'c>, w: u32) -> R<()> {
        let old = self.get_states(p, at, w)?;
        let new = self.step(s, r, &old)?;
        self.put_states(p, at, w, &new)
    }

    /// One step from `old` states with the inputs at the current labels.
    fn step(&mut self, s: &Stage, r: &Reducer, old: &[V<'c>]) -> R<Vec<V<'c>>> {
        let inputs = self.roots(s)?;
        let position = || {
            s.red.iter().fold(Dim::from(0), |at, (label, extent)| at * extent.clone() + Dim::label(*label))
        };
        self.expr(&r.step, false, &mut |e, i| {
            let i = i as usize;
            match (old.get(i), inputs.get(i.wrapping_sub(old.len()))) {
                (Some(v), _) | (None, Some(v)) => Ok(*v),
                (None, None) if i == old.len() + inputs.len() => e.dim(&position()),
                _ => Err(internal(e.kernel, "an input that is not there")),
            }
        })
    }

    /// Joins the existing partials into the first: i with i + s, for s halving.
    fn tree(&mut self, p: &Partials<'c>, combine: &Expr, existing: V<'c>, w: u32) -> R<()> {
        let mut s = i64::from(p.count) / 2;
        while s > 0 {
            let n = match known(existing) {
                Some(k) => self.ir.i64((k - s).clamp(0, s)),
                None => {
                    let over = self.ir.op(Op::Sub, existing, self.ir.i64(s))?;
                    let n = self.ir.smin(over, self.ir.i64(s))?;
                    self.ir.smax(n, self.ir.i64(0))?
                }
            };
            let sizes: &[i64] = if w > 1 && s >= i64::from(w) { &[i64::from(w), 1] } else { &[1] };
            self.blocks(self.ir.i64(0), n, sizes, &mut |e, i, size| {
                let size = size as u32;
                let first = e.get_states(p, i, size)?;
                let at = e.ir.op(Op::Add, i, e.ir.i64(s))?;
                let second = e.get_states(p, at, size)?;
                let joined = e.expr(combine, false, &mut |e, i| {
                    let i = i as usize;
                    let v = first.get(i).or_else(|| second.get(i.wrapping_sub(first.len())));
                    v.copied().ok_or_else(|| internal(e.kernel, "a state that is not there"))
                })?;
                e.put_states(p, i, size, &joined)
            })?;
            s /= 2;
        }
        Ok(())
    }

    /// States of the partials `at .. at + w`.
    fn get_states(&mut self, p: &Partials<'c>, at: V<'c>, w: u32) -> R<Vec<V<'c>>> {
        let mut out = Vec::new();
        for (&array, &d) in p.arrays.iter().zip(&p.types) {
            let t = self.state_type(d)?;
            let ptr = self.ir.at(self.ir.widen(t, p.width), array, at)?;
            let v = self.ir.load(self.ir.widen(t, p.width * w), ptr, d.size() as u32)?;
            out.push(if d == DType::Bool {
                self.ir.icmp(IntPredicate::NE, v, self.ir.int_like(v, 0)?)?
            } else {
                v
            });
        }
        Ok(out)
    }

    fn put_states(&mut self, p: &Partials<'c>, at: V<'c>, w: u32, states: &[V<'c>]) -> R<()> {
        for ((&array, &d), &v) in p.arrays.iter().zip(&p.types).zip(states) {
            let t = self.state_type(d)?;
            let ptr = self.ir.at(self.ir.widen(t, p.width), array, at)?;
            let v = if d == DType::Bool { self.ir.int_cast(v, t, false)? } else { v };
            self.ir.store(ptr, self.ir.splat(v, p.width * w)?, d.size() as u32)?;
        }
        Ok(())
    }

    fn state_type(&self, d: DType) -> R<T<'c>> {
        self.ir.mem(d).ok_or_else(|| internal(self.kernel, "a state without a type"))
    }
}
