//! Predicates over dims: guards, variant conditions and the bounds of padded reads.

use super::dim::{Atom, Dim, DimError};
use super::symbols::SymTable;
use std::fmt;

/// A condition over symbols (or labels). Decided at bind, or inside a kernel where labels occur.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pred {
    /// Always.
    True,
    /// `a == b`.
    Eq(Dim, Dim),
    /// `a <= b`.
    Le(Dim, Dim),
    /// `a == b`, or one of them is 1.
    Broadcastable(Dim, Dim),
    /// All of them (none: true).
    And(Vec<Pred>),
    /// At least one (none: false).
    Or(Vec<Pred>),
    /// The opposite.
    Not(Box<Pred>),
}

impl Pred {
    /// Conjunction, flattened, without trivial members.
    pub fn all(ps: impl IntoIterator<Item = Pred>) -> Pred {
        let mut v = Vec::new();
        for p in ps {
            match p {
                Pred::True => {}
                Pred::And(inner) => v.extend(inner),
                p => v.push(p),
            }
        }
        match v.len() {
            0 => Pred::True,
            1 => v.swap_remove(0),
            _ => Pred::And(v),
        }
    }

    /// `lo <= x < hi`.
    pub fn in_box(x: &Dim, lo: &Dim, hi: &Dim) -> Pred {
        Pred::And(vec![Pred::Le(lo.clone(), x.clone()), Pred::Le(x.clone() + Dim::from(1), hi.clone())])
    }

    /// Value with every leaf from `leaf`.
    pub fn eval(&self, leaf: &dyn Fn(&Atom) -> Option<i64>) -> Result<bool, DimError> {
        Ok(match self {
            Pred::True => true,
            Pred::Eq(a, b) => a.eval(leaf)? == b.eval(leaf)?,
            Pred::Le(a, b) => a.eval(leaf)? <= b.eval(leaf)?,
            Pred::Broadcastable(a, b) => {
                let (a, b) = (a.eval(leaf)?, b.eval(leaf)?);
                a == b || a == 1 || b == 1
            }
            Pred::And(v) => {
                for p in v {
                    if !p.eval(leaf)? {
                        return Ok(false);
                    }
                }
                true
            }
            Pred::Or(v) => {
                for p in v {
                    if p.eval(leaf)? {
                        return Ok(true);
                    }
                }
                false
            }
            Pred::Not(p) => !p.eval(leaf)?,
        })
    }

    /// Decision when it holds, or fails, for every assignment of leaves in their ranges.
    pub fn decide(&self, range: &dyn Fn(&Atom) -> (i128, i128)) -> Option<bool> {
        match self {
            Pred::True => Some(true),
            Pred::Eq(a, b) => match (a.clone() - b.clone()).interval(range) {
                (0, 0) => Some(true),
                (lo, hi) if lo > 0 || hi < 0 => Some(false),
                _ => None,
            },
            Pred::Le(a, b) => match (b.clone() - a.clone()).interval(range) {
                (lo, _) if lo >= 0 => Some(true),
                (_, hi) if hi < 0 => Some(false),
                _ => None,
            },
            Pred::Broadcastable(a, b) => {
                let one = Dim::from(1);
                Pred::Or(vec![
                    Pred::Eq(a.clone(), b.clone()),
                    Pred::Eq(a.clone(), one.clone()),
                    Pred::Eq(b.clone(), one),
                ])
                .decide(range)
            }
            Pred::And(v) => {
                let d: Vec<_> = v.iter().map(|p| p.decide(range)).collect();
                if d.contains(&Some(false)) {
                    Some(false)
                } else if d.iter().all(|x| *x == Some(true)) {
                    Some(true)
                } else {
                    None
                }
            }
            Pred::Or(v) => {
                let d: Vec<_> = v.iter().map(|p| p.decide(range)).collect();
                if d.contains(&Some(true)) {
                    Some(true)
                } else if d.iter().all(|x| *x == Some(false)) {
                    Some(false)
                } else {
                    None
                }
            }
            Pred::Not(p) => p.decide(range).map(|b| !b),
        }
    }

    /// Decision from the entry's symbol ranges.
    pub fn decide_in(&self, symbols: &SymTable) -> Option<bool> {
        self.decide(&|a| symbols.atom_range(a))
    }

    /// Rebuilds with every dim mapped.
    pub fn map(&self, f: &dyn Fn(&Dim) -> Dim) -> Pred {
        let go = |v: &[Pred]| v.iter().map(|p| p.map(f)).collect();
        match self {
            Pred::True => Pred::True,
            Pred::Eq(a, b) => Pred::Eq(f(a), f(b)),
            Pred::Le(a, b) => Pred::Le(f(a), f(b)),
            Pred::Broadcastable(a, b) => Pred::Broadcastable(f(a), f(b)),
            Pred::And(v) => Pred::And(go(v)),
            Pred::Or(v) => Pred::Or(go(v)),
            Pred::Not(p) => Pred::Not(Box::new(p.map(f))),
        }
    }

    /// Calls `f` on every dim.
    pub fn dims(&self, f: &mut dyn FnMut(&Dim)) {
        match self {
            Pred::True => {}
            Pred::Eq(a, b) | Pred::Le(a, b) | Pred::Broadcastable(a, b) => {
                f(a);
                f(b);
            }
            Pred::And(v) | Pred::Or(v) => v.iter().for_each(|p| p.dims(f)),
            Pred::Not(p) => p.dims(f),
        }
    }
}

impl fmt::Display for Pred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, name: &str, v: &[Pred]| {
            write!(f, "{name}(")?;
            for (i, p) in v.iter().enumerate() {
                write!(f, "{}{p}", if i > 0 { ", " } else { "" })?;
            }
            f.write_str(")")
        };
        match self {
            Pred::True => f.write_str("true"),
            Pred::Eq(a, b) => write!(f, "eq({a}, {b})"),
            Pred::Le(a, b) => write!(f, "le({a}, {b})"),
            Pred::Broadcastable(a, b) => write!(f, "broadcastable({a}, {b})"),
            Pred::And(v) => list(f, "and", v),
            Pred::Or(v) => list(f, "or", v),
            Pred::Not(p) => write!(f, "not({p})"),
        }
    }
}
