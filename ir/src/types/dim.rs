//! Symbolic integers: a normal form of sums of products over atoms, used for dims, index expressions and size
//! formulas. Equal expressions that the normal form covers compare equal; nothing here knows tensors or graphs.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Mul, Neg, Sub};
use std::sync::Arc;

/// An indivisible factor of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// A symbol of the entry (or a dim parameter of a kernel), by name.
    Sym(Arc<str>),
    /// An iteration label of the class or kernel stage at hand; printed `#n`.
    Label(u32),
    /// The value of a scalar node of the class or stage at hand (indirect indexing); printed `$n`.
    Val(u32),
    /// Floor division; the divisor is at least 1.
    FloorDiv(Box<Dim>, Box<Dim>),
    /// Smaller of two.
    Min(Box<Dim>, Box<Dim>),
    /// Greater of two.
    Max(Box<Dim>, Box<Dim>),
    /// The broadcast of two dims: equal, or one of them is 1 and the other is the result.
    Bcast(Box<Dim>, Box<Dim>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Term {
    atoms: Vec<Atom>,
    coeff: i128,
}

/// A symbolic integer in normal form: `constant + sum(coeff * product of atoms)`, terms sorted, no zero coefficient.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Dim {
    terms: Vec<Term>,
    constant: i128,
}

/// Why a dim could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// An atom has no value.
    #[error("`{0}` has no value")]
    Unbound(String),
    /// A divisor below 1.
    #[error("division by {0} in `{1}`")]
    Division(i128, String),
    /// Two dims that do not broadcast.
    #[error("{0} and {1} do not broadcast")]
    Broadcast(i128, i128),
    /// Beyond 64 bits.
    #[error("`{0}` is too large")]
    Overflow(String),
}

impl Dim {
    /// Stands for infinity in intervals.
    pub const FAR: i128 = 1 << 100;

    /// A symbol.
    pub fn sym(name: &str) -> Dim {
        Dim::atom(Atom::Sym(Arc::from(name)))
    }

    /// An iteration label.
    pub fn label(i: u32) -> Dim {
        Dim::atom(Atom::Label(i))
    }

    /// A scalar node's value.
    pub fn val(i: u32) -> Dim {
        Dim::atom(Atom::Val(i))
    }

    /// A single atom. Use the functions below for operations, so that they simplify.
    pub fn atom(a: Atom) -> Dim {
        Dim { terms: vec![Term { atoms: vec![a], coeff: 1 }], constant: 0 }
    }

    /// The number, if there are no atoms and it fits.
    pub fn as_const(&self) -> Option<i64> {
        if self.terms.is_empty() { i64::try_from(self.constant).ok() } else { None }
    }

    /// The atom, if this is exactly one atom.
    pub(crate) fn as_atom(&self) -> Option<&Atom> {
        match &self.terms[..] {
            [t] if self.constant == 0 && t.coeff == 1 && t.atoms.len() == 1 => t.atoms.first(),
            _ => None,
        }
    }

    /// The symbol's name, if this is exactly one symbol.
    pub fn as_sym(&self) -> Option<&Arc<str>> {
        match self.as_atom() {
            Some(Atom::Sym(s)) => Some(s),
            _ => None,
        }
    }

    /// True for the number `n`.
    pub fn is(&self, n: i64) -> bool {
        self.as_const() == Some(n)
    }

    /// The constant part.
    pub fn constant(&self) -> i128 {
        self.constant
    }

    /// The terms as (coefficient, atoms).
    pub fn terms(&self) -> impl Iterator<Item = (i128, &[Atom])> {
        self.terms.iter().map(|t| (t.coeff, &t.atoms[..]))
    }

    fn from_terms(mut terms: Vec<Term>, constant: i128) -> Dim {
        terms.sort_by(|a, b| a.atoms.cmp(&b.atoms));
        let mut out: Vec<Term> = Vec::with_capacity(terms.len());
        for t in terms {
            match out.last_mut() {
                Some(last) if last.atoms == t.atoms => last.coeff = last.coeff.saturating_add(t.coeff),
                _ => out.push(t),
            }
        }
        out.retain(|t| t.coeff != 0);
        Dim { terms: out, constant }
    }

