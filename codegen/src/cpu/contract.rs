//! Sums of products: one chain of multiply-adds for each output in the normative order, cut into chunks. Several vectors
//! of outputs run side by side, each with its own chain, so that bits do not depend on how many.

use super::build::{Emitter, Op, R, V, known};
use super::emit::Emit;
use super::internal;
use super::stage::{Axis, Copies};
use crate::kernel::Stage;
use inkwell::IntPredicate;
use inkwell::values::PointerValue;
use tgc_ir::types::DType;

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
        let all: Option<i64> = axes.iter().try_fold(1i64, |p, a| p.checked_mul(known(a.2)?));
        let innermost = axes.last().and_then(|a| Some((a.0, known(a.2)?)));
        let before = std::mem::replace(&mut self.innermost, innermost);
        let mut body = |e: &mut Self| e.multiply_add(s, c, &chains, dtype);
        if all.is_some_and(|n| n <= chunk) {
            self.loops(&axes, &mut body)?;
        } else {
            self.chunks(&axes, chunk, &chains, zero, dtype, &mut body)?;
        }
        self.innermost = before;
        let mut out = Vec::new();
        for chain in &chains {
            self.flush(chain, t, dtype)?;
            out.push(self.ir.b.build_load(t, chain.total, "")?);
        }
        Ok(out)
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
