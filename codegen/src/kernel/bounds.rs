//! What can be shown about the values of index expressions: bounds over all labels in scope, as expressions over the
//! kernel's parameters. Sound, not complete; nothing here knows stages or buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tgc_ir::types::{Atom, Dim, Pred};

/// Greatest value a parameter is assumed to have.
const PARAM_MAX: i128 = 1 << 40;

/// Most facts combined in pairs.
const PAIRED_FACTS: usize = 12;

/// What is known of one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It holds for all points.
    Proved,
    /// Neither shown nor refuted.
    Unknown,
    /// It fails at some point whatever the parameters are.
    Wrong,
}

/// Values of the labels in scope: first and last, over parameters and labels of outer loops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    labels: BTreeMap<u32, (Dim, Dim)>,
    /// Parameters that are at least 1 wherever all labels have a value.
    positive: BTreeSet<Arc<str>>,
    fresh: u32,
}

impl Scope {
    /// Adds a label with values `lo .. hi` (not included).
    pub(crate) fn add(&mut self, label: u32, lo: &Dim, hi: &Dim) {
        let extent = hi.clone() - lo.clone();
        if extent.constant() == 0
            && let [(_, atoms)] = extent.terms().collect::<Vec<_>>()[..]
        {
            self.positive.extend(atoms.iter().filter_map(|a| match a {
                Atom::Sym(s) => Some(s.clone()),
                _ => None,
            }));
        }
        self.labels.insert(label, (lo.clone(), hi.clone() - Dim::from(1)));
    }

    /// True for a label that has values here.
    pub(crate) fn has(&self, label: u32) -> bool {
        self.labels.contains_key(&label)
    }

    /// True for a label that takes exactly one value.
    pub(crate) fn is_single(&self, label: u32) -> bool {
        self.labels.get(&label).is_some_and(|(lo, hi)| lo == hi)
    }

    /// True for an access that never happens: a label of its indices takes no value, whatever the parameters are.
    pub(crate) fn never(&self, index: &[Dim]) -> bool {
        index.iter().any(|d| d.any_leaf(|a| matches!(a, Atom::Label(l) if self.is_empty(*l))))
    }

    fn is_empty(&self, label: u32) -> bool {
        let count = self.labels.get(&label).map(|(lo, hi)| hi.clone() - lo.clone());
        count.and_then(|d| d.as_const()).is_some_and(|n| n < 0)
    }

    /// `d >= 0` at every point, given that every one of `facts` is not negative there.
    pub(crate) fn nonneg(&self, d: &Dim, facts: &[Dim]) -> Verdict {
        let direct = self.decide(d);
        if direct == Verdict::Proved || facts.is_empty() {
            return direct;
        }
        let proved = |e: &Dim| self.decide(e) == Verdict::Proved;
        for (i, f) in facts.iter().enumerate() {
            let less = d.clone() - f.clone();
            if proved(&less)
                || facts[i..].iter().take(PAIRED_FACTS).any(|g| proved(&(less.clone() - g.clone())))
            {
                return Verdict::Proved;
            }
        }
        Verdict::Unknown
    }

    /// `0 <= index < dim` at every point, given the facts.
    pub(crate) fn inside(&self, index: &Dim, dim: &Dim, facts: &[Dim]) -> Verdict {
        let above = self.nonneg(index, facts);
        let below = self.nonneg(&(dim.clone() - Dim::from(1) - index.clone()), facts);
        match (above, below) {
            (Verdict::Proved, Verdict::Proved) => Verdict::Proved,
            (Verdict::Wrong, _) | (_, Verdict::Wrong) => Verdict::Wrong,
            _ => Verdict::Unknown,
        }
    }

    fn decide(&self, d: &Dim) -> Verdict {
        let Some(low) = self.clone().extreme(d, false) else { return Verdict::Unknown };
        let low = low.simplify(&|a| self.param(a));
        match self.params(&low) {
            (lo, _) if lo >= 0 => Verdict::Proved,
            (_, hi) if hi < 0 && attained(d) => Verdict::Wrong,
            _ => Verdict::Unknown,
        }
    }