    /// Floor division by something that is at least 1.
    pub fn floordiv(&self, d: &Dim) -> Dim {
        if let Some(c) = d.as_const().map(i128::from) {
            if c >= 1 {
                return self.floordiv_const(c);
            }
        } else {
            let one = |t: &Term| Dim { terms: vec![t.clone()], constant: 0 };
            let (mut quot, mut rest) = (Dim::from(0), Dim::from(self.constant));
            for t in &self.terms {
                match one(t).div_exact(d) {
                    Some(q) => quot = quot + q,
                    None => rest = rest + one(t),
                }
            }
            if rest.is(0) {
                return quot;
            }
            if quot != Dim::from(0) {
                return quot + rest.floordiv(d);
            }
        }
        Dim::atom(Atom::FloorDiv(Box::new(self.clone()), Box::new(d.clone())))
    }

    fn floordiv_const(&self, c: i128) -> Dim {
        if c == 1 {
            return self.clone();
        }
        let (whole, rest): (Vec<Term>, Vec<Term>) =
            self.terms.iter().cloned().partition(|t| t.coeff % c == 0);
        let quot = Dim {
            terms: whole.into_iter().map(|t| Term { coeff: t.coeff / c, ..t }).collect(),
            constant: self.constant.div_euclid(c),
        };
        if rest.is_empty() {
            return quot;
        }
        let rest = Dim { terms: rest, constant: self.constant.rem_euclid(c) };
        if let ([Term { atoms, coeff: 1 }], k) = (&rest.terms[..], rest.constant)
            && let [Atom::FloorDiv(x, d)] = &atoms[..]
            && let Some(dc) = d.as_const().filter(|dc| *dc >= 1)
            && let Some(cd) = c.checked_mul(i128::from(dc))
        {
            return quot + (Dim::from(k.saturating_mul(i128::from(dc))) + (**x).clone()).floordiv_const(cd);
        }
        quot + Dim::atom(Atom::FloorDiv(Box::new(rest), Box::new(Dim::from(c))))
    }

    /// Remainder of floor division: `self - d * floordiv(self, d)`.
    pub fn rem(&self, d: &Dim) -> Dim {
        self.clone() - d.clone() * self.floordiv(d)
    }

    /// Smaller of two.
    pub fn dmin(&self, o: &Dim) -> Dim {
        match (self.clone() - o.clone()).as_const() {
            Some(d) if d <= 0 => self.clone(),
            Some(_) => o.clone(),
            None => {
                let (a, b) = if self <= o { (self, o) } else { (o, self) };
                Dim::atom(Atom::Min(Box::new(a.clone()), Box::new(b.clone())))
            }
        }
    }

    /// Greater of two.
    pub fn dmax(&self, o: &Dim) -> Dim {
        match (self.clone() - o.clone()).as_const() {
            Some(d) if d >= 0 => self.clone(),
            Some(_) => o.clone(),
            None => {
                let (a, b) = if self <= o { (self, o) } else { (o, self) };
                Dim::atom(Atom::Max(Box::new(a.clone()), Box::new(b.clone())))
            }
        }
    }

    /// Broadcast of two dims (numpy rule). The caller has proved or guarded that they broadcast.
    pub fn bcast(&self, o: &Dim) -> Dim {
        if self == o || o.is(1) {
            return self.clone();
        }
        if self.is(1) {
            return o.clone();
        }
        // x and min(x, c) broadcast only where they are equal, unless c may be 1
        for (x, low) in [(self, o), (o, self)] {
            if let Some(Atom::Min(a, b)) = low.as_atom()
                && [(a, b), (b, a)].iter().any(|(a, c)| ***a == *x && c.as_const().is_some_and(|c| c > 1))
            {
                return x.clone();
            }
        }
        let (a, b) = if self <= o { (self, o) } else { (o, self) };
        Dim::atom(Atom::Bcast(Box::new(a.clone()), Box::new(b.clone())))
    }

