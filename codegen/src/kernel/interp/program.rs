//! Scalar programs and index expressions made ready for repeated evaluation: parameters put in, labels turned into
//! slots, operations on the usual types into plain functions. The meaning stays that of `tgc_ir::scalar`.

use std::collections::BTreeMap;
use tgc_ir::scalar::{Bin, ENode, Expr, Scalar, Un, cast, eval_bin, eval_fma, eval_un};
use tgc_ir::types::{Atom, DType, Dim};

/// Values of the kernel's parameters and the slot of each label.
pub(super) struct Names<'k> {
    pub(crate) params: BTreeMap<&'k str, i64>,
    pub(crate) slots: BTreeMap<u32, usize>,
}

/// An index expression over label slots and node values.
pub(super) enum Ix {
    Affine { base: i64, terms: Vec<(i64, usize)> },
    Tree(Dim),
}

impl Names<'_> {
    pub(crate) fn bind(&self, d: &Dim) -> Dim {
        d.subst(&|a| match a {
            Atom::Sym(s) => self.params.get(&**s).map(|v| Dim::from(*v)),
            _ => None,
        })
    }

    pub(crate) fn index(&self, d: &Dim) -> Ix {
        let d = self.bind(d);
        self.affine(&d).unwrap_or(Ix::Tree(d))
    }

    fn affine(&self, d: &Dim) -> Option<Ix> {
        let mut terms = Vec::new();
        for (c, atoms) in d.terms() {
            let [Atom::Label(l)] = atoms else { return None };
            terms.push((i64::try_from(c).ok()?, *self.slots.get(l)?));
        }
        Some(Ix::Affine { base: i64::try_from(d.constant()).ok()?, terms })
    }

    /// Value of `ix`; `vals` are the bits and types of the nodes evaluated so far.
    pub(crate) fn value(&self, ix: &Ix, labels: &[i64], vals: &dyn Fn(u32) -> Option<i64>) -> Option<i64> {
        match ix {
            Ix::Affine { base, terms } => {
                let sum = terms.iter().try_fold(i128::from(*base), |s, (c, slot)| {
                    s.checked_add(i128::from(*c) * i128::from(labels[*slot]))
                })?;
                i64::try_from(sum).ok()
            }
            Ix::Tree(d) => d.eval(&|a| self.leaf(a, labels, vals)).ok(),
        }
    }

    pub(crate) fn leaf(&self, a: &Atom, labels: &[i64], vals: &dyn Fn(u32) -> Option<i64>) -> Option<i64> {
        match a {
            Atom::Sym(s) => self.params.get(&**s).copied(),
            Atom::Label(l) => self.slots.get(l).map(|s| labels[*s]),
            Atom::Val(n) => vals(*n),
            _ => None,
        }
    }
}

enum Op {
    Arg(u32),
    Const(u64),
    Dim(Ix),
    Un(fn(u64) -> u64, u32),
    Bin(fn(u64, u64) -> u64, u32, u32),
    Fma(fn(u64, u64, u64) -> u64, u32, u32, u32),
    Select(u32, u32, u32),
    Copy(u32),
    SlowUn(Un, DType, u32),
    SlowBin(Bin, DType, u32, u32),
    SlowFma(DType, u32, u32, u32),
    Cast(DType, DType, u32),
}

/// A scalar program over raw bits.
pub(super) struct Program {
    ops: Vec<Op>,
    types: Vec<DType>,
    pub(crate) roots: Vec<u32>,
}

fn f(a: u64) -> f32 {
    f32::from_bits(a as u32)
}

fn g(a: u64) -> f64 {
    f64::from_bits(a)
}

fn bits(a: f32) -> u64 {
    u64::from(a.to_bits())
}

fn fast_un(op: Un, d: DType) -> Option<fn(u64) -> u64> {
    Some(match (op, d) {
        (Un::Neg, DType::F32) => |a| a ^ 0x8000_0000,
        (Un::Abs, DType::F32) => |a| a & 0x7fff_ffff,
        (Un::Sqrt, DType::F32) => |a| bits(f(a).sqrt()),
        (Un::Floor, DType::F32) => |a| bits(f(a).floor()),
        (Un::Round, DType::F32) => |a| bits(f(a).round_ties_even()),
        (Un::IsNan, DType::F32) => |a| u64::from(f(a).is_nan()),
        (Un::Not, DType::Bool) => |a| a ^ 1,
        _ => return None,
    })
}

