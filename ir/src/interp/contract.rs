//! The Contract class as blocked matrix products: labels read by one operand only become rows or columns, labels of
//! both a batch, summed labels the depth; blocks of either operand are packed through its index map.

use super::bound;
use super::classes::{Job, each_of_row, fault};
use super::expr::{float_to_int, int_to_float};
use super::index::{Cond, Offset, Slots, Space};
use super::value::{Buf, Val, check_run, filled, round, strides, wrap};
use crate::class::{Access, Contract};
use crate::diag::Diag;
use crate::types::DType;
use std::borrow::Cow;

/// Rows, columns and depth of a block: the packed columns (512 KiB) stay in a second-level cache.
const ROWS: usize = 64;
const COLS: usize = 512;
const DEPTH: usize = 128;

/// A number products are summed in.
trait Elem: Copy + Default {
    fn madd(self, a: Self, b: Self) -> Self;
    fn read(buf: &Buf, start: usize, stride: i64, out: &mut [Self]);
}

impl Elem for f64 {
    fn madd(self, a: f64, b: f64) -> f64 {
        self + a * b
    }
    fn read(buf: &Buf, start: usize, stride: i64, out: &mut [f64]) {
        buf.read_f(start, stride, out);
    }
}

impl Elem for i64 {
    fn madd(self, a: i64, b: i64) -> i64 {
        self.wrapping_add(a.wrapping_mul(b))
    }
    fn read(buf: &Buf, start: usize, stride: i64, out: &mut [i64]) {
        buf.read_i(start, stride, out);
    }
}

struct Source<'a> {
    buf: &'a Buf,
    off: Offset,
    when: Cond,
}

/// The loop structure, the same for values, magnitudes and errors.
struct Plan {
    labels: usize,
    batch: Space,
    rows: Space,
    cols: Space,
    depth: Space,
    out: Offset,
    offs: [(Offset, Cond); 2],
    /// The operand the rows come from.
    row_operand: usize,
    numel: usize,
}

fn plan(c: &Contract, job: &Job<'_>, shape: &[usize]) -> Result<Plan, Diag> {
    let sizes = job.slots(&[], 0);
    let mut extents = Vec::with_capacity(c.extents.len());
    for d in &c.extents {
        let e = sizes.number(d)?;
        extents.push(usize::try_from(e).map_err(|_| fault(format!("a label has extent {e}")))?);
    }
    let slots = job.slots(&extents, 0);
    let ends: Vec<usize> = c.out.iter().map(|&l| extents.get(l as usize).copied().unwrap_or(0)).collect();
    let all_known = c.out.iter().chain(&c.red).all(|&l| (l as usize) < extents.len());
    if ends != shape || !all_known {
        return Err(fault(format!("a contraction with labels {ends:?} gives a result of shape {shape:?}")));
    }
    let offs =
        [source(&slots, &c.operands[0], job.input(0)?)?, source(&slots, &c.operands[1], job.input(1)?)?];
    let uses = |k: usize, l: u32| offs[k].0.uses(l as usize) || offs[k].1.uses(l as usize);
    let space = |v: &[u32]| Space::of(v.iter().map(|&l| (l as usize, 0, extents[l as usize])));
    let (mut batch, mut only) = (Vec::new(), [Vec::new(), Vec::new()]);
    for &l in &c.out {
        match (uses(0, l), uses(1, l)) {
            (true, true) => batch.push(l),
            (true, false) => only[0].push(l),
            _ => only[1].push(l),
        }
    }
    let (a, b) = (space(&only[0]), space(&only[1]));
    // the longer side runs along the inner loop
    let row_operand = usize::from(a.size() > b.size());
    let (rows, cols) = if row_operand == 0 { (a, b) } else { (b, a) };
    let lin = c.out.iter().zip(strides(shape)).map(|(&l, s)| (l as usize, s as i64));
    let out = Offset::affine(0, lin);
    let (batch, depth) = (space(&batch), space(&c.red));
    Ok(Plan {
        labels: extents.len(),
        batch,
        rows,
        cols,
        depth,
        out,
        offs,
        row_operand,
        numel: shape.iter().product(),
    })
}

