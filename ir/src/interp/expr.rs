//! Scalar programs over blocks of elements: each node is one loop over a block, with the semantics of `scalar`. Where
//! the elements come from is the caller's business (a [`Feed`]).

use super::bound;
use super::index::{Offset, Slots};
use super::value::{held, round, wide, wrap};
use crate::diag::Diag;
use crate::scalar::{Bin, ENode, Expr, Scalar, Un, float_bin, float_un, int_bin};
use crate::types::DType;

/// Elements evaluated at a time: a register of f64 is 4 KiB, so a few dozen nodes stay in a second-level cache.
pub(crate) const BLOCK: usize = 512;

/// The values of one node over a block: `f` for float types, else `i`; `e` holds error bounds in bounded runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reg {
    pub(crate) f: Vec<f64>,
    pub(crate) i: Vec<i64>,
    pub(crate) e: Vec<f64>,
}

/// Supplies a program's leaves, a block at a time.
pub(crate) trait Feed {
    /// Fills the first `n` elements with those of input `arg`.
    fn arg(&mut self, arg: u32, reg: &mut Reg, n: usize) -> Result<(), Diag>;
    /// Fills `out` with the values of a dim.
    fn dim(&mut self, dim: &Offset, out: &mut [i64]) -> Result<(), Diag>;
}

/// When float nodes are rounded to their type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// After every node.
    EachNode,
    /// Never: accumulation in f64. Bounds then count a rounding at every inexact node.
    Never,
}

/// A program with its registers.
pub(crate) struct Prog<'e> {
    expr: &'e Expr,
    dims: Vec<Option<Offset>>,
    regs: Vec<Reg>,
    rounding: Rounding,
    bounded: bool,
}

impl Reg {
    /// A register for values of a type.
    pub(crate) fn new(d: DType, bounded: bool) -> Reg {
        let mut r = Reg::default();
        if d.is_float() {
            r.f = vec![0.0; BLOCK];
        } else {
            r.i = vec![0; BLOCK];
        }
        if bounded {
            r.e = vec![0.0; BLOCK];
        }
        r
    }

    /// Fills the first `n` elements with an exact value.
    pub(crate) fn fill(&mut self, s: Scalar, n: usize) {
        if self.f.is_empty() {
            self.i[..n].fill(held(s));
        } else {
            self.f[..n].fill(s.as_f64());
        }
        self.exact(n);
    }

    /// Declares the first `n` elements exact.
    pub(crate) fn exact(&mut self, n: usize) {
        if !self.e.is_empty() {
            self.e[..n].fill(0.0);
        }
    }

    /// Copies the first `n` elements of a register of the same kind.
    pub(crate) fn copy(&mut self, from: &Reg, n: usize) {
        if self.f.is_empty() {
            self.i[..n].copy_from_slice(&from.i[..n]);
        } else {
            self.f[..n].copy_from_slice(&from.f[..n]);
        }
        if !self.e.is_empty() {
            self.e[..n].copy_from_slice(&from.e[..n]);
        }
    }

    fn number(&self, d: DType, j: usize) -> f64 {
        if self.f.is_empty() { wide(d, self.i[j]) as f64 } else { self.f[j] }
    }

    fn error(&self, j: usize) -> f64 {
        self.e.get(j).copied().unwrap_or(0.0)
    }
}

