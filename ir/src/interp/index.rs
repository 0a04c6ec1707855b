//! Index maps made ready for loops: symbols replaced by numbers, affine parts as coefficients, conditions as tests, and
//! the walk over boxes of labels row by row. No tensor data is read here.

use crate::diag::Diag;
use crate::types::{Atom, Dim, DimError, Pred};
use std::ops::Range;

/// Gives the values of symbols.
pub(crate) type Leaf<'a> = &'a dyn Fn(&Atom) -> Option<i64>;

/// What index expressions may mention: labels with their ranges (slots from 0), then values (`$k` is slot labels + k).
pub(crate) struct Slots<'a> {
    leaf: Leaf<'a>,
    ranges: Vec<(i64, i64)>,
    vals: usize,
    /// Some label has no value: nothing is read.
    empty: bool,
}

/// An integer expression over slots: affine part and the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offset {
    base: i64,
    lin: Vec<(usize, i64)>,
    rest: Vec<(i64, Vec<Factor>)>,
}

#[derive(Clone, Debug)]
enum Factor {
    Slot(usize),
    Div(Box<Offset>, i64),
    Min(Box<Offset>, Box<Offset>),
    Max(Box<Offset>, Box<Offset>),
}

/// A condition over slots.
#[derive(Clone, Debug)]
pub(crate) enum Cond {
    /// All of these are at least 0 (none: always).
    All(Vec<Offset>),
    /// Anything else.
    Tree(Test),
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    NotNegative(Offset),
    Zero(Offset),
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
}

/// A dim that has no value, as a diagnostic.
pub(crate) fn dim_error(e: &DimError) -> Diag {
    let d = Diag::error("E-RUN-013", format!("a size cannot be computed: {e}"));
    match e {
        DimError::Unbound(_) => {
            d.help("a symbol gets its value from an input's shape or a bind_dim node before its first use")
        }
        _ => d.help("the sizes of the inputs do not fit this model"),
    }
}