fn source(slots: &Slots<'_>, a: &Access, v: &Val) -> Result<(Offset, Cond), Diag> {
    let when = slots.cond(&a.when)?;
    let off = slots.linear(&a.index, &v.shape, !when.always())?;
    Ok((off, when))
}

/// Evaluates a contraction.
pub(crate) fn eval(c: &Contract, job: &Job<'_>) -> Result<Val, Diag> {
    let mut out = job.new_out(0)?;
    let plan = plan(c, job, &out.shape)?;
    let (a, b) = (job.input(0)?, job.input(1)?);
    let (ca, cb) = (convert(a, c.acc)?, convert(b, c.acc)?);
    if c.acc.is_float() {
        let sums = sum::<f64>(&plan, [&ca, &cb])?;
        for (i, &s) in sums.iter().enumerate() {
            put_float(&mut out, i, s);
        }
        if job.bounded {
            out.err = Some(errors(c, &plan, [a, b], &out, &sums)?);
        }
        return Ok(out);
    }
    let sums = sum::<i64>(&plan, [&ca, &cb])?;
    for (i, &s) in sums.iter().enumerate() {
        let s = wrap(c.acc, s);
        if out.dtype.is_float() {
            let r = round(out.dtype, int_to_float(c.acc, out.dtype, s));
            out.buf.write_f(i, 1, &[r]);
        } else {
            out.buf.write_i(i, 1, &[wrap(out.dtype, s)]);
        }
    }
    let unsure = |v: &Val| v.err.as_ref().is_some_and(|e| e.iter().any(|&e| e > 0.0));
    if unsure(a) || unsure(b) {
        out.unbounded();
    }
    Ok(out)
}

fn put_float(out: &mut Val, i: usize, s: f64) {
    if out.dtype.is_float() {
        let r = round(out.dtype, s);
        out.buf.write_f(i, 1, &[r]);
    } else {
        let r = float_to_int(out.dtype, s);
        out.buf.write_i(i, 1, &[r]);
    }
}

/// The operand as the accumulator reads it. Integers stay as they are: sums that wrap at 64 bits wrap to fewer alike.
fn convert(v: &Val, acc: DType) -> Result<Cow<'_, Buf>, Diag> {
    Ok(match (v.dtype.is_float(), acc.is_float()) {
        (true, true) if v.dtype.epsilon() >= acc.epsilon() => Cow::Borrowed(&v.buf),
        (false, false) => Cow::Borrowed(&v.buf),
        (_, true) => {
            let mut x = filled(v.numel(), 0.0)?;
            for (i, o) in x.iter_mut().enumerate() {
                *o = match &v.buf {
                    Buf::Int(b) => round(acc, int_to_float(v.dtype, acc, b[i])),
                    Buf::F32(_) | Buf::F64(_) => round(acc, v.number(i)),
                };
            }
            Cow::Owned(Buf::F64(x))
        }
        (true, false) => {
            Cow::Owned(Buf::Int((0..v.numel()).map(|i| float_to_int(acc, v.number(i))).collect()))
        }
    })
}

