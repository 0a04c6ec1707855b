//! Sums of products: one chain of multiply-adds for each output in the normative order, cut into chunks. Several vectors
//! of outputs run side by side, each with its own chain, so that bits do not depend on how many.

use super::build::{Emitter, Op, R, V, known};
use super::emit::Emit;
use super::internal;
use super::stage::{Axis, Copies};
use crate::kernel::{Buf, Mode, Stage};
use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use tgc_ir::types::{Atom, DType, Dim};

/// Products of a sum, and steps of its innermost label in a whole register block, up to which a block is built twice, with and
/// without conditions for padding: beside more products than these the conditions are nothing.
pub(super) const SHORT: i64 = 64;
const INNER: i64 = 256;

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

/// How a sum is cut: a chain's part is added to its total after every `chunk` positions, and begins anew at `zero`.
struct Cut<'a, 'c> {
    chunk: i64,
    chains: &'a [Chain<'c>],
    zero: V<'c>,
    dtype: DType,
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
        let cut = Cut { chunk, chains: &chains, zero, dtype };
        let whole = all.is_some_and(|n| n <= chunk) || self.chunk.is_some();
        let worth = all.is_some_and(|n| n <= SHORT.min(chunk))
            || self.row_block.is_some() && innermost.is_some_and(|(_, n)| n <= INNER);
        let inside = if worth { self.all_inside(s, c)? } else { None };
        self.with_and_without_padding(s, inside, &mut |e| {
            if whole { e.sum(s, c, &axes, &mut body) } else { e.chunks(s, c, &axes, &cut, &mut body) }
        })?;
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

    /// Runs `body` over the axes, the innermost in [`Emit::steps`].
    fn sum(
        &mut self,
        s: &Stage,
        c: &Copies<'c>,
        axes: &[Axis<'c>],
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        let Some((&inner, outer)) = axes.split_last() else { return body(self) };
        let ahead = self.next_panel(s, c)?;
        self.loops(outer, &mut |e| e.steps(s, inner, ahead.as_ref(), body))
    }

    /// Runs `body` over the innermost label of a sum. In whole register blocks several steps follow each other without a
    /// branch, and a packed operand's next panel is asked for ahead of time.
    fn steps(
        &mut self,
        s: &Stage,
        (label, lo, len): Axis<'c>,
        ahead: Option<&Ahead<'c>>,
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        if self.row_block.is_none() || !(ahead.is_some() || self.plain(s)) {
            return self.loops(&[(label, lo, len)], body);
        }
        self.blocks(lo, len, &[STEPS, 1], &mut |e, first, size| {
            if let Some(ahead) = ahead.filter(|_| size > 1) {
                e.scoped(label, first, &mut |e| e.prefetch(ahead))?;
            }
            for i in 0..size {
                let at = if i == 0 { first } else { e.ir.op(Op::Add, first, e.ir.i64(i))? };
                e.scoped(label, at, body)?;
            }
            Ok(())
        })?;
        Ok(())
    }

    /// True if no read has a condition where code is being built.
    fn plain(&self, s: &Stage) -> bool {
        s.loads.iter().all(|l| match l.mode {
            Mode::Proved => true,
            Mode::Fill(..) => self.inside.is_some(),
            Mode::Trap(..) => false,
        })
    }

    /// What to ask for ahead of [`STEPS`] steps: every row block asks for some of the lines that lie one panel further, so
    /// that all of them together ask for the whole panel.
    fn next_panel(&mut self, s: &Stage, c: &Copies<'c>) -> R<Option<Ahead<'c>>> {
        let Some(((block, blocks), lanes)) = self.row_block.zip(c.vectors.first()) else { return Ok(None) };
        let packed = s.loads.iter().find_map(|l| {
            let Buf::Arg(i) = l.from else { return None };
            let a = self.kernel.args.get(i as usize)?;
            let p = a.packed.as_ref()?;
            // An operand of the sum that all rows share: weights of the epilogue are read once, at the end.
            let reads = |label: u32| l.index.iter().any(|d| d.any_leaf(|x| *x == Atom::Label(label)));
            let summed = s.red.iter().any(|r| reads(r.0)) && !c.rows.as_ref().is_some_and(|r| reads(r.0));
            let along = l.index.get(p.axis as usize) == Some(&Dim::label(lanes.label));
            (along && summed).then_some((i, l, a, p))
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
        s: &Stage,
        c: &Copies<'c>,
        axes: &[Axis<'c>],
        &Cut { chunk, chains, zero, dtype }: &Cut<'_, 'c>,
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
        let ahead = self.next_panel(s, c)?;
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
            if inner.is_empty() {
                e.steps(s, (label, from, n), ahead.as_ref(), body)?;
            } else {
                e.each(from, to, 1, &mut |e, i| e.scoped(label, i, &mut |e| e.sum(s, c, &inner, body)))?;
            }
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
