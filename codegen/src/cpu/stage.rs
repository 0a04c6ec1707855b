//! Stages as loop nests: axes in order with the vector label innermost, whole vectors first and single elements after,
//! results through `post` to the stores. How results over reduction labels come about is in reduce.rs and contract.rs.

use super::build::{Emitter, R, V, known};
use super::emit::Emit;
use super::internal;
use crate::kernel::{Kind, Stage};
use crate::schedule::StageSchedule;
use tgc_ir::class::Combine;
use tgc_ir::types::{Atom, Dim, Pred};

/// Most vector instructions that unrolling makes of one stage's body.
const MOST_INSTRUCTIONS: i64 = 256;

/// A loop: label, first value, number of values.
pub(super) type Axis<'c> = (u32, V<'c>, V<'c>);

/// Points taken at once: several vectors along one label, or one single point.
pub(super) struct Copies<'c> {
    label: Option<u32>,
    /// Lanes of each.
    pub(super) width: u32,
    /// First value of the label in each.
    bases: Vec<V<'c>>,
}

impl Copies<'_> {
    /// How many.
    pub(super) fn count(&self) -> usize {
        self.bases.len().max(1)
    }
}

/// True if an index depends on values read.
pub(super) fn has_node_value(d: &Dim) -> bool {
    d.any_leaf(|a| matches!(a, Atom::Val(_)))
}