    /// Interval of an expression over parameters.
    fn params(&self, d: &Dim) -> (i128, i128) {
        d.interval(&|a| self.param(a))
    }

    fn param(&self, a: &Atom) -> (i128, i128) {
        match a {
            Atom::Sym(s) => (i128::from(self.positive.contains(s)), PARAM_MAX),
            _ => (-Dim::FAR, Dim::FAR),
        }
    }

    /// A bound of `d` over parameters only.
    fn extreme(&mut self, d: &Dim, upper: bool) -> Option<Dim> {
        let d = self.peel_remainders(d);
        let mut sum = Dim::from(d.constant());
        for (coeff, atoms) in d.terms() {
            let (moving, fixed): (Vec<&Atom>, Vec<&Atom>) = atoms.iter().partition(|a| moves(a));
            let factor = Dim::from(coeff) * fixed.into_iter().map(|a| Dim::atom(a.clone())).product();
            if moving.is_empty() {
                sum = sum + factor;
                continue;
            }
            let up = match self.params(&factor) {
                (lo, _) if lo >= 0 => upper,
                (_, hi) if hi <= 0 => !upper,
                _ => return None,
            };
            let mut product = factor;
            for a in &moving {
                if moving.len() > 1 && self.atom_extreme(a, false).is_none_or(|l| self.params(&l).0 < 0) {
                    return None;
                }
                product = product * self.atom_extreme(a, up)?;
            }
            sum = sum + product;
        }
        Some(sum)
    }

    fn atom_extreme(&mut self, a: &Atom, upper: bool) -> Option<Dim> {
        match a {
            Atom::Label(l) => {
                let (lo, hi) = self.labels.get(l)?.clone();
                self.extreme(if upper { &hi } else { &lo }, upper)
            }
            Atom::FloorDiv(x, d) => {
                let fixed = !d.any_leaf(|l| matches!(l, Atom::Label(_) | Atom::Val(_)));
                if !fixed || self.params(d).0 < 1 {
                    return None;
                }
                Some(self.extreme(x, upper)?.floordiv(d))
            }
            Atom::Min(x, y) => match (self.extreme(x, upper), self.extreme(y, upper)) {
                (Some(x), Some(y)) => Some(x.dmin(&y)),
                (x, y) => x.or(y).filter(|_| upper),
            },
            Atom::Max(x, y) => match (self.extreme(x, upper), self.extreme(y, upper)) {
                (Some(x), Some(y)) => Some(x.dmax(&y)),
                (x, y) => x.or(y).filter(|_| !upper),
            },
            _ => None,
        }
    }

    /// Replaces `k * (x - q * floordiv(x, q))` by `k` times a new label with the values `0 .. q`.
    fn peel_remainders(&mut self, d: &Dim) -> Dim {
        let mut d = d.clone();
        for _ in 0..8 {
            match self.peel_one(&d) {
                Some(next) => d = next,
                None => break,
            }
        }
        d
    }

    fn peel_one(&mut self, d: &Dim) -> Option<Dim> {
        for (coeff, atoms) in d.terms() {
            for (i, a) in atoms.iter().enumerate() {
                let Atom::FloorDiv(x, q) = a else { continue };
                let others =
                    atoms.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, a)| Dim::atom(a.clone()));
                let factor = Dim::from(coeff) * others.product();
                let Some(k) = (-factor).div_exact(q) else { continue };
                let whole = k.clone() * ((**x).clone() - (**q).clone() * x.floordiv(q));
                let rest = d.clone() - whole;
                if leaves(&rest) < leaves(d) && moves(a) {
                    self.fresh += 1;
                    let label = u32::MAX - self.fresh;
                    self.labels.insert(label, (Dim::from(0), (**q).clone() - Dim::from(1)));
                    return Some(rest + k * Dim::label(label));
                }
            }
        }
        None
    }
}