impl<'e> Prog<'e> {
    /// Prepares a program; dims are resolved against `slots`.
    pub(crate) fn new(
        expr: &'e Expr,
        slots: &Slots<'_>,
        rounding: Rounding,
        bounded: bool,
    ) -> Result<Prog<'e>, Diag> {
        let mut dims = Vec::with_capacity(expr.nodes.len());
        let mut regs = Vec::with_capacity(expr.nodes.len());
        for (node, dtype) in &expr.nodes {
            dims.push(if let ENode::Dim(d) = node { Some(slots.offset(d)?) } else { None });
            let mut reg = Reg::new(*dtype, bounded);
            if let ENode::Const(s) = node {
                reg.fill(*s, BLOCK);
            }
            if let ENode::Cast(a) = node {
                let from = expr.dtype(*a);
                if let Some(d) = [from, *dtype].into_iter().find(|d| d.is_storage_only() && !is_small_int(*d))
                {
                    let msg = format!(
                        "conversion from {from} to {dtype} is not supported: {d} has no arithmetic here yet"
                    );
                    return Err(Diag::error("E-RUN-014", msg)
                        .help("convert this part of the model to f32, f16 or bf16"));
                }
            }
            regs.push(reg);
        }
        Ok(Prog { expr, dims, regs, rounding, bounded })
    }

    /// Evaluates a block of `n` elements.
    pub(crate) fn run(&mut self, n: usize, feed: &mut dyn Feed) -> Result<(), Diag> {
        for at in 0..self.expr.nodes.len() {
            let (done, rest) = self.regs.split_at_mut(at);
            let out = &mut rest[0];
            let (node, dtype) = &self.expr.nodes[at];
            let reg = |i: u32| &done[i as usize];
            match node {
                ENode::Arg(i) => feed.arg(*i, out, n)?,
                ENode::Const(_) => {}
                ENode::Dim(_) => {
                    if let Some(d) = &self.dims[at] {
                        feed.dim(d, &mut out.i[..n])?;
                    }
                    out.exact(n);
                }
                ENode::Un(op, a) => un(*op, self.expr.dtype(*a), reg(*a), out, n),
                ENode::Bin(op, a, b) => bin(*op, self.expr.dtype(*a), reg(*a), reg(*b), out, n),
                ENode::Fma(a, b, c) => fma(*dtype, [reg(*a), reg(*b), reg(*c)], out, n),
                ENode::Select(c, a, b) => select(reg(*c), reg(*a), reg(*b), out, n),
                ENode::Cast(a) => cast(self.expr.dtype(*a), *dtype, reg(*a), out, n),
                ENode::Bitcast(a) => bitcast(self.expr.dtype(*a), *dtype, reg(*a), out, n),
            }
            if self.rounding == Rounding::EachNode && dtype.is_float() && may_round(node) {
                out.f[..n].iter_mut().for_each(|x| *x = round(*dtype, *x));
            }
            if self.bounded {
                errors(self.expr, at, self.rounding, done, out, n);
            }
        }
        Ok(())
    }

    /// The register of result `r`.
    pub(crate) fn root(&self, r: usize) -> &Reg {
        &self.regs[self.expr.roots[r] as usize]
    }

    /// Type of result `r`.
    pub(crate) fn root_type(&self, r: usize) -> DType {
        self.expr.dtype(self.expr.roots[r])
    }
}

fn is_small_int(d: DType) -> bool {
    matches!(d, DType::I4 | DType::I2 | DType::U4 | DType::U2)
}

/// False for nodes whose result is a value of the type already.
fn may_round(n: &ENode) -> bool {
    match n {
        ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) | ENode::Select(..) | ENode::Bitcast(_) => false,
        ENode::Un(Un::Neg | Un::Abs, _) | ENode::Bin(Bin::Min | Bin::Max, ..) => false,
        ENode::Un(..) | ENode::Bin(..) | ENode::Fma(..) | ENode::Cast(_) => true,
    }
}

fn each<T: Copy, U>(a: &[T], out: &mut [U], n: usize, f: impl Fn(T) -> U) {
    for (o, &x) in out[..n].iter_mut().zip(&a[..n]) {
        *o = f(x);
    }
}

fn pair<T: Copy, U>(a: &[T], b: &[T], out: &mut [U], n: usize, f: impl Fn(T, T) -> U) {
    for ((o, &x), &y) in out[..n].iter_mut().zip(&a[..n]).zip(&b[..n]) {
        *o = f(x, y);
    }
}

