//! Stages as loop nests: axes in order with the vector label innermost, whole vectors first and then a partial one or
//! single elements; of a contraction with rows, blocks of rows inside blocks of vectors. Results go through `post` to the stores. How results over reduction labels come about is in reduce.rs and contract.rs.

use super::build::{Emitter, Op, R, V, known};
use super::emit::{Chunk, Emit, LANE, Lanes};
use super::internal;
use crate::kernel::{Kind, Stage};
use crate::schedule::{ChunkSums, StageSchedule};
use inkwell::IntPredicate;
use tgc_ir::class::Combine;
use tgc_ir::types::{Atom, Dim, Pred};

/// Most vector instructions that unrolling makes of one stage's body.
const MOST_INSTRUCTIONS: i64 = 256;

/// A loop: label, first value, number of values.
pub(super) type Axis<'c> = (u32, V<'c>, V<'c>);

/// Points taken at once: several vectors along one label, at several positions of another, or one single point.
pub(super) struct Copies<'c> {
    /// Positions of the rows' label.
    pub(super) rows: Option<(u32, Vec<V<'c>>)>,
    /// Lanes of each vector.
    pub(super) width: u32,
    /// Each vector; none: scalars.
    pub(super) vectors: Vec<Lanes<'c>>,
    /// Loop depth at which the rows are known.
    pub(super) depth: u32,
}

impl Copies<'_> {
    /// How many.
    pub(super) fn count(&self) -> usize {
        self.rows.as_ref().map_or(1, |r| r.1.len()) * self.vectors.len().max(1)
    }
}

/// The vector label of a stage and how it is run.
#[derive(Clone, Copy)]
struct Columns<'c> {
    axis: Axis<'c>,
    width: i64,
    aligned: bool,
    /// What is left after whole vectors is one vector with lanes switched off.
    partial: bool,
}

/// Most vectors side by side in a block.
const MOST_VECTORS: i64 = 8;