/// Bounds: the sum's own from the magnitudes of its terms, and `sum (|a| + da) db + da |b|` from the operands'.
fn errors(c: &Contract, plan: &Plan, ins: [&Val; 2], out: &Val, sums: &[f64]) -> Result<Vec<f64>, Diag> {
    let [a, b] = ins;
    let (abs_a, abs_b) = (a.magnitudes(), b.magnitudes());
    let terms = sum::<f64>(plan, [&abs_a, &abs_b])?;
    let mut prop = filled(terms.len(), 0.0)?;
    let mut add = |x: &Buf, y: &Buf| -> Result<(), Diag> {
        for (p, s) in prop.iter_mut().zip(sum::<f64>(plan, [x, y])?) {
            *p += s;
        }
        Ok(())
    };
    if let Some(db) = &b.err {
        let reach = Buf::F64((0..a.numel()).map(|i| a.number(i).abs() + a.error(i)).collect());
        add(&reach, &Buf::F64(db.clone()))?;
    }
    if let Some(da) = &a.err {
        add(&Buf::F64(da.clone()), &abs_b)?;
    }
    let counts = term_counts(plan, ins)?;
    let k = |i: usize| counts.get(i).map_or(plan.depth.size(), |&c| c as usize);
    let one = |(i, &s): (usize, &f64)| bound::sum(k(i), c.acc, out.dtype, s, terms[i], prop[i]);
    Ok(sums.iter().enumerate().map(one).collect())
}

/// Number of terms of each sum that are not zero (adding a zero rounds nothing); empty when all may be.
fn term_counts(plan: &Plan, ins: [&Val; 2]) -> Result<Vec<f64>, Diag> {
    let sparse = |v: &Val| (0..v.numel()).any(|i| v.number(i) == 0.0 && v.error(i) == 0.0);
    let padded = plan.offs.iter().any(|o| !o.1.always());
    if !padded && !ins.iter().any(|v| sparse(v)) {
        return Ok(Vec::new());
    }
    let ones = |v: &Val| {
        let count = |i| f64::from(u8::from(v.number(i) != 0.0 || v.error(i) != 0.0));
        Buf::F64((0..v.numel()).map(count).collect())
    };
    sum::<f64>(plan, [&ones(ins[0]), &ones(ins[1])])
}

/// The sums of products, in row-major order of the result.
fn sum<T: Elem>(plan: &Plan, bufs: [&Buf; 2]) -> Result<Vec<T>, Diag> {
    let src = |k: usize| Source { buf: bufs[k], off: plan.offs[k].0.clone(), when: plan.offs[k].1.clone() };
    let (left, right) = (src(plan.row_operand), src(1 - plan.row_operand));
    let mut out = filled(plan.numel, T::default())?;
    let (m, n, k) = (plan.rows.size(), plan.cols.size(), plan.depth.size());
    let mut at = vec![0i64; plan.labels];
    let (rows, cols, depth) = (ROWS.min(m), COLS.min(n), DEPTH.min(k));
    let mut a = vec![T::default(); rows * depth];
    let mut b = vec![T::default(); depth * cols];
    let mut acc = vec![T::default(); rows * cols];
    for g in 0..if plan.numel == 0 { 0 } else { plan.batch.size() } {
        for m0 in (0..m).step_by(ROWS) {
            let mr = ROWS.min(m - m0);
            for n0 in (0..n).step_by(COLS) {
                let nr = COLS.min(n - n0);
                acc[..mr * cols].fill(T::default());
                for k0 in (0..k).step_by(DEPTH) {
                    let kr = DEPTH.min(k - k0);
                    plan.batch.seek(g, &mut at);
                    pack(&left, (&plan.rows, m0, mr), (&plan.depth, k0, kr), &mut at, &mut a, depth)?;
                    pack(&right, (&plan.depth, k0, kr), (&plan.cols, n0, nr), &mut at, &mut b, cols)?;
                    multiply((&a, depth), (&b, cols), (&mut acc, cols), (mr, kr, nr));
                }
                plan.batch.seek(g, &mut at);
                write(plan, (m0, mr), (n0, nr), &mut at, (&acc, cols), &mut out)?;
            }
        }
    }
    Ok(out)
}