fn un(op: Un, d: DType, a: &Reg, out: &mut Reg, n: usize) {
    if d.is_float() {
        match op {
            Un::Neg => each(&a.f, &mut out.f, n, |x| -x),
            Un::Abs => each(&a.f, &mut out.f, n, f64::abs),
            Un::Sqrt => each(&a.f, &mut out.f, n, f64::sqrt),
            Un::IsNan => each(&a.f, &mut out.i, n, |x| i64::from(x.is_nan())),
            op => each(&a.f, &mut out.f, n, |x| float_un(op, x)),
        }
        return;
    }
    match op {
        Un::Neg => each(&a.i, &mut out.i, n, |x| wrap(d, 0i64.wrapping_sub(x))),
        Un::Abs if d == DType::U64 => each(&a.i, &mut out.i, n, |x| x),
        Un::Abs => each(&a.i, &mut out.i, n, |x| wrap(d, x.wrapping_abs())),
        Un::Not if d == DType::Bool => each(&a.i, &mut out.i, n, |x| 1 - x),
        Un::Not => each(&a.i, &mut out.i, n, |x| wrap(d, !x)),
        _ => each(&a.i, &mut out.i, n, |x| x),
    }
}

fn bin(op: Bin, d: DType, a: &Reg, b: &Reg, out: &mut Reg, n: usize) {
    if d.is_float() {
        match op {
            Bin::Add => pair(&a.f, &b.f, &mut out.f, n, |x, y| x + y),
            Bin::Sub => pair(&a.f, &b.f, &mut out.f, n, |x, y| x - y),
            Bin::Mul => pair(&a.f, &b.f, &mut out.f, n, |x, y| x * y),
            Bin::Div => pair(&a.f, &b.f, &mut out.f, n, |x, y| x / y),
            Bin::Eq => pair(&a.f, &b.f, &mut out.i, n, |x, y| i64::from(x == y)),
            Bin::Lt => pair(&a.f, &b.f, &mut out.i, n, |x, y| i64::from(x < y)),
            Bin::Le => pair(&a.f, &b.f, &mut out.i, n, |x, y| i64::from(x <= y)),
            op => pair(&a.f, &b.f, &mut out.f, n, |x, y| float_bin(op, x, y)),
        }
        return;
    }
    let (x, y, o) = (&a.i, &b.i, &mut out.i);
    let plain = d != DType::U64;
    match op {
        Bin::Add if d != DType::Bool => pair(x, y, o, n, |x, y| wrap(d, x.wrapping_add(y))),
        Bin::Sub if d != DType::Bool => pair(x, y, o, n, |x, y| wrap(d, x.wrapping_sub(y))),
        Bin::Mul if d != DType::Bool => pair(x, y, o, n, |x, y| wrap(d, x.wrapping_mul(y))),
        Bin::Eq => pair(x, y, o, n, |x, y| i64::from(x == y)),
        Bin::Lt if plain => pair(x, y, o, n, |x, y| i64::from(x < y)),
        Bin::Le if plain => pair(x, y, o, n, |x, y| i64::from(x <= y)),
        Bin::Min if plain => pair(x, y, o, n, i64::min),
        Bin::Max if plain => pair(x, y, o, n, i64::max),
        Bin::And => pair(x, y, o, n, |x, y| x & y),
        Bin::Or => pair(x, y, o, n, |x, y| x | y),
        Bin::Xor => pair(x, y, o, n, |x, y| x ^ y),
        op => {
            let to = op.result(d).unwrap_or(d);
            pair(x, y, o, n, |x, y| narrow(to, int_bin(op, wide(d, x), wide(d, y), d.bits())));
        }
    }
}

fn narrow(d: DType, v: i128) -> i64 {
    if d == DType::Bool { i64::from(v != 0) } else { wrap(d, v as i64) }
}

fn fma(d: DType, [a, b, c]: [&Reg; 3], out: &mut Reg, n: usize) {
    for j in 0..n {
        match d {
            // a product of two f32 is exact in f64, but adding there and rounding again would round twice
            DType::F32 => out.f[j] = f64::from((a.f[j] as f32).mul_add(b.f[j] as f32, c.f[j] as f32)),
            d if d.is_float() => out.f[j] = a.f[j].mul_add(b.f[j], c.f[j]),
            d => out.i[j] = wrap(d, a.i[j].wrapping_mul(b.i[j]).wrapping_add(c.i[j])),
        }
    }
}