impl<'a> Slots<'a> {
    /// Labels of these extents and `vals` values.
    pub(crate) fn new(leaf: Leaf<'a>, extents: &[usize], vals: usize) -> Slots<'a> {
        let ranges = extents.iter().map(|&e| (0, (e as i64 - 1).max(0))).collect();
        Slots { leaf, ranges, vals, empty: extents.contains(&0) }
    }

    /// Labels with inclusive ranges of their own.
    pub(crate) fn in_box(leaf: Leaf<'a>, lo: &[i64], hi: &[i64]) -> Slots<'a> {
        let ranges = lo.iter().zip(hi).map(|(&l, &h)| (l, (h - 1).max(l))).collect();
        Slots { leaf, ranges, vals: 0, empty: false }
    }

    /// Number of slots.
    pub(crate) fn count(&self) -> usize {
        self.ranges.len() + self.vals
    }

    /// A size without labels.
    pub(crate) fn number(&self, d: &Dim) -> Result<i64, Diag> {
        d.eval(self.leaf).map_err(|e| dim_error(&e))
    }

    fn range(&self, a: &Atom) -> (i128, i128) {
        match a {
            Atom::Label(i) => match self.ranges.get(*i as usize) {
                Some(&(l, h)) => (i128::from(l), i128::from(h)),
                None => (-Dim::FAR, Dim::FAR),
            },
            _ => (-Dim::FAR, Dim::FAR),
        }
    }

    fn resolve(&self, d: &Dim) -> Dim {
        let leaf = |a: &Atom| match a {
            Atom::Sym(_) => (self.leaf)(a).map(Dim::from),
            _ => None,
        };
        d.subst(&leaf).simplify(&|a| self.range(a))
    }

    /// The expression ready for evaluation.
    pub(crate) fn offset(&self, d: &Dim) -> Result<Offset, Diag> {
        self.compile(&self.resolve(d))
    }

    fn compile(&self, d: &Dim) -> Result<Offset, Diag> {
        let far = || dim_error(&DimError::Overflow(d.to_string()));
        let small = |v: i128| i64::try_from(v).map_err(|_| far());
        let mut out = Offset { base: small(d.constant())?, ..Offset::default() };
        for (coeff, atoms) in d.terms() {
            let mut factors = atoms.iter().map(|a| self.factor(a)).collect::<Result<Vec<_>, _>>()?;
            let coeff = small(coeff)?;
            match &factors[..] {
                [Factor::Slot(s)] => out.lin.push((*s, coeff)),
                _ => out.rest.push((coeff, std::mem::take(&mut factors))),
            }
        }
        Ok(out)
    }

    fn factor(&self, a: &Atom) -> Result<Factor, Diag> {
        let both = |x: &Dim, y: &Dim| Ok::<_, Diag>((Box::new(self.compile(x)?), Box::new(self.compile(y)?)));
        let labels = self.ranges.len();
        Ok(match a {
            Atom::Label(i) if (*i as usize) < labels => Factor::Slot(*i as usize),
            Atom::Val(i) if (*i as usize) < self.vals => Factor::Slot(labels + *i as usize),
            Atom::FloorDiv(x, d) => match d.as_const() {
                Some(c) if c >= 1 => Factor::Div(Box::new(self.compile(x)?), c),
                Some(c) => return Err(dim_error(&DimError::Division(i128::from(c), a.to_string()))),
                None => return Err(dim_error(&DimError::Unbound(d.to_string()))),
            },
            Atom::Min(x, y) => both(x, y).map(|(x, y)| Factor::Min(x, y))?,
            Atom::Max(x, y) => both(x, y).map(|(x, y)| Factor::Max(x, y))?,
            Atom::Bcast(x, y) => {
                let (x, y) = (self.number(x)?, self.number(y)?);
                return Err(dim_error(&DimError::Broadcast(i128::from(x), i128::from(y))));
            }
            Atom::Sym(_) | Atom::Label(_) | Atom::Val(_) => {
                return Err(dim_error(&DimError::Unbound(a.to_string())));
            }
        })
    }

    /// Linear element number of a read at `index` in a dense operand of `shape`. Affine indices that leave the operand
    /// somewhere in the labels' box are an error, unless reads are conditional.
    pub(crate) fn linear(&self, index: &[Dim], shape: &[usize], conditional: bool) -> Result<Offset, Diag> {
        if index.len() != shape.len() {
            let msg = format!(
                "an index map has {} expressions for an operand of rank {}",
                index.len(),
                shape.len()
            );
            return Err(
                Diag::error("E-RUN-011", msg).help("this is a fault in the op's lowering; please report it")
            );
        }
        let mut total = Dim::from(0);
        for ((d, &extent), stride) in index.iter().zip(shape).zip(super::value::strides(shape)) {
            let r = self.resolve(d);
            let affine = r.terms().all(|(_, atoms)| matches!(atoms, [Atom::Label(_)]));
            if affine && !conditional && !self.empty {
                let (lo, hi) = r.interval(&|a| self.range(a));
                if lo < 0 || hi >= extent as i128 {
                    let msg = format!("index `{d}` runs over {lo}..={hi} on an axis of extent {extent}");
                    return Err(
                        Diag::error("E-RUN-011", msg).help("the sizes of the inputs do not fit this node")
                    );
                }
            }
            total = total + r * Dim::from(stride);
        }
        self.compile(&total.simplify(&|a| self.range(a)))
    }

    /// A condition ready for evaluation.
    pub(crate) fn cond(&self, p: &Pred) -> Result<Cond, Diag> {
        Ok(match self.test(p)? {
            Test::And(v) if v.iter().all(|t| matches!(t, Test::NotNegative(_))) => Cond::All(
                v.into_iter()
                    .filter_map(|t| if let Test::NotNegative(o) = t { Some(o) } else { None })
                    .collect(),
            ),
            Test::NotNegative(o) => Cond::All(vec![o]),
            t => Cond::Tree(t),
        })
    }

    fn test(&self, p: &Pred) -> Result<Test, Diag> {
        let list = |v: &[Pred]| v.iter().map(|p| self.test(p)).collect::<Result<Vec<_>, _>>();
        Ok(match p {
            Pred::True => Test::And(vec![]),
            Pred::Le(a, b) => {
                let d = self.resolve(&(b.clone() - a.clone()));
                if d.interval(&|a| self.range(a)).0 >= 0 {
                    Test::And(vec![])
                } else {
                    Test::NotNegative(self.compile(&d)?)
                }
            }
            Pred::Eq(a, b) => Test::Zero(self.offset(&(a.clone() - b.clone()))?),
            Pred::Broadcastable(a, b) => {
                let one = |d: &Dim| self.offset(&(d.clone() - Dim::from(1))).map(Test::Zero);
                Test::Or(vec![Test::Zero(self.offset(&(a.clone() - b.clone()))?), one(a)?, one(b)?])
            }
            Pred::And(v) => {
                let mut flat = Vec::new();
                for t in list(v)? {
                    match t {
                        Test::And(inner) => flat.extend(inner),
                        t => flat.push(t),
                    }
                }
                Test::And(flat)
            }
            Pred::Or(v) => Test::Or(list(v)?),
            Pred::Not(p) => Test::Not(Box::new(self.test(p)?)),
        })
    }
}

impl Offset {
    /// An affine expression.
    pub(crate) fn affine(base: i64, lin: impl IntoIterator<Item = (usize, i64)>) -> Offset {
        Offset { base, lin: lin.into_iter().filter(|l| l.1 != 0).collect(), rest: Vec::new() }
    }

    /// Value at these slots.
    pub(crate) fn at(&self, at: &[i64]) -> i64 {
        let mut v = self.base;
        for &(s, c) in &self.lin {
            v = v.wrapping_add(at[s].wrapping_mul(c));
        }
        for (c, factors) in &self.rest {
            v = v.wrapping_add(factors.iter().fold(*c, |p, f| p.wrapping_mul(f.at(at))));
        }
        v
    }

    /// Step per unit of a slot, when the expression is affine in it (no slot: 0).
    pub(crate) fn stride(&self, slot: Option<usize>) -> Option<i64> {
        let Some(slot) = slot else { return Some(0) };
        if self.rest.iter().flat_map(|r| &r.1).any(|f| f.uses(slot)) {
            return None;
        }
        Some(self.lin.iter().find(|l| l.0 == slot).map_or(0, |l| l.1))
    }

    /// True if the slot occurs.
    pub(crate) fn uses(&self, slot: usize) -> bool {
        self.lin.iter().any(|l| l.0 == slot) || self.rest.iter().flat_map(|r| &r.1).any(|f| f.uses(slot))
    }
}

impl Factor {
    fn at(&self, at: &[i64]) -> i64 {
        match self {
            Factor::Slot(s) => at[*s],
            Factor::Div(x, d) => x.at(at).div_euclid(*d),
            Factor::Min(x, y) => x.at(at).min(y.at(at)),
            Factor::Max(x, y) => x.at(at).max(y.at(at)),
        }
    }

    fn uses(&self, slot: usize) -> bool {
        match self {
            Factor::Slot(s) => *s == slot,
            Factor::Div(x, _) => x.uses(slot),
            Factor::Min(x, y) | Factor::Max(x, y) => x.uses(slot) || y.uses(slot),
        }
    }
}

impl Test {
    fn at(&self, at: &[i64]) -> bool {
        match self {
            Test::NotNegative(o) => o.at(at) >= 0,
            Test::Zero(o) => o.at(at) == 0,
            Test::And(v) => v.iter().all(|t| t.at(at)),
            Test::Or(v) => v.iter().any(|t| t.at(at)),
            Test::Not(t) => !t.at(at),
        }
    }

    fn uses(&self, slot: usize) -> bool {
        match self {
            Test::NotNegative(o) | Test::Zero(o) => o.uses(slot),
            Test::And(v) | Test::Or(v) => v.iter().any(|t| t.uses(slot)),
            Test::Not(t) => t.uses(slot),
        }
    }
}

impl Cond {
    /// True if it always holds.
    pub(crate) fn always(&self) -> bool {
        matches!(self, Cond::All(v) if v.is_empty())
    }

    /// True if the slot occurs.
    pub(crate) fn uses(&self, slot: usize) -> bool {
        match self {
            Cond::All(v) => v.iter().any(|o| o.uses(slot)),
            Cond::Tree(t) => t.uses(slot),
        }
    }

    /// Calls `f` with the ranges of steps of the row where it holds: `at` is the row's start, `inner` the slot that
    /// grows, `len` its length.
    pub(crate) fn runs(
        &self,
        at: &mut [i64],
        inner: Option<usize>,
        len: usize,
        mut f: impl FnMut(&mut [i64], Range<usize>) -> Result<(), Diag>,
    ) -> Result<(), Diag> {
        if let Cond::All(v) = self
            && v.iter().all(|o| o.stride(inner).is_some())
        {
            let (mut lo, mut hi) = (0i64, len as i64);
            for o in v {
                let (start, step) = (o.at(at), o.stride(inner).unwrap_or(0));
                match step {
                    0 if start < 0 => return Ok(()),
                    0 => {}
                    s if s > 0 && start < 0 => lo = lo.max((-start + s - 1) / s),
                    s if s > 0 => {}
                    s => hi = hi.min(if start < 0 { 0 } else { start / -s + 1 }),
                }
            }
            return if lo < hi { f(at, lo as usize..hi as usize) } else { Ok(()) };
        }
        let slot = inner.map(|s| (s, at[s]));
        let mut open: Option<usize> = None;
        for k in 0..=len {
            if let Some((s, start)) = slot {
                at[s] = start + k as i64;
            }
            let holds = k < len
                && match self {
                    Cond::All(v) => v.iter().all(|o| o.at(at) >= 0),
                    Cond::Tree(t) => t.at(at),
                };
            match (open, holds) {
                (None, true) => open = Some(k),
                (Some(from), false) => {
                    if let Some((s, start)) = slot {
                        at[s] = start;
                    }
                    f(at, from..k)?;
                    open = None;
                }
                _ => {}
            }
        }
        if let Some((s, start)) = slot {
            at[s] = start;
        }
        Ok(())
    }
}

/// A box of label values, walked in row-major order. Axes of extent 1 are fixed and not walked.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    axes: Vec<(usize, i64, usize)>,
    fixed: Vec<(usize, i64)>,
    size: usize,
}

impl Space {
    /// Slots `0..extents.len()` from 0.
    pub(crate) fn new(extents: &[usize]) -> Space {
        Space::of(extents.iter().enumerate().map(|(s, &e)| (s, 0, e)))
    }