impl<'c> Emit<'c, '_> {
    /// All of a stage for the current tile.
    pub(super) fn stage(&mut self, s: &Stage, plan: StageSchedule) -> R<()> {
        if s.when == Pred::True {
            return self.points(s, plan);
        }
        let holds = self.pred(&s.when)?;
        self.when(holds, &mut |e| e.points(s, plan))
    }

    fn points(&mut self, s: &Stage, plan: StageSchedule) -> R<()> {
        let mut axes: Vec<Axis<'c>> = Vec::new();
        for &g in &s.over {
            let Some(&(lo, len)) = self.tile.get(g as usize) else {
                return Err(internal(self.kernel, "a stage over a grid axis that is not there"));
            };
            axes.push((g, lo, len));
        }
        for (label, extent) in &s.inner {
            axes.push((*label, self.ir.i64(0), self.extent(extent)?));
        }
        let ordered = s.stores.iter().any(|st| st.op != Combine::Set || st.index.iter().any(has_node_value));
        let at = axes.iter().position(|a| Some(a.0) == plan.vector && plan.width > 1 && !ordered);
        let vector = at.map(|at| axes.remove(at));
        self.loops(&axes, &mut |e| match vector {
            None => e.point(s, plan, &Copies { label: None, width: 1, bases: Vec::new() }),
            Some((label, lo, len)) => {
                let width = i64::from(plan.width);
                let unroll = e.copies(s, plan);
                let sizes: Vec<i64> =
                    if unroll > 1 { vec![width * unroll, width, 1] } else { vec![width, 1] };
                e.blocks(lo, len, &sizes, &mut |e, first, size| {
                    let width = if size == 1 { 1 } else { width };
                    let mut bases = vec![first];
                    for u in 1..size / width {
                        bases.push(e.ir.op(super::build::Op::Add, first, e.ir.i64(u * width))?);
                    }
                    e.point(s, plan, &Copies { label: Some(label), width: width as u32, bases })
                })
            }
        })
    }

    /// Vectors taken at once: what the schedule asks for, less where that would be more code than registers can serve.
    fn copies(&self, s: &Stage, plan: StageSchedule) -> i64 {
        if matches!(s.kind, Kind::Reduce { .. }) {
            return 1;
        }
        let widest = s.expr.nodes.iter().map(|n| n.1.size()).max().unwrap_or(1) as i64;
        let registers = (i64::from(plan.width) * widest / i64::from(self.target.isa.vector_bytes)).max(1);
        let nodes = (s.expr.nodes.len() + s.post.as_ref().map_or(0, |p| p.nodes.len())) as i64;
        i64::from(plan.unroll).min(MOST_INSTRUCTIONS / (registers * nodes.max(1))).clamp(1, 8)
    }

    /// Runs `body` for every point of the axes, the last fastest.
    pub(super) fn loops(&mut self, axes: &[Axis<'c>], body: &mut dyn FnMut(&mut Self) -> R<()>) -> R<()> {
        let Some((&(label, lo, len), rest)) = axes.split_first() else { return body(self) };
        if known(len) == Some(1) {
            return self.scoped(label, lo, &mut |e| e.loops(rest, body));
        }
        let hi = self.ir.op(super::build::Op::Add, lo, len)?;
        self.each(lo, hi, 1, &mut |e, i| e.scoped(label, i, &mut |e| e.loops(rest, body)))
    }

    /// Runs `body` where a label has `width` lanes from `base` on.
    pub(super) fn lanes_of<X>(
        &mut self,
        label: u32,
        base: V<'c>,
        width: u32,
        body: &mut dyn FnMut(&mut Self) -> R<X>,
    ) -> R<X> {
        let (v, vector) = if width == 1 {
            (base, None)
        } else {
            (self.ir.op(super::build::Op::Add, base, self.ir.iota(width))?, Some((label, width, base)))
        };
        let before = std::mem::replace(&mut self.vector, vector);
        let mut out = None;
        let r = self.scoped(label, v, &mut |e| {
            out = Some(body(e)?);
            Ok(())
        });
        self.vector = before;
        r?;
        out.ok_or_else(|| internal(self.kernel, "a vector that was not built"))
    }

    /// Runs `body` at copy `u`.
    pub(super) fn at_copy<X>(
        &mut self,
        c: &Copies<'c>,
        u: usize,
        body: &mut dyn FnMut(&mut Self) -> R<X>,
    ) -> R<X> {
        match (c.label, c.bases.get(u)) {
            (Some(label), Some(&base)) => self.lanes_of(label, base, c.width, body),
            _ => body(self),
        }
    }

    /// The stage's loads, for its expression.
    pub(super) fn roots(&mut self, s: &Stage) -> R<Vec<V<'c>>> {
        self.expr(&s.expr, true, &mut |e, i| match s.loads.get(i as usize) {
            Some(l) => e.read(l),
            None => Err(internal(e.kernel, "a load that is not there")),
        })
    }

    /// Results, post and stores of the points of `c`.
    fn point(&mut self, s: &Stage, plan: StageSchedule, c: &Copies<'c>) -> R<()> {
        let mut results: Vec<Vec<V<'c>>> = Vec::new();
        match &s.kind {
            Kind::Map => {
                for u in 0..c.count() {
                    results.push(self.at_copy(c, u, &mut |e| e.roots(s))?);
                }
            }
            Kind::Contract { chunk } => {
                results.extend(self.contract(s, *chunk, c)?.into_iter().map(|v| vec![v]));
            }
            Kind::Reduce { reducer, lanes } => {
                let last = s.red.last().map(|r| r.0);
                let along = plan.vector.filter(|v| Some(*v) == last && plan.width > 1).map(|_| plan.width);
                for u in 0..c.count() {
                    results.push(self.at_copy(c, u, &mut |e| e.reduce(s, reducer, *lanes, along))?);
                }
            }
        }
        if let Some(post) = &s.post {
            for (u, r) in results.iter_mut().enumerate() {
                let n = r.len();
                *r = self.at_copy(c, u, &mut |e| {
                    e.expr(post, false, &mut |e, i| match (
                        r.get(i as usize),
                        s.loads.get((i as usize).wrapping_sub(n)),
                    ) {
                        (Some(v), _) => Ok(*v),
                        (None, Some(l)) => e.read(l),
                        _ => Err(internal(e.kernel, "a load that is not there")),
                    })
                })?;
            }
        }
        for (u, r) in results.iter().enumerate() {
            self.at_copy(c, u, &mut |e| {
                for st in &s.stores {
                    let Some(&v) = r.get(st.value as usize) else {
                        return Err(internal(e.kernel, "a result that is not there"));
                    };
                    e.write(st, v)?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