fn select(c: &Reg, a: &Reg, b: &Reg, out: &mut Reg, n: usize) {
    for j in 0..n {
        let yes = if c.i.is_empty() { c.f[j] != 0.0 } else { c.i[j] != 0 };
        let from = if yes { a } else { b };
        if out.f.is_empty() {
            out.i[j] = from.i[j];
        } else {
            out.f[j] = from.f[j];
        }
    }
}

/// One value converted; floats to floats are left for the rounding that follows.
pub(crate) fn float_to_int(to: DType, x: f64) -> i64 {
    match to {
        DType::Bool => i64::from(x != 0.0),
        DType::I64 => x as i64,
        to => held(Scalar::from_f64(to, x)),
    }
}

/// An integer as a float of type `to`, rounded once where the type's own rounding would be a second one.
pub(crate) fn int_to_float(from: DType, to: DType, x: i64) -> f64 {
    match (from, to) {
        (DType::U64, DType::F32) => f64::from(x as u64 as f32),
        (DType::U64, _) => x as u64 as f64,
        (_, DType::F32) => f64::from(x as f32),
        _ => x as f64,
    }
}

fn cast(from: DType, to: DType, a: &Reg, out: &mut Reg, n: usize) {
    match (from.is_float(), to.is_float()) {
        (true, true) => out.f[..n].copy_from_slice(&a.f[..n]),
        (true, false) => each(&a.f, &mut out.i, n, |x| float_to_int(to, x)),
        (false, true) => each(&a.i, &mut out.f, n, |x| int_to_float(from, to, x)),
        (false, false) => each(&a.i, &mut out.i, n, |x| wrap(to, x)),
    }
}

fn bitcast(from: DType, to: DType, a: &Reg, out: &mut Reg, n: usize) {
    let mask = |d: DType, v: i64| v as u64 & if d.bits() >= 64 { u64::MAX } else { (1 << d.bits()) - 1 };
    for j in 0..n {
        let bits = if a.f.is_empty() { mask(from, a.i[j]) } else { Scalar::from_f64(from, a.f[j]).bits };
        let s = Scalar { dtype: to, bits: mask(to, bits as i64) };
        if out.f.is_empty() {
            out.i[j] = held(s);
        } else {
            out.f[j] = s.as_f64();
        }
    }
}

/// Error bounds of node `at`, whose values are in `out`.
fn errors(expr: &Expr, at: usize, rounding: Rounding, done: &[Reg], out: &mut Reg, n: usize) {
    let (node, dtype) = &expr.nodes[at];
    let term = |i: u32, j: usize| {
        let r = &done[i as usize];
        (r.number(expr.dtype(i), j), r.error(j))
    };
    let always = rounding == Rounding::Never;
    for j in 0..n {
        let r = out.number(*dtype, j);
        out.e[j] = match node {
            ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) => continue,
            ENode::Un(op, a) => bound::un(*op, expr.dtype(*a), term(*a, j), r, always),
            ENode::Bin(op, a, b) => bound::bin(*op, expr.dtype(*a), term(*a, j), term(*b, j), r, always),
            ENode::Fma(a, b, c) => bound::fma(*dtype, term(*a, j), term(*b, j), term(*c, j), r, always),
            ENode::Select(c, a, b) => bound::select(term(*c, j), term(*a, j), term(*b, j)),
            ENode::Cast(a) => bound::cast(expr.dtype(*a), *dtype, term(*a, j), r, always),
            ENode::Bitcast(a) => {
                if term(*a, j).1 == 0.0 {
                    0.0
                } else {
                    f64::INFINITY
                }
            }
        };
        if always {
            out.e[j] = bound::partial(*dtype, r, out.e[j]);
        }
    }
}