    /// Axes as (slot, first value, extent), outermost first.
    pub(crate) fn of(axes: impl IntoIterator<Item = (usize, i64, usize)>) -> Space {
        let (mut walked, mut fixed, mut size) = (Vec::new(), Vec::new(), 1usize);
        for (s, lo, e) in axes {
            size = size.saturating_mul(e);
            if e == 1 { fixed.push((s, lo)) } else { walked.push((s, lo, e)) }
        }
        Space { axes: walked, fixed, size }
    }

    /// Number of points.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The slot that grows along a row; None when there is at most one point.
    pub(crate) fn inner(&self) -> Option<usize> {
        self.axes.last().map(|a| a.0)
    }

    /// Sets `at` to point number `n`.
    pub(crate) fn seek(&self, n: usize, at: &mut [i64]) {
        let mut n = n;
        for &(s, lo) in &self.fixed {
            at[s] = lo;
        }
        for &(s, lo, e) in self.axes.iter().rev() {
            at[s] = lo + (n % e.max(1)) as i64;
            n /= e.max(1);
        }
    }

    /// Walks points `start..start + n` in rows: `f(at, position of the row's first point from start, length)`. `f` may
    /// change `at` as it likes.
    pub(crate) fn walk(
        &self,
        at: &mut [i64],
        start: usize,
        n: usize,
        mut f: impl FnMut(&mut [i64], usize, usize) -> Result<(), Diag>,
    ) -> Result<(), Diag> {
        let n = n.min(self.size.saturating_sub(start));
        if n == 0 {
            return Ok(());
        }
        let Some(&(_, _, row)) = self.axes.last() else {
            self.seek(0, at);
            return f(at, 0, 1);
        };
        let mut now = vec![0usize; self.axes.len()];
        let mut left = start;
        for (x, a) in now.iter_mut().zip(&self.axes).rev() {
            *x = left % a.2;
            left /= a.2;
        }
        let last = now.len() - 1;
        let mut done = 0;
        while done < n {
            for &(s, lo) in &self.fixed {
                at[s] = lo;
            }
            for (x, a) in now.iter().zip(&self.axes) {
                at[a.0] = a.1 + *x as i64;
            }
            let len = (row - now[last]).min(n - done);
            f(at, done, len)?;
            done += len;
            now[last] = 0;
            for i in (0..last).rev() {
                now[i] += 1;
                if now[i] < self.axes[i].2 {
                    break;
                }
                now[i] = 0;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshape_of_a_flat_axis_becomes_affine() {
        let leaf = |a: &Atom| if matches!(a, Atom::Sym(_)) { Some(6) } else { None };
        let slots = Slots::new(&leaf, &[24], 0);
        let (l, s) = (Dim::label(0), Dim::sym("s"));
        let o = slots.linear(&[l.floordiv(&s), l.rem(&s)], &[4, 6], false).unwrap();
        assert_eq!(o.stride(Some(0)), Some(1));
        assert_eq!(o.at(&[17]), 17);
    }

    #[test]
    fn walking_crosses_rows() {
        let space = Space::of([(0, 0, 2), (1, 5, 1), (2, 1, 3)]);
        let mut seen = Vec::new();
        space
            .walk(&mut [0; 3], 2, 3, |at, pos, len| {
                seen.push((at.to_vec(), pos, len));
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, vec![(vec![0, 5, 3], 0, 1), (vec![1, 5, 1], 1, 2)]);
        let mut points = 0;
        Space::new(&[])
            .walk(&mut [], 0, 5, |_, _, n| {
                points += n;
                Ok(())
            })
            .unwrap();
        Space::new(&[3, 0]).walk(&mut [0; 2], 0, 5, |_, _, _| panic!("empty box")).unwrap();
        assert_eq!(points, 1);
    }

    #[test]
    fn conditions_give_ranges_or_runs() {
        let none = |_: &Atom| None;
        let slots = Slots::new(&none, &[8], 0);
        let x = Dim::label(0) * Dim::from(2) - Dim::from(3);
        let collect = |c: &Cond| {
            let mut out = Vec::new();
            c.runs(&mut [0], Some(0), 8, |_, r| {
                out.push(r);
                Ok(())
            })
            .unwrap();
            out
        };
        let c = slots.cond(&Pred::in_box(&x, &Dim::from(0), &Dim::from(8))).unwrap();
        assert!(matches!(c, Cond::All(_)));
        assert_eq!(collect(&c), vec![2..6]);
        let odd = slots.cond(&Pred::Eq(Dim::label(0).rem(&Dim::from(4)), Dim::from(1))).unwrap();
        assert_eq!(collect(&odd), vec![1..2, 5..6]);
        assert_eq!(collect(&slots.cond(&Pred::Not(Box::new(Pred::True))).unwrap()), vec![]);
    }

    #[test]
    fn affine_index_outside_its_axis_is_refused() {
        let none = |_: &Atom| None;
        let slots = Slots::new(&none, &[4], 0);
        let e = slots.linear(&[Dim::label(0) + Dim::from(2)], &[5], false).unwrap_err();
        assert_eq!(e.code, "E-RUN-011");
        assert!(
            slots.linear(&[Dim::sym("n")], &[5], false).unwrap_err().message.contains("`n` has no value")
        );
    }
}