fn prev_power_of_two(n: i64) -> i64 {
    1 << (63 - n.max(1).leading_zeros())
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
        let columns = self.columns(s, plan, &mut axes);
        let rows = plan.rows.and_then(|(label, count)| {
            let at = axes.iter().position(|a| a.0 == label)?;
            Some((axes.remove(at), i64::from(count)))
        });
        self.loops(&axes, &mut |e| match (columns, rows) {
            (None, _) => {
                // Rows without vectors are single points.
                let rest: Vec<Axis<'c>> = rows.iter().map(|r| r.0).collect();
                let one = Copies { rows: None, width: 1, vectors: Vec::new(), depth: e.depth };
                e.loops(&rest, &mut |e| e.point(s, plan, &one))
            }
            (Some(c), None) => {
                let unroll = e.copies(s, plan);
                e.each_columns(c, unroll, &mut |e, vectors| {
                    let width = vectors.first().map_or(1, |v| v.width);
                    e.point(s, plan, &Copies { rows: None, width, vectors, depth: e.depth })
                })
            }
            (Some(c), Some((axis, most))) => match crate::schedule::chunk_sums(s, &plan, &e.schedule.tiles) {
                None => e.blocked(s, plan, c, axis, most),
                Some(sums) => e.each_chunk(s, sums, &mut |e| e.blocked(s, plan, c, axis, most)),
            },
        })
    }

    /// Runs `body` for every chunk of a contraction, at least once.
    fn each_chunk(&mut self, s: &Stage, plan: ChunkSums, body: &mut dyn FnMut(&mut Self) -> R<()>) -> R<()> {
        let Some((_, extent)) = s.red.first() else { return body(self) };
        let len = self.extent(extent)?;
        let (zero, one, count) = (self.ir.i64(0), self.ir.i64(1), self.ir.i64(plan.count));
        let hi = self.ir.smax(len, one)?;
        self.each(zero, hi, plan.count, &mut |e, from| {
            let end = e.ir.op(Op::Add, from, count)?;
            let to = e.ir.smin(end, len)?;
            let chunk = Chunk {
                plan,
                from,
                len: e.ir.op(Op::Sub, to, from)?,
                first: e.ir.icmp(IntPredicate::EQ, from, zero)?,
                last: e.ir.icmp(IntPredicate::SGE, end, hi)?,
            };
            let before = e.chunk.replace(chunk);
            e.depth += 1;
            let r = body(e);
            e.depth -= 1;
            e.chunk = before;
            r
        })
    }

    /// Takes the vector label out of the axes.
    fn columns(&self, s: &Stage, plan: StageSchedule, axes: &mut Vec<Axis<'c>>) -> Option<Columns<'c>> {
        let ordered = s.stores.iter().any(|st| st.op != Combine::Set || st.index.iter().any(has_node_value));
        let at = axes.iter().position(|a| Some(a.0) == plan.vector && plan.width > 1 && !ordered)?;
        let axis = axes.remove(at);
        let first = known(axis.1).map(|lo| lo % i64::from(plan.width) == 0);
        let tile = self.tile_multiple(axis.0, plan.width);
        let aligned = first.unwrap_or(tile);
        let panels = if aligned { plan.width } else { 0 };
        let partial = self.target.masks(&crate::schedule::widths(self.kernel, s, axis.0, panels));
        Some(Columns { axis, width: i64::from(plan.width), aligned, partial })
    }

    /// Runs `body` for blocks of up to `unroll` vectors along the vector label.
    fn each_columns(
        &mut self,
        c: Columns<'c>,
        unroll: i64,
        body: &mut dyn FnMut(&mut Self, Vec<Lanes<'c>>) -> R<()>,
    ) -> R<()> {
        let (label, lo, len) = c.axis;
        let mut sizes: Vec<i64> = [unroll, unroll / 4].into_iter().filter(|u| *u > 1).collect();
        sizes.push(1);
        let mut sizes: Vec<i64> = sizes.into_iter().map(|u| u * c.width).collect();
        if !c.partial {
            sizes.push(1);
        }
        let (from, left) = self.blocks(lo, len, &sizes, &mut |e, first, size| {
            let width = if size == 1 { 1 } else { c.width };
            let mut vectors = Vec::new();
            for u in 0..size / width {
                let base = if u == 0 { first } else { e.ir.op(Op::Add, first, e.ir.i64(u * width))? };
                let (width, depth) = (width as u32, e.depth);
                vectors.push(Lanes { label, width, base, depth, aligned: c.aligned, active: None });
            }
            body(e, vectors)
        })?;
        if !c.partial || known(left) == Some(0) {
            return Ok(());
        }
        let some = self.ir.icmp(IntPredicate::SGT, left, self.ir.i64(0))?;
        self.when(some, &mut |e| {
            let (width, depth) = (c.width as u32, e.depth);
            let active = Some(e.ir.icmp(IntPredicate::SLT, e.ir.iota(width), left)?);
            body(e, vec![Lanes { label, width, base: from, depth, aligned: c.aligned, active }])
        })
    }

    /// Blocks of rows inside blocks of vectors: as many whole blocks of `most` rows as fit, then smaller ones with more
    /// vectors each, so that there are about as many chains side by side.
    fn blocked(
        &mut self,
        s: &Stage,
        plan: StageSchedule,
        c: Columns<'c>,
        rows: Axis<'c>,
        most: i64,
    ) -> R<()> {
        let (label, mut from, mut left) = rows;
        for size in std::iter::once(most).chain([4, 2, 1].into_iter().filter(|r| *r < most)) {
            if known(left) == Some(0) {
                break;
            }
            let whole = self.whole(left, size)?;
            let to = self.ir.op(Op::Add, from, whole)?;
            let some = self.ir.icmp(IntPredicate::SLT, from, to)?;
            if known(some) != Some(0) {
                let unroll = prev_power_of_two(i64::from(plan.unroll) * most / size).min(MOST_VECTORS);
                self.when(some, &mut |e| {
                    e.each_columns(c, unroll, &mut |e, vectors| {
                        let width = vectors.first().map_or(1, |v| v.width);
                        e.each(from, to, size, &mut |e, first| {
                            let mut at = vec![first];
                            for r in 1..size {
                                at.push(e.ir.op(Op::Add, first, e.ir.i64(r))?);
                            }
                            let depth = e.depth + 1;
                            let copies =
                                Copies { rows: Some((label, at)), width, vectors: vectors.clone(), depth };
                            e.depth += 1;
                            let block = e.ir.op(Op::Sub, first, rows.1)?;
                            let block = e.ir.op(Op::UDiv, block, e.ir.i64(most))?;
                            let blocks =
                                e.schedule.tiles.get(label as usize).map_or(1, |t| i64::from(*t) / most);
                            e.row_block = (size == most && most > 1).then_some((block, blocks.max(1)));
                            let r = e.point(s, plan, &copies);
                            e.row_block = None;
                            e.depth -= 1;
                            r
                        })
                    })
                })?;
            }
            left = self.less(left, whole)?;
            from = to;
        }
        Ok(())
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
        let hi = self.ir.op(Op::Add, lo, len)?;
        self.each(lo, hi, 1, &mut |e, i| e.scoped(label, i, &mut |e| e.loops(rest, body)))
    }

    /// Builds `body` where the condition holds, with reads that know no padding, and where it does not; once as it is if there
    /// is no condition.
    pub(super) fn with_and_without_padding(
        &mut self,
        s: &Stage,
        inside: Option<V<'c>>,
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        let Some(inside) = inside else { return body(self) };
        let outside = self.ir.op(Op::Xor, inside, self.ir.int_like(inside, 1)?)?;
        self.when(inside, &mut |e| {
            let before = e.inside.replace(super::inside::margins(s));
            let r = body(e);
            e.inside = before;
            r
        })?;
        self.when(outside, body)
    }

    /// Runs `body` where a label has the lanes given.
    pub(super) fn lanes_of<X>(&mut self, lanes: Lanes<'c>, body: &mut dyn FnMut(&mut Self) -> R<X>) -> R<X> {
        let (v, vector) = if lanes.width == 1 {
            (lanes.base, None)
        } else {
            (self.ir.op(Op::Add, lanes.base, self.ir.iota(lanes.width))?, Some(lanes))
        };
        let name = self.named.insert(LANE.to_string(), (lanes.base, lanes.depth));
        let before = std::mem::replace(&mut self.vector, vector);
        let mut out = None;
        let r = self.scoped_at(lanes.label, (v, lanes.depth), &mut |e| {
            out = Some(body(e)?);
            Ok(())
        });
        self.vector = before;
        match name {
            Some(n) => self.named.insert(LANE.to_string(), n),
            None => self.named.remove(LANE),
        };
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
        let count = c.vectors.len().max(1);
        let mut out = None;
        let mut columns = |e: &mut Self| -> R<()> {
            out = Some(match c.vectors.get(u % count) {
                Some(&lanes) => e.lanes_of(lanes, body)?,
                None => body(e)?,
            });
            Ok(())
        };
        match c.rows.as_ref().and_then(|(label, at)| Some((*label, *at.get(u / count)?))) {
            Some((label, at)) => self.scoped_at(label, (at, c.depth), &mut columns)?,
            None => columns(self)?,
        }
        out.ok_or_else(|| internal(self.kernel, "a copy that was not built"))
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
                    results.push(self.at_copy(c, u, &mut |e| e.reduce(s, reducer, *lanes, along, c))?);
                }
            }
        }
        let Some(chunk) = self.chunk.filter(|_| matches!(s.kind, Kind::Contract { .. })) else {
            return self.finish(s, c, results);
        };
        self.when(chunk.last, &mut |e| e.finish(s, c, results.clone()))?;
        let more = self.ir.op(Op::Xor, chunk.last, self.ir.int_like(chunk.last, 1)?)?;
        self.when(more, &mut |e| e.keep_sums(s, c, &results))
    }

    /// Post and stores of results.
    fn finish(&mut self, s: &Stage, c: &Copies<'c>, mut results: Vec<Vec<V<'c>>>) -> R<()> {
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