    /// `self / d` when the normal form shows it to be exact: `d` is one term or a number dividing every term.
    pub fn div_exact(&self, d: &Dim) -> Option<Dim> {
        if self == d {
            return Some(Dim::from(1));
        }
        let (dc, datoms): (i128, &[Atom]) = match (&d.terms[..], d.constant) {
            ([], c) => (c, &[]),
            ([t], 0) => (t.coeff, &t.atoms),
            _ => return None,
        };
        if dc == 0 || (self.constant != 0 && (!datoms.is_empty() || self.constant.checked_rem(dc) != Some(0)))
        {
            return None;
        }
        let mut terms = Vec::with_capacity(self.terms.len());
        for t in &self.terms {
            let mut atoms = t.atoms.clone();
            for a in datoms {
                let at = atoms.iter().position(|x| x == a)?;
                atoms.remove(at);
            }
            if t.coeff.checked_rem(dc) != Some(0) {
                return None;
            }
            terms.push(Term { atoms, coeff: t.coeff / dc });
        }
        let (consts, terms): (Vec<Term>, Vec<Term>) = terms.into_iter().partition(|t| t.atoms.is_empty());
        let extra: i128 = consts.iter().map(|t| t.coeff).sum();
        Some(Dim::from_terms(terms, self.constant / dc + extra))
    }

    /// Value with every atom's value from `leaf`, which is asked for symbols, labels and values.
    pub fn eval(&self, leaf: &dyn Fn(&Atom) -> Option<i64>) -> Result<i64, DimError> {
        let v = self.eval_wide(leaf)?;
        i64::try_from(v).map_err(|_| DimError::Overflow(self.to_string()))
    }

    fn eval_wide(&self, leaf: &dyn Fn(&Atom) -> Option<i64>) -> Result<i128, DimError> {
        let big = || DimError::Overflow(self.to_string());
        let mut sum = self.constant;
        for t in &self.terms {
            let mut p = t.coeff;
            for a in &t.atoms {
                let v = match a {
                    Atom::Sym(_) | Atom::Label(_) | Atom::Val(_) => {
                        i128::from(leaf(a).ok_or_else(|| DimError::Unbound(a.to_string()))?)
                    }
                    Atom::FloorDiv(x, d) => {
                        let d = d.eval_wide(leaf)?;
                        if d < 1 {
                            return Err(DimError::Division(d, self.to_string()));
                        }
                        x.eval_wide(leaf)?.div_euclid(d)
                    }
                    Atom::Min(x, y) => x.eval_wide(leaf)?.min(y.eval_wide(leaf)?),
                    Atom::Max(x, y) => x.eval_wide(leaf)?.max(y.eval_wide(leaf)?),
                    Atom::Bcast(x, y) => match (x.eval_wide(leaf)?, y.eval_wide(leaf)?) {
                        (a, b) if a == b || b == 1 => a,
                        (1, b) => b,
                        (a, b) => return Err(DimError::Broadcast(a, b)),
                    },
                };
                p = p.checked_mul(v).ok_or_else(big)?;
            }
            sum = sum.checked_add(p).ok_or_else(big)?;
        }
        Ok(sum)
    }

    /// Rebuilds the expression with leaves replaced where `f` gives something, simplifying again.
    pub fn subst(&self, f: &dyn Fn(&Atom) -> Option<Dim>) -> Dim {
        self.rebuild(f, None)
    }

    /// Simplifies with knowledge of the leaves' ranges: `floordiv(x, c)` with x in [0, c) is 0, decided min and max.
    pub fn simplify(&self, range: &dyn Fn(&Atom) -> (i128, i128)) -> Dim {
        self.rebuild(&|_| None, Some(range))
    }

