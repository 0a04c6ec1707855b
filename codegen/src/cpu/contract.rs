//! Sums of products: one chain of multiply-adds for each output in the normative order, cut into chunks. Several vectors
//! of outputs run side by side, each with its own chain, so that bits do not depend on how many.

use super::build::{Emitter, Op, R, V, known};
use super::emit::Emit;
use super::internal;
use super::stage::{Axis, Copies};
use crate::kernel::{Buf, Mode, Stage};
use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use tgc_ir::types::{Atom, DType, Dim, Pred};

/// Names of the first and the last row of a block in conditions.
const FIRST_ROW: &str = "%row first";
const LAST_ROW: &str = "%row last";

/// Products of a sum up to which a block is built twice, with and without conditions for padding.
const SHORT: i64 = 64;

/// Dims that are all at least 0 only if the condition holds for all steps of the sum and all rows of the block.
fn least_margins(s: &Stage, c: &Copies<'_>, p: &Pred) -> Option<Vec<Dim>> {
    let tests = match p {
        Pred::And(v) => v.to_vec(),
        p => vec![p.clone()],
    };
    let mut out = Vec::new();
    for t in tests {
        let Pred::Le(x, y) = t else { return None };
        let mut margin = y - x;
        for (label, extent) in &s.red {
            let (step, rest) = margin.affine(*label)?;
            let (step, last) = (step.as_const()?, extent.as_const()? - 1);
            margin = rest + Dim::from(step.checked_mul(last)?.min(0));
        }
        if let Some((label, _)) = &c.rows {
            let (step, rest) = margin.affine(*label)?;
            let step = step.as_const()?;
            let row = if step >= 0 { FIRST_ROW } else { LAST_ROW };
            margin = rest + Dim::from(step) * Dim::sym(row);
        }
        if c.vectors.iter().any(|v| margin.any_leaf(|a| *a == Atom::Label(v.label))) {
            return None;
        }
        out.push(margin);
    }
    Some(out)
}

/// Steps of a sum that follow each other without a branch.
const STEPS: i64 = 8;
/// Bytes of a line of the cache.
const LINE: i64 = 64;

/// Lines of a packed operand to ask for ahead of time.
struct Ahead<'c> {
    arg: u32,
    /// The element one panel further.
    flat: Dim,
    /// Elements to skip.
    skip: V<'c>,
    /// Lines.
    each: i64,
    /// First position of the vectors, and the loop depth at which it is known.
    lane: (V<'c>, u32),
}

/// Stack slots of one chain; they become registers.
struct Chain<'c> {
    part: PointerValue<'c>,
    total: PointerValue<'c>,
}