/// Packs a block of an operand: `outer` points by rows of `inner` points, `pitch` apart; unread positions are zero.
fn pack<T: Elem>(
    src: &Source<'_>,
    (outer, o0, on): (&Space, usize, usize),
    (inner, i0, n): (&Space, usize, usize),
    at: &mut [i64],
    to: &mut [T],
    pitch: usize,
) -> Result<(), Diag> {
    let slot = inner.inner();
    let stride = src.off.stride(slot);
    let total = src.buf.len();
    let plain = src.when.always();
    for r in 0..on {
        outer.seek(o0 + r, at);
        let line = &mut to[r * pitch..r * pitch + n];
        if !plain {
            line.fill(T::default());
        }
        inner.walk(at, i0, n, |at, pos, len| {
            let line = &mut line[pos..pos + len];
            src.when.runs(at, slot, len, |at, range| {
                let (first, n) = (range.start, range.len());
                if let Some(stride) = stride {
                    let start = check_run(src.off.at(at) + stride * first as i64, stride, n, total)?;
                    T::read(src.buf, start, stride, &mut line[range]);
                    return Ok(());
                }
                each_of_row(at, slot, first + n, |at, k| {
                    if k >= first {
                        let start = check_run(src.off.at(at), 0, 1, total)?;
                        T::read(src.buf, start, 0, &mut line[k..k + 1]);
                    }
                    Ok(())
                })
            })
        })?;
    }
    Ok(())
}

/// `c += a * b` on packed blocks, two rows and four depths at a time so that loads are shared.
fn multiply<T: Elem>(
    (a, ap): (&[T], usize),
    (b, bp): (&[T], usize),
    (c, cp): (&mut [T], usize),
    (m, k, n): (usize, usize, usize),
) {
    let row = |p: usize| &b[p * bp..p * bp + n];
    let whole = k - k % 4;
    let mut i = 0;
    while i < m {
        let pair = i + 1 < m;
        let rows = &mut c[i * cp..];
        let end = cp.min(rows.len());
        let (c0, rest) = rows.split_at_mut(end);
        let c0 = &mut c0[..n];
        let a0 = &a[i * ap..i * ap + k];
        if pair {
            let c1 = &mut rest[..n];
            let a1 = &a[(i + 1) * ap..(i + 1) * ap + k];
            for p in (0..whole).step_by(4) {
                let (b0, b1, b2, b3) = (row(p), row(p + 1), row(p + 2), row(p + 3));
                let (x, y) =
                    ([a0[p], a0[p + 1], a0[p + 2], a0[p + 3]], [a1[p], a1[p + 1], a1[p + 2], a1[p + 3]]);
                for j in 0..n {
                    let (q, r, s, t) = (b0[j], b1[j], b2[j], b3[j]);
                    c0[j] = c0[j].madd(x[0], q).madd(x[1], r).madd(x[2], s).madd(x[3], t);
                    c1[j] = c1[j].madd(y[0], q).madd(y[1], r).madd(y[2], s).madd(y[3], t);
                }
            }
            for p in whole..k {
                let (q, x, y) = (row(p), a0[p], a1[p]);
                for j in 0..n {
                    c0[j] = c0[j].madd(x, q[j]);
                    c1[j] = c1[j].madd(y, q[j]);
                }
            }
        } else {
            for (p, &x) in a0.iter().enumerate() {
                for (c, &q) in c0.iter_mut().zip(row(p)) {
                    *c = c.madd(x, q);
                }
            }
        }
        i += 2;
    }
}

fn write<T: Elem>(
    plan: &Plan,
    (m0, mr): (usize, usize),
    (n0, nr): (usize, usize),
    at: &mut [i64],
    (acc, pitch): (&[T], usize),
    out: &mut [T],
) -> Result<(), Diag> {
    let step = plan.out.stride(plan.cols.inner()).unwrap_or(0);
    for r in 0..mr {
        plan.rows.seek(m0 + r, at);
        plan.cols.walk(at, n0, nr, |at, pos, len| {
            let start = check_run(plan.out.at(at), step, len, out.len())?;
            for (k, &v) in acc[r * pitch + pos..r * pitch + pos + len].iter().enumerate() {
                out[(start as i64 + step * k as i64) as usize] = v;
            }
            Ok(())
        })?;
    }
    Ok(())
}