    fn rebuild(&self, f: &dyn Fn(&Atom) -> Option<Dim>, range: Range<'_>) -> Dim {
        let mut sum = Dim::from(self.constant);
        for t in &self.terms {
            let mut p = Dim::from(t.coeff);
            for a in &t.atoms {
                let go = |d: &Dim| d.rebuild(f, range);
                let v = match a {
                    Atom::Sym(_) | Atom::Label(_) | Atom::Val(_) => {
                        f(a).unwrap_or_else(|| Dim::atom(a.clone()))
                    }
                    Atom::FloorDiv(x, d) => divide_in_range(&go(x), &go(d), range),
                    Atom::Min(x, y) => pick_in_range(&go(x), &go(y), true, range),
                    Atom::Max(x, y) => pick_in_range(&go(x), &go(y), false, range),
                    Atom::Bcast(x, y) => go(x).bcast(&go(y)),
                };
                p = p * v;
            }
            sum = sum + p;
        }
        sum
    }

    /// Calls `f` on every leaf (symbol, label, value), inner ones too.
    pub fn leaves(&self, f: &mut dyn FnMut(&Atom)) {
        for a in self.terms.iter().flat_map(|t| &t.atoms) {
            match a {
                Atom::Sym(_) | Atom::Label(_) | Atom::Val(_) => f(a),
                Atom::FloorDiv(x, y) | Atom::Min(x, y) | Atom::Max(x, y) | Atom::Bcast(x, y) => {
                    x.leaves(f);
                    y.leaves(f);
                }
            }
        }
    }

    /// True if some leaf satisfies `f`.
    pub fn any_leaf(&self, f: impl Fn(&Atom) -> bool) -> bool {
        let mut hit = false;
        self.leaves(&mut |a| hit |= f(a));
        hit
    }

    /// `(coefficient, rest)` with `self = coefficient * label + rest` and the label in neither; None if not affine in it.
    pub fn affine(&self, label: u32) -> Option<(Dim, Dim)> {
        let mine = |a: &Atom| *a == Atom::Label(label);
        let (mut co, mut rest) = (Vec::new(), Vec::new());
        for t in &self.terms {
            let mut atoms = t.atoms.clone();
            if let Some(at) = atoms.iter().position(mine) {
                atoms.remove(at);
                co.push(Term { atoms: atoms.clone(), coeff: t.coeff });
            } else {
                rest.push(t.clone());
            }
            let inner = Dim { terms: vec![Term { atoms, coeff: 1 }], constant: 0 };
            if inner.any_leaf(mine) {
                return None;
            }
        }
        let (consts, terms): (Vec<Term>, Vec<Term>) = co.into_iter().partition(|t| t.atoms.is_empty());
        let c = consts.iter().map(|t| t.coeff).sum();
        Some((Dim::from_terms(terms, c), Dim { terms: rest, constant: self.constant }))
    }

    /// An interval holding every value, given an interval for each leaf.
    pub fn interval(&self, leaf: &dyn Fn(&Atom) -> (i128, i128)) -> (i128, i128) {
        let clamp = |v: i128| v.clamp(-Dim::FAR, Dim::FAR);
        let (mut lo, mut hi) = (self.constant, self.constant);
        for t in &self.terms {
            let (mut a, mut b) = (t.coeff, t.coeff);
            for atom in &t.atoms {
                let (x, y) = atom_interval(atom, leaf);
                let c = [a.saturating_mul(x), a.saturating_mul(y), b.saturating_mul(x), b.saturating_mul(y)];
                (a, b) = c.iter().fold((i128::MAX, i128::MIN), |(l, h), &v| (l.min(v), h.max(v)));
                (a, b) = (clamp(a), clamp(b));
            }
            (lo, hi) = (clamp(lo.saturating_add(a)), clamp(hi.saturating_add(b)));
        }
        (lo, hi)
    }
}