impl<'c> Emit<'c, '_> {
    /// The accumulators of the points of `c`.
    pub(super) fn contract(&mut self, s: &Stage, chunk: u32, c: &Copies<'c>) -> R<Vec<V<'c>>> {
        let &[root, _] = &s.expr.roots[..] else {
            return Err(internal(self.kernel, "a contraction of other than two operands"));
        };
        let dtype = s.expr.dtype(root);
        let t = self.ir.widen(self.reg(dtype)?, c.width);
        let zero = self.ir.splat(self.acc_constant(dtype, 0.0)?, c.width)?;
        // Adding the first chunk's sum to -0 gives that sum to the bit.
        let start = self.ir.splat(self.acc_constant(dtype, -0.0)?, c.width)?;
        let mut chains = Vec::new();
        for _ in 0..c.count() {
            let chain = Chain { part: self.ir.slot(t)?, total: self.ir.slot(t)? };
            self.ir.b.build_store(chain.part, zero)?;
            self.ir.b.build_store(chain.total, start)?;
            chains.push(chain);
        }
        let mut axes: Vec<Axis<'c>> = Vec::new();
        for (label, extent) in &s.red {
            axes.push((*label, self.ir.i64(0), self.extent(extent)?));
        }
        let chunk = i64::from(chunk.max(1));
        if let (Some(chunk), Some(first)) = (self.chunk, axes.first_mut()) {
            (first.1, first.2) = (chunk.from, chunk.len);
        }
        let all: Option<i64> = axes.iter().try_fold(1i64, |p, a| p.checked_mul(known(a.2)?));
        let innermost = axes.last().and_then(|a| Some((a.0, known(a.2)?)));
        let before = std::mem::replace(&mut self.innermost, innermost);
        let mut body = |e: &mut Self| e.multiply_add(s, c, &chains, dtype);
        let short = all.is_some_and(|n| n <= SHORT.min(chunk));
        if let Some(inside) = if short { self.all_inside(s, c)? } else { None } {
            let outside = self.ir.op(Op::Xor, inside, self.ir.int_like(inside, 1)?)?;
            self.when(inside, &mut |e| {
                e.inside = true;
                let r = e.loops(&axes, &mut |e| e.multiply_add(s, c, &chains, dtype));
                e.inside = false;
                r
            })?;
            self.when(outside, &mut |e| e.loops(&axes, &mut |e| e.multiply_add(s, c, &chains, dtype)))?;
        } else if all.is_some_and(|n| n <= chunk) || self.chunk.is_some() {
            self.sum(s, c, &axes, &mut body)?;
        } else {
            self.chunks(&axes, chunk, &chains, zero, dtype, &mut body)?;
        }
        self.innermost = before;
        if let Some(chunk) = self.chunk {
            let more = self.ir.op(Op::Xor, chunk.first, self.ir.int_like(chunk.first, 1)?)?;
            self.when(more, &mut |e| {
                for (u, chain) in chains.iter().enumerate() {
                    let p = e.kept(s, c, u)?;
                    let v = e.ir.load(t, p, dtype.size() as u32)?;
                    e.ir.b.build_store(chain.total, v)?;
                }
                Ok(())
            })?;
        }
        let mut out = Vec::new();
        for chain in &chains {
            self.flush(chain, t, dtype)?;
            out.push(self.ir.b.build_load(t, chain.total, "")?);
        }
        Ok(out)
    }

    /// A condition under which no read of the copies' sums is filled; None where it is not found or nothing is filled.
    fn all_inside(&mut self, s: &Stage, c: &Copies<'c>) -> R<Option<V<'c>>> {
        let mut margins = Vec::new();
        for l in &s.loads {
            let Mode::Fill(p, _) = &l.mode else { continue };
            match least_margins(s, c, p) {
                Some(m) => margins.extend(m),
                None => return Ok(None),
            }
        }
        if margins.is_empty() {
            return Ok(None);
        }
        if let Some((_, at)) = &c.rows
            && let (Some(&first), Some(&last)) = (at.first(), at.last())
        {
            self.named.insert(FIRST_ROW.to_string(), (first, c.depth));
            self.named.insert(LAST_ROW.to_string(), (last, c.depth));
        }
        let mut all: V<'c> = self.ir.ctx.bool_type().const_int(1, false).into();
        for m in margins {
            let m = self.dim(&m)?;
            let ok = self.ir.icmp(IntPredicate::SGE, m, self.ir.i64(0))?;
            all = self.ir.op(Op::And, all, ok)?;
        }
        Ok(Some(all))
    }

    /// Where the sum of copy `u` is kept between chunks.
    fn kept(&self, s: &Stage, c: &Copies<'c>, u: usize) -> R<PointerValue<'c>> {
        let missing = || internal(self.kernel, "a sum of chunks that has no place");
        let (chunk, sums) = (self.chunk.ok_or_else(missing)?, self.sums.ok_or_else(missing)?);
        let count = c.vectors.len().max(1);
        let (row, rows) =
            c.rows.as_ref().and_then(|r| Some((r.0, *r.1.get(u / count)?))).ok_or_else(missing)?;
        let lanes = c.vectors.get(u % count).ok_or_else(missing)?;
        let low = |label: u32| self.tile.get(label as usize).map(|t| t.0).ok_or_else(missing);
        let row = self.ir.op(Op::Sub, rows, low(row)?)?;
        let column = self.ir.op(Op::Sub, lanes.base, low(lanes.label)?)?;
        let at = self.ir.op(Op::Mul, row, self.ir.i64(i64::from(chunk.plan.columns)))?;
        let at = self.ir.op(Op::Add, at, column)?;
        let &[root, _] = &s.expr.roots[..] else { return Err(missing()) };
        self.ir.at(self.reg(s.expr.dtype(root))?, sums, at)
    }

    /// Keeps the sums so far for the next chunk.
    pub(super) fn keep_sums(&mut self, s: &Stage, c: &Copies<'c>, results: &[Vec<V<'c>>]) -> R<()> {
        let size = s.expr.roots.first().map_or(4, |r| s.expr.dtype(*r).size());
        for (u, r) in results.iter().enumerate() {
            let Some(&v) = r.first() else { continue };
            let p = self.kept(s, c, u)?;
            self.ir.store(p, v, size as u32)?;
        }
        Ok(())
    }

    /// Runs `body` over the axes. In whole register blocks several steps of the innermost one follow each other without a
    /// branch, and a packed operand's next panel is asked for ahead of time.
    fn sum(
        &mut self,
        s: &Stage,
        c: &Copies<'c>,
        axes: &[Axis<'c>],
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        let (Some((block, blocks)), Some((&(label, lo, len), outer))) = (self.row_block, axes.split_last())
        else {
            return self.loops(axes, body);
        };
        let Some(ahead) = self.next_panel(s, c, block, blocks)? else { return self.loops(axes, body) };
        self.loops(outer, &mut |e| {
            e.blocks(lo, len, &[STEPS, 1], &mut |e, first, size| {
                if size > 1 {
                    e.scoped(label, first, &mut |e| e.prefetch(&ahead))?;
                }
                for i in 0..size {
                    let at = if i == 0 { first } else { e.ir.op(Op::Add, first, e.ir.i64(i))? };
                    e.scoped(label, at, body)?;
                }
                Ok(())
            })?;
            Ok(())
        })
    }

    /// What to ask for ahead of [`STEPS`] steps: every row block asks for some of the lines that lie one panel further, so
    /// that all of them together ask for the whole panel.
    fn next_panel(&mut self, s: &Stage, c: &Copies<'c>, block: V<'c>, blocks: i64) -> R<Option<Ahead<'c>>> {
        let Some(lanes) = c.vectors.first() else { return Ok(None) };
        let packed = s.loads.iter().find_map(|l| {
            let Buf::Arg(i) = l.from else { return None };
            let a = self.kernel.args.get(i as usize)?;
            let p = a.packed.as_ref()?;
            (l.index.get(p.axis as usize) == Some(&Dim::label(lanes.label))).then_some((i, l, a, p))
        });
        let Some((arg, load, a, p)) = packed else { return Ok(None) };
        let at_lane =
            |d: &Dim| d.subst(&|x| (*x == Atom::Label(lanes.label)).then(|| Dim::sym(super::emit::LANE)));
        let here: Vec<Dim> = load.index.iter().map(at_lane).collect();
        let mut next = here.clone();
        if let Some(d) = next.get_mut(p.axis as usize) {
            *d = d.clone() + Dim::from(i64::from(p.width));
        }
        let flat = p.flat(&next, &a.dims);
        let lines = (STEPS * i64::from(p.width) * a.dtype.size() as i64 / LINE).max(1);
        let each = (lines + blocks - 1) / blocks;
        let first = self.ir.op(Op::Mul, block, self.ir.i64(each))?;
        let first = self.ir.op(Op::URem, first, self.ir.i64(lines))?;
        let skip = self.ir.op(Op::Mul, first, self.ir.i64(LINE / a.dtype.size() as i64))?;
        Ok(Some(Ahead { arg, flat, skip, each, lane: (lanes.base, lanes.depth) }))
    }

    fn prefetch(&mut self, ahead: &Ahead<'c>) -> R<()> {
        let (dtype, Some(&base)) =
            (self.kernel.dtype(Buf::Arg(ahead.arg)), self.args.get(ahead.arg as usize))
        else {
            return Err(internal(self.kernel, "a panel of an argument that is not there"));
        };
        let name = self.named.insert(super::emit::LANE.to_string(), ahead.lane);
        let at = self.dim(&ahead.flat);
        match name {
            Some(n) => self.named.insert(super::emit::LANE.to_string(), n),
            None => self.named.remove(super::emit::LANE),
        };
        let at = self.ir.op(Op::Add, at?, ahead.skip)?;
        let elem = self.reg(dtype)?;
        for i in 0..ahead.each {
            let at = self.ir.op(Op::Add, at, self.ir.i64(i * LINE / dtype.size() as i64))?;
            let p = self.ir.at(elem, base, at)?;
            self.ir.prefetch(p)?;
        }
        Ok(())
    }

    fn acc_constant(&self, dtype: DType, v: f64) -> R<V<'c>> {
        self.constant(tgc_ir::scalar::Scalar::from_f64(dtype, v))
    }

    fn multiply_add(&mut self, s: &Stage, c: &Copies<'c>, chains: &[Chain<'c>], dtype: DType) -> R<()> {
        for (u, chain) in chains.iter().enumerate() {
            let roots = self.at_copy(c, u, &mut |e| e.roots(s))?;
            let &[a, b] = &roots[..] else {
                return Err(internal(self.kernel, "a product of other than two"));
            };
            let t = self.ir.widen(self.reg(dtype)?, c.width);
            let acc = self.ir.b.build_load(t, chain.part, "")?;
            let acc = self.fma(a, b, acc, dtype)?;
            self.ir.b.build_store(chain.part, self.ir.splat(acc, c.width)?)?;
        }
        Ok(())
    }

    /// Adds the chunk's sum to the total.
    fn flush(&mut self, chain: &Chain<'c>, t: super::build::T<'c>, dtype: DType) -> R<()> {
        let (total, part) =
            (self.ir.b.build_load(t, chain.total, "")?, self.ir.b.build_load(t, chain.part, "")?);
        let sum = self.ir.op(if dtype.is_float() { Op::FAdd } else { Op::Add }, total, part)?;
        self.ir.b.build_store(chain.total, sum)?;
        Ok(())
    }

    /// Runs `body` over the axes, adding up whenever `chunk` positions have been taken and more come. The cut is made at the
    /// outermost label whose steps divide a chunk.
    fn chunks(
        &mut self,
        axes: &[Axis<'c>],
        chunk: i64,
        chains: &[Chain<'c>],
        zero: V<'c>,
        dtype: DType,
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        let (mut cut, mut step) = (axes.len().saturating_sub(1), 1i64);
        while cut > 0 {
            match axes.get(cut).and_then(|a| known(a.2)).and_then(|n| step.checked_mul(n)) {
                Some(n) if n > 0 && chunk % n == 0 => (cut, step) = (cut - 1, n),
                _ => break,
            }
        }
        let Some(&(label, _, len)) = axes.get(cut) else { return body(self) };
        let (outer, inner) = (axes[..cut].to_vec(), axes[cut + 1..].to_vec());
        let i64t = self.ir.i64t();
        let count = self.ir.slot(i64t.into())?;
        self.ir.b.build_store(count, self.ir.i64(0))?;
        let at = self.ir.slot(i64t.into())?;
        self.loops(&outer, &mut |e| {
            e.ir.b.build_store(at, e.ir.i64(0))?;
            let (head, run, exit) = (e.ir.block(), e.ir.block(), e.ir.block());
            e.ir.b.build_unconditional_branch(head)?;
            e.ir.b.position_at_end(head);
            let from = e.ir.b.build_load(i64t, at, "")?;
            let more = e.ir.icmp(IntPredicate::SLT, from, len)?;
            e.ir.branch(more, run, exit)?;
            e.ir.b.position_at_end(run);
            let done = e.ir.b.build_load(i64t, count, "")?;
            let full = e.ir.icmp(IntPredicate::EQ, done, e.ir.i64(chunk))?;
            e.when(full, &mut |e| {
                for chain in chains {
                    e.flush(chain, zero.get_type(), dtype)?;
                    e.ir.b.build_store(chain.part, zero)?;
                }
                e.ir.b.build_store(count, e.ir.i64(0))?;
                Ok(())
            })?;
            let done = e.ir.b.build_load(i64t, count, "")?;
            let room = e.ir.op(Op::Sub, e.ir.i64(chunk), done)?;
            let room = e.ir.op(Op::UDiv, room, e.ir.i64(step))?;
            let left = e.ir.op(Op::Sub, len, from)?;
            let n = e.ir.smin(left, room)?;
            let to = e.ir.op(Op::Add, from, n)?;
            e.each(from, to, 1, &mut |e, i| e.scoped(label, i, &mut |e| e.loops(&inner, body)))?;
            e.ir.b.build_store(at, to)?;
            let taken = e.ir.op(Op::Mul, n, e.ir.i64(step))?;
            let done = e.ir.op(Op::Add, done, taken)?;
            e.ir.b.build_store(count, done)?;
            e.ir.b.build_unconditional_branch(head)?;
            e.ir.b.position_at_end(exit);
            Ok(())
        })
    }
}