/// Dims that are not negative where the condition holds, as far as they can be read off.
pub(crate) fn facts(p: &Pred) -> Vec<Dim> {
    match p {
        Pred::Le(a, b) => vec![b.clone() - a.clone()],
        Pred::Eq(a, b) => vec![b.clone() - a.clone(), a.clone() - b.clone()],
        Pred::And(v) => v.iter().flat_map(facts).collect(),
        Pred::Not(p) => match &**p {
            Pred::Le(a, b) => vec![a.clone() - b.clone() - Dim::from(1)],
            _ => Vec::new(),
        },
        Pred::True | Pred::Broadcastable(..) | Pred::Or(_) => Vec::new(),
    }
}

fn moves(a: &Atom) -> bool {
    Dim::atom(a.clone()).any_leaf(|l| matches!(l, Atom::Label(_) | Atom::Val(_)))
}

fn leaves(d: &Dim) -> usize {
    let mut n = 0;
    d.leaves(&mut |_| n += 1);
    n
}

/// True when every label occurs once, so that a bound taken label by label is a value that occurs.
fn attained(d: &Dim) -> bool {
    let mut seen = BTreeSet::new();
    let mut once = true;
    d.leaves(&mut |a| {
        if let Atom::Label(l) = a {
            once &= seen.insert(*l);
        }
    });
    once && !d.any_leaf(|a| matches!(a, Atom::Val(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(labels: &[(u32, Dim)]) -> Scope {
        let mut s = Scope::default();
        labels.iter().for_each(|(l, d)| s.add(*l, &Dim::from(0), d));
        s
    }

    #[test]
    fn affine_and_divided_indices_are_decided() {
        let (d0, d1) = (Dim::sym("d0"), Dim::sym("d1"));
        let s = scope(&[(0, d0.clone()), (1, d1.clone()), (2, Dim::from(64))]);
        let l = Dim::label;
        assert_eq!(s.inside(&l(0), &d0, &[]), Verdict::Proved);
        assert_eq!(s.inside(&(l(0) + Dim::from(1)), &d0, &[]), Verdict::Wrong);
        let flat = l(0) * d1.clone() + l(1);
        assert_eq!(s.inside(&flat, &(d0.clone() * d1.clone()), &[]), Verdict::Proved);
        assert_eq!(s.inside(&flat.floordiv(&d1), &d0, &[]), Verdict::Proved);
        let r = (l(2) + Dim::from(5)).rem(&Dim::from(7));
        assert_eq!(s.inside(&r, &Dim::from(7), &[]), Verdict::Proved);
        assert_eq!(s.inside(&r, &Dim::from(6), &[]), Verdict::Unknown);
        assert_eq!(s.inside(&l(0), &d1, &[]), Verdict::Unknown);
    }

    #[test]
    fn an_access_by_a_label_without_values_never_happens() {
        let s = scope(&[(0, Dim::from(4)), (1, Dim::from(0)), (2, Dim::sym("d0"))]);
        let l = Dim::label;
        assert!(s.never(&[Dim::from(0), l(0) + l(1)]));
        assert!(!s.never(&[l(0), l(2)]));
        assert_eq!(s.inside(&l(0), &Dim::from(0), &[]), Verdict::Wrong);
    }

    #[test]
    fn conditions_help() {
        let s = scope(&[(0, Dim::sym("d0")), (3, Dim::from(3))]);
        let at = Dim::from(2) * Dim::label(0) + Dim::label(3) - Dim::from(1);
        let p = Pred::in_box(&at, &Dim::from(0), &Dim::sym("d1"));
        assert_eq!(s.inside(&at, &Dim::sym("d1"), &facts(&p)), Verdict::Proved);
        assert_eq!(s.inside(&at, &(Dim::sym("d1") - Dim::from(1)), &facts(&p)), Verdict::Unknown);
        let clamped = Dim::val(0).dmin(&(Dim::sym("d0") - Dim::from(1))).dmax(&Dim::from(0));
        assert_eq!(s.inside(&clamped, &Dim::sym("d0"), &[]), Verdict::Proved);
    }
}