fn atom_interval(atom: &Atom, leaf: &dyn Fn(&Atom) -> (i128, i128)) -> (i128, i128) {
    match atom {
        Atom::Sym(_) | Atom::Label(_) | Atom::Val(_) => leaf(atom),
        Atom::FloorDiv(x, d) => {
            let ((xl, xh), (dl, dh)) = (x.interval(leaf), d.interval(leaf));
            let (dl, dh) = (dl.max(1), dh.max(1));
            let c = [xl.div_euclid(dl), xl.div_euclid(dh), xh.div_euclid(dl), xh.div_euclid(dh)];
            c.iter().fold((i128::MAX, i128::MIN), |(l, h), &v| (l.min(v), h.max(v)))
        }
        Atom::Min(x, y) => {
            let ((a, b), (c, d)) = (x.interval(leaf), y.interval(leaf));
            (a.min(c), b.min(d))
        }
        Atom::Max(x, y) => {
            let ((a, b), (c, d)) = (x.interval(leaf), y.interval(leaf));
            (a.max(c), b.max(d))
        }
        Atom::Bcast(x, y) => {
            let ((a, b), (c, d)) = (x.interval(leaf), y.interval(leaf));
            (a.min(c), b.max(d))
        }
    }
}

type Range<'a> = Option<&'a dyn Fn(&Atom) -> (i128, i128)>;

fn divide_in_range(x: &Dim, d: &Dim, range: Range<'_>) -> Dim {
    let q = x.floordiv(d);
    let Some(range) = range else { return q };
    if let Some(Atom::FloorDiv(x, d)) = q.as_atom() {
        let lo = x.interval(range).0;
        if lo >= 0 && ((**d).clone() - (**x).clone()).interval(range).0 >= 1 {
            return Dim::from(0);
        }
        return q;
    }
    let mut sum = Dim::from(q.constant);
    for (c, atoms) in q.terms() {
        let mut p = Dim::from(c);
        for a in atoms {
            p = p * match a {
                Atom::FloorDiv(x, d) if q.terms.len() > 1 || q.constant != 0 => {
                    divide_in_range(x, d, Some(range))
                }
                _ => Dim::atom(a.clone()),
            };
        }
        sum = sum + p;
    }
    sum
}

fn pick_in_range(x: &Dim, y: &Dim, min: bool, range: Range<'_>) -> Dim {
    if let Some(range) = range {
        let (lo, hi) = (y.clone() - x.clone()).interval(range);
        if lo >= 0 {
            return if min { x.clone() } else { y.clone() };
        }
        if hi <= 0 {
            return if min { y.clone() } else { x.clone() };
        }
    }
    if min { x.dmin(y) } else { x.dmax(y) }
}

impl From<i64> for Dim {
    fn from(v: i64) -> Dim {
        Dim { terms: Vec::new(), constant: i128::from(v) }
    }
}

impl From<i128> for Dim {
    fn from(v: i128) -> Dim {
        Dim { terms: Vec::new(), constant: v }
    }
}

impl From<usize> for Dim {
    fn from(v: usize) -> Dim {
        Dim { terms: Vec::new(), constant: v as i128 }
    }
}

impl From<i32> for Dim {
    fn from(v: i32) -> Dim {
        Dim { terms: Vec::new(), constant: i128::from(v) }
    }
}

impl Add for Dim {
    type Output = Dim;
    fn add(mut self, o: Dim) -> Dim {
        let constant = self.constant.saturating_add(o.constant);
        if o.terms.is_empty() {
            self.constant = constant;
            return self;
        }
        self.terms.extend(o.terms);
        Dim::from_terms(self.terms, constant)
    }
}

impl Neg for Dim {
    type Output = Dim;
    fn neg(self) -> Dim {
        self * Dim::from(-1)
    }
}

impl Sub for Dim {
    type Output = Dim;
    fn sub(self, o: Dim) -> Dim {
        self + (-o)
    }
}