fn fast_bin(op: Bin, d: DType) -> Option<fn(u64, u64) -> u64> {
    Some(match (op, d) {
        (Bin::Add, DType::F32) => |a, b| bits(f(a) + f(b)),
        (Bin::Sub, DType::F32) => |a, b| bits(f(a) - f(b)),
        (Bin::Mul, DType::F32) => |a, b| bits(f(a) * f(b)),
        (Bin::Div, DType::F32) => |a, b| bits(f(a) / f(b)),
        (Bin::Lt, DType::F32) => |a, b| u64::from(f(a) < f(b)),
        (Bin::Le, DType::F32) => |a, b| u64::from(f(a) <= f(b)),
        (Bin::Eq, DType::F32) => |a, b| u64::from(f(a) == f(b)),
        (Bin::Add, DType::F64) => |a, b| (g(a) + g(b)).to_bits(),
        (Bin::Sub, DType::F64) => |a, b| (g(a) - g(b)).to_bits(),
        (Bin::Mul, DType::F64) => |a, b| (g(a) * g(b)).to_bits(),
        (Bin::Div, DType::F64) => |a, b| (g(a) / g(b)).to_bits(),
        (Bin::Lt, DType::F64) => |a, b| u64::from(g(a) < g(b)),
        (Bin::Le, DType::F64) => |a, b| u64::from(g(a) <= g(b)),
        (Bin::Eq, DType::F64) => |a, b| u64::from(g(a) == g(b)),
        (Bin::Add, DType::I64 | DType::U64) => u64::wrapping_add,
        (Bin::Sub, DType::I64 | DType::U64) => u64::wrapping_sub,
        (Bin::Mul, DType::I64 | DType::U64) => u64::wrapping_mul,
        (Bin::Add, DType::I32 | DType::U32) => |a, b| u64::from((a as u32).wrapping_add(b as u32)),
        (Bin::Sub, DType::I32 | DType::U32) => |a, b| u64::from((a as u32).wrapping_sub(b as u32)),
        (Bin::Mul, DType::I32 | DType::U32) => |a, b| u64::from((a as u32).wrapping_mul(b as u32)),
        (Bin::And, _) => |a, b| a & b,
        (Bin::Or, _) => |a, b| a | b,
        (Bin::Xor, _) => |a, b| a ^ b,
        (Bin::Eq, d) if !d.is_float() => |a, b| u64::from(a == b),
        (Bin::Lt, d) if d.is_unsigned() => |a, b| u64::from(a < b),
        (Bin::Lt, DType::I64) => |a, b| u64::from((a as i64) < b as i64),
        (Bin::Lt, DType::I32) => |a, b| u64::from((a as i32) < b as i32),
        _ => return None,
    })
}

fn fast_fma(d: DType) -> Option<fn(u64, u64, u64) -> u64> {
    Some(match d {
        DType::F32 => |a, b, c| bits(f(a).mul_add(f(b), f(c))),
        DType::F64 => |a, b, c| g(a).mul_add(g(b), g(c)).to_bits(),
        _ => return None,
    })
}

impl Program {
    pub(crate) fn new(e: &Expr, names: &Names<'_>) -> Program {
        let types: Vec<DType> = e.nodes.iter().map(|n| n.1).collect();
        let ops = e.nodes.iter().map(|(node, dtype)| match node {
            ENode::Arg(i) => Op::Arg(*i),
            ENode::Const(s) => Op::Const(s.bits),
            ENode::Dim(d) => Op::Dim(names.index(d)),
            ENode::Un(op, a) => match fast_un(*op, e.dtype(*a)) {
                Some(f) => Op::Un(f, *a),
                None => Op::SlowUn(*op, e.dtype(*a), *a),
            },
            ENode::Bin(op, a, b) => match fast_bin(*op, e.dtype(*a)) {
                Some(f) => Op::Bin(f, *a, *b),
                None => Op::SlowBin(*op, e.dtype(*a), *a, *b),
            },
            ENode::Fma(a, b, c) => match fast_fma(*dtype) {
                Some(f) => Op::Fma(f, *a, *b, *c),
                None => Op::SlowFma(*dtype, *a, *b, *c),
            },
            ENode::Select(c, a, b) => Op::Select(*c, *a, *b),
            ENode::Cast(a) => Op::Cast(e.dtype(*a), *dtype, *a),
            ENode::Bitcast(a) => Op::Copy(*a),
        });
        Program { ops: ops.collect(), types, roots: e.roots.clone() }
    }

    /// Evaluates all nodes in order into `regs`; `arg` gives inputs and may look at the nodes before.
    pub(crate) fn run<E>(
        &self,
        names: &Names<'_>,
        labels: &[i64],
        regs: &mut Vec<u64>,
        mut arg: impl FnMut(u32, &[u64]) -> Result<u64, E>,
    ) -> Result<(), E> {
        regs.clear();
        for op in &self.ops {
            let s = |d: DType, a: u32| Scalar { dtype: d, bits: regs[a as usize] };
            let v = |a: u32| regs[a as usize];
            let r = match op {
                Op::Arg(i) => arg(*i, regs)?,
                Op::Const(c) => *c,
                Op::Dim(ix) => names.value(ix, labels, &|_| None).unwrap_or(0) as u64,
                Op::Un(f, a) => f(v(*a)),
                Op::Bin(f, a, b) => f(v(*a), v(*b)),
                Op::Fma(f, a, b, c) => f(v(*a), v(*b), v(*c)),
                Op::Select(c, a, b) => v(if v(*c) & 1 == 1 { *a } else { *b }),
                Op::Copy(a) => v(*a),
                Op::SlowUn(op, d, a) => eval_un(*op, s(*d, *a)).bits,
                Op::SlowBin(op, d, a, b) => eval_bin(*op, s(*d, *a), s(*d, *b)).bits,
                Op::SlowFma(d, a, b, c) => eval_fma(s(*d, *a), s(*d, *b), s(*d, *c)).bits,
                Op::Cast(from, to, a) => cast(*to, s(*from, *a)).bits,
            };
            regs.push(r);
        }
        Ok(())
    }

    /// Value of integer node `n` among those evaluated.
    pub(crate) fn integer(&self, regs: &[u64], n: u32) -> Option<i64> {
        let s = Scalar { dtype: *self.types.get(n as usize)?, bits: *regs.get(n as usize)? };
        s.as_int().and_then(|v| i64::try_from(v).ok())
    }
}
