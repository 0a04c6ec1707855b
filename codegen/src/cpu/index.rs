//! Dims and predicates as code: sums of products with the parts of outer loops first, so that hoisting finds them. A label
//! that is run in vectors gives a vector of indices. No memory is touched here.

use super::build::{Build, Emitter, Op, R, V, lanes};
use super::emit::{Emit, LANE};
use super::{Fail, internal};
use crate::kernel::without_panels;
use inkwell::IntPredicate;
use tgc_ir::types::{Atom, DType, Dim, Pred};

/// How an index moves with the lanes of a vector.
pub(super) enum Walk<'c> {
    /// All lanes at one place.
    Still(V<'c>),
    /// Lane i at the place plus i.
    Unit(V<'c>),
    /// Lane i at the place plus 2 i.
    Second(V<'c>),
    /// A place for each lane.
    Each(Vec<V<'c>>),
}

/// Depth of what is known only inside the innermost loop.
const INNERMOST: u32 = u32::MAX;

impl<'c> Emit<'c, '_> {
    /// Interval of an atom, from labels and parameters being at least 0.
    fn atom_interval(atom: &Atom) -> (i128, i128) {
        match atom {
            Atom::Sym(_) | Atom::Label(_) => (0, Dim::FAR),
            _ => (-Dim::FAR, Dim::FAR),
        }
    }

    /// True if the value is at least 0 whatever labels and parameters are.
    pub(super) fn not_negative(d: &Dim) -> bool {
        d.interval(&Self::atom_interval).0 >= 0
    }

    fn depth(&self, d: &Dim) -> u32 {
        let mut depth = 0;
        d.leaves(&mut |a| {
            depth = depth.max(match a {
                Atom::Label(l) => self.labels.get(l).map_or(INNERMOST, |x| x.1),
                Atom::Val(_) => INNERMOST,
                _ => self.named.get(&a.to_string()).map_or(0, |n| n.1),
            });
        });
        depth
    }

    /// Code for a dim: a 64-bit scalar, or a vector where it depends on the vector label or a vector value.
    pub(super) fn dim(&self, d: &Dim) -> R<V<'c>> {
        let b = &self.ir;
        let mut terms: Vec<(u32, i128, &[Atom])> = d
            .terms()
            .map(|(c, a)| (a.iter().map(|a| self.depth(&Dim::atom(a.clone()))).max().unwrap_or(0), c, a))
            .collect();
        terms.sort_by_key(|t| t.0);
        let mut sum = None;
        for (_, coeff, atoms) in terms {
            let mut atoms: Vec<(u32, &Atom)> =
                atoms.iter().map(|a| (self.depth(&Dim::atom(a.clone())), a)).collect();
            atoms.sort_by_key(|a| a.0);
            let mut product = None;
            for (_, a) in atoms {
                let v = self.atom(a)?;
                product = Some(match product {
                    None => v,
                    Some(p) => b.op(Op::Mul, p, v)?,
                });
            }
            let coeff = self.coefficient(coeff)?;
            let term = match product {
                None => coeff,
                Some(p) if super::build::known(coeff) == Some(1) => p,
                Some(p) => b.op(Op::Mul, p, coeff)?,
            };
            sum = Some(match sum {
                None => term,
                Some(s) => b.op(Op::Add, s, term)?,
            });
        }
        let constant = self.coefficient(d.constant())?;
        match sum {
            None => Ok(constant),
            Some(s) if d.constant() == 0 => Ok(s),
            Some(s) => b.op(Op::Add, s, constant),
        }
    }

    fn coefficient(&self, c: i128) -> R<V<'c>> {
        let c =
            i64::try_from(c).map_err(|_| internal(self.kernel, &format!("an index with the factor {c}")))?;
        Ok(self.ir.i64(c))
    }

    fn atom(&self, a: &Atom) -> R<V<'c>> {
        let b = &self.ir;
        let missing = || internal(self.kernel, &format!("`{a}` in an index has no value"));
        Ok(match a {
            Atom::Sym(s) => {
                let named = || self.named.get(&**s).map(|n| &n.0);
                *self.syms.get(&**s).or_else(named).ok_or_else(missing)?
            }
            Atom::Label(l) => self.labels.get(l).ok_or_else(missing)?.0,
            Atom::Val(n) => self.node_value(*n).ok_or_else(missing)?,
            Atom::FloorDiv(x, y) => self.floordiv(x, y)?,
            Atom::Min(x, y) => {
                let (x, y) = (self.dim(x)?, self.dim(y)?);
                b.smin(x, y)?
            }
            Atom::Max(x, y) => {
                let (x, y) = (self.dim(x)?, self.dim(y)?);
                b.smax(x, y)?
            }
            Atom::Bcast(x, y) => {
                let (x, y) = (self.dim(x)?, self.dim(y)?);
                let one = b.icmp(IntPredicate::EQ, x, b.i64(1))?;
                b.select(one, y, x)?
            }
        })
    }

    /// Rounds down; a divisor below 1 counts as 1, so that no kernel can raise a machine exception.
    fn floordiv(&self, x: &Dim, y: &Dim) -> R<V<'c>> {
        let b = &self.ir;
        let v = self.dim(x)?;
        let d = match y.as_const() {
            Some(c) => b.i64(c.max(1)),
            None => {
                let d = self.dim(y)?;
                b.smax(d, b.i64(1))?
            }
        };
        if Self::not_negative(x) {
            return b.op(Op::UDiv, v, d);
        }
        let q = b.op(Op::SDiv, v, d)?;
        let back = b.op(Op::Mul, q, d)?;
        let above = b.icmp(IntPredicate::SGT, back, v)?;
        let less = b.op(Op::Sub, q, b.i64(1))?;
        b.select(above, less, q)
    }

    /// An integer node's value as 64 bits.
    fn node_value(&self, n: u32) -> Option<V<'c>> {
        let (v, d) = (*self.nodes.get(n as usize)?)?;
        let t = self.ir.i64t().into();
        self.ir.int_cast(v, t, d.is_signed()).ok().filter(|_| d.is_int() || d == DType::Bool)
    }

    /// True if the value differs between the lanes of the vector now built.
    fn varies(&self, d: &Dim) -> bool {
        d.any_leaf(|a| match a {
            Atom::Label(l) => self.labels.get(l).is_some_and(|x| lanes(x.0) > 1),
            Atom::Val(n) => self.nodes.get(*n as usize).is_some_and(|v| v.is_some_and(|v| lanes(v.0) > 1)),
            _ => false,
        })
    }

    /// How `d` moves with the lanes.
    pub(super) fn walk(&self, d: &Dim) -> R<Walk<'c>> {
        if !self.varies(d) {
            return Ok(Walk::Still(self.dim(d)?));
        }
        let b = &self.ir;
        if let Some(lanes) = self.vector
            && let Some((c, rest)) =
                without_panels(d, lanes.label, if lanes.aligned { lanes.width } else { 0 })
                    .affine(lanes.label)
            && !self.varies(&c)
            && !self.varies(&rest)
        {
            let first = self.dim(&at_first_lane(d, lanes.label))?;
            if c.is(1) {
                return Ok(Walk::Unit(first));
            }
            if c.is(2) {
                return Ok(Walk::Second(first));
            }
            let step = self.dim(&c)?;
            return Ok(Walk::Each(self.places(first, step, lanes.width)?));
        }
        let v = self.dim(d)?;
        Ok(Walk::Each((0..lanes(v)).map(|i| b.lane(v, i)).collect::<R<Vec<_>>>()?))
    }

    /// `n` places `step` apart.
    pub(super) fn places(&self, first: V<'c>, step: V<'c>, n: u32) -> R<Vec<V<'c>>> {
        let mut places = vec![first];
        for i in 1..i64::from(n) {
            let off = self.ir.op(Op::Mul, step, self.ir.i64(i))?;
            places.push(self.ir.op(Op::Add, first, off)?);
        }
        Ok(places)
    }

    /// Code for a predicate: one bit, or a lane mask.
    pub(super) fn pred(&self, p: &Pred) -> R<V<'c>> {
        let b = &self.ir;
        let fold = |v: &[Pred], op: Op, unit: u64| -> R<V<'c>> {
            let mut acc: V<'c> = b.ctx.bool_type().const_int(unit, false).into();
            for (i, p) in v.iter().enumerate() {
                let x = self.pred(p)?;
                acc = if i == 0 { x } else { b.op(op, acc, x)? };
            }
            Ok(acc)
        };
        let two = |p: IntPredicate, x: &Dim, y: &Dim| -> R<V<'c>> {
            let (x, y) = (self.dim(x)?, self.dim(y)?);
            b.icmp(p, x, y)
        };
        match p {
            Pred::True => Ok(b.ctx.bool_type().const_int(1, false).into()),
            Pred::Eq(x, y) => two(IntPredicate::EQ, x, y),
            Pred::Le(x, y) => two(IntPredicate::SLE, x, y),
            Pred::Broadcastable(x, y) => {
                let one = Dim::from(1);
                let any = [(x, y), (x, &one), (y, &one)].map(|(x, y)| Pred::Eq(x.clone(), y.clone()));
                self.pred(&Pred::Or(any.into()))
            }
            Pred::And(v) => fold(v, Op::And, 1),
            Pred::Or(v) => fold(v, Op::Or, 0),
            Pred::Not(p) => {
                let x = self.pred(p)?;
                b.op(Op::Xor, x, b.int_like(x, 1)?)
            }
        }
    }

    /// A mask that holds where `0 <= index < extent` on every axis.
    pub(super) fn inside(&self, index: &[Dim], extents: &[Dim]) -> R<V<'c>> {
        let b = &self.ir;
        let mut ok: V<'c> = b.ctx.bool_type().const_int(1, false).into();
        for (i, d) in index.iter().zip(extents) {
            let (i, d) = (self.dim(i)?, self.dim(d)?);
            let x = b.icmp(IntPredicate::ULT, i, d)?;
            ok = b.op(Op::And, ok, x)?;
        }
        Ok(ok)
    }

    /// A dim that must be the same for all lanes, at least 0.
    pub(super) fn extent(&self, d: &Dim) -> R<V<'c>> {
        let v = self.dim(d)?;
        if lanes(v) > 1 {
            return Err(internal(self.kernel, "an extent that differs between lanes"));
        }
        if Self::not_negative(d) { Ok(v) } else { self.ir.smax(v, self.ir.i64(0)) }
    }
}

/// `d` at the first lane.
fn at_first_lane(d: &Dim, label: u32) -> Dim {
    d.subst(&|a| (*a == Atom::Label(label)).then(|| Dim::sym(LANE)))
}

impl<'c> Emitter<'c> for Emit<'c, '_> {
    fn build(&self) -> &Build<'c> {
        &self.ir
    }
}

impl From<tgc_ir::diag::Diag> for Fail {
    fn from(d: tgc_ir::diag::Diag) -> Fail {
        Fail::Refused(Box::new(d))
    }
}