impl Mul for Dim {
    type Output = Dim;
    fn mul(self, o: Dim) -> Dim {
        let mut terms = Vec::new();
        let one = |d: &Dim| {
            let mut v: Vec<Term> = d.terms.clone();
            if d.constant != 0 {
                v.push(Term { atoms: Vec::new(), coeff: d.constant });
            }
            v
        };
        let mut constant = 0i128;
        for a in one(&self) {
            for b in one(&o) {
                let mut atoms = a.atoms.clone();
                atoms.extend(b.atoms.iter().cloned());
                atoms.sort();
                let coeff = a.coeff.saturating_mul(b.coeff);
                if atoms.is_empty() {
                    constant = constant.saturating_add(coeff);
                } else {
                    terms.push(Term { atoms, coeff });
                }
            }
        }
        Dim::from_terms(terms, constant)
    }
}

impl std::iter::Product for Dim {
    fn product<I: Iterator<Item = Dim>>(iter: I) -> Dim {
        iter.fold(Dim::from(1), |a, b| a * b)
    }
}

impl std::iter::Sum for Dim {
    fn sum<I: Iterator<Item = Dim>>(iter: I) -> Dim {
        iter.fold(Dim::from(0), |a, b| a + b)
    }
}

/// True if `s` can be printed without quotes as a name in text form.
pub(crate) fn is_plain_name(s: &str) -> bool {
    let mut c = s.chars();
    c.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && c.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !matches!(s, "floordiv" | "min" | "max" | "bcast")
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Sym(s) if is_plain_name(s) => f.write_str(s),
            Atom::Sym(s) => write!(f, "{:?}", &**s),
            Atom::Label(i) => write!(f, "#{i}"),
            Atom::Val(i) => write!(f, "${i}"),
            Atom::FloorDiv(a, b) => write!(f, "floordiv({a}, {b})"),
            Atom::Min(a, b) => write!(f, "min({a}, {b})"),
            Atom::Max(a, b) => write!(f, "max({a}, {b})"),
            Atom::Bcast(a, b) => write!(f, "bcast({a}, {b})"),
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for t in &self.terms {
            match (first, t.coeff.cmp(&0)) {
                (true, Ordering::Less) => f.write_str("-")?,
                (false, Ordering::Less) => f.write_str(" - ")?,
                (false, _) => f.write_str(" + ")?,
                _ => {}
            }
            first = false;
            let c = t.coeff.unsigned_abs();
            if c != 1 {
                write!(f, "{c}*")?;
            }
            for (i, a) in t.atoms.iter().enumerate() {
                if i > 0 {
                    f.write_str("*")?;
                }
                write!(f, "{a}")?;
            }
        }
        match (first, self.constant) {
            (true, c) => write!(f, "{c}"),
            (false, 0) => Ok(()),
            (false, c) if c < 0 => write!(f, " - {}", c.unsigned_abs()),
            (false, c) => write!(f, " + {c}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form_cancels_and_splits_division() {
        let (n, l) = (Dim::sym("n"), Dim::label(0));
        assert_eq!((n.clone() + Dim::from(3)) - n.clone(), Dim::from(3));
        let d = (Dim::from(256) * l.clone() + Dim::label(1)).floordiv(&Dim::from(64));
        assert_eq!(d.to_string(), "4*#0 + floordiv(#1, 64)");
        assert_eq!((n.clone() * Dim::from(64)).floordiv(&n), Dim::from(64));
        assert_eq!(l.floordiv(&Dim::from(4)).floordiv(&Dim::from(8)), l.floordiv(&Dim::from(32)));
        let by_zero = l.floordiv(&Dim::from(0));
        assert_eq!(by_zero.floordiv(&Dim::from(4)).to_string(), "floordiv(floordiv(#0, 0), 4)");
        let r = |a: &Atom| if *a == Atom::Label(1) { (0, 63) } else { (0, 1000) };
        assert_eq!(d.simplify(&r), Dim::from(4) * Dim::label(0));
    }

    #[test]
    fn affine_finds_the_coefficient() {
        let e = Dim::sym("n") * Dim::label(2) + Dim::label(1) * Dim::from(3) + Dim::from(5);
        let (c, rest) = e.affine(2).unwrap();
        assert_eq!((c, rest.to_string()), (Dim::sym("n"), "3*#1 + 5".to_string()));
        assert!(e.floordiv(&Dim::from(2)).affine(2).is_none());
    }
}
