//! What guards say about single symbols. A guard often comes after the sizes it would have simplified (a table of 512
//! positions is sliced first and compared later), so the import runs again with the ranges that follow. What must not be
//! here: the import.

use tgc_ir::graph::{Graph, Guard};
use tgc_ir::types::{Atom, Dim, Pred, SymTable};

/// Guards that bound symbols, in the order found.
#[derive(Default)]
pub(crate) struct Bounds(Vec<Guard>);

impl Bounds {
    /// Takes the graph's guards that narrow the range of a symbol; false if there are none, or none can hold.
    pub(crate) fn learn(&mut self, g: &Graph) -> bool {
        let mut symbols = g.symbols.clone();
        let narrows = |guard: &&Guard| narrow(&mut symbols, &guard.pred);
        let more: Vec<Guard> = g.guards().iter().filter(narrows).cloned().collect();
        let possible = symbols.iter().all(|(_, i)| i.lo <= i.hi);
        let any = possible && !more.is_empty();
        if any {
            self.0.extend(more);
        }
        any
    }

    /// Puts the guards into a new graph, so that they are told with their reasons, and narrows its symbols.
    pub(crate) fn apply(&self, g: &mut Graph) {
        for guard in &self.0 {
            g.guard(guard.clone());
        }
        for guard in &self.0 {
            narrow(&mut g.symbols, &guard.pred);
        }
    }
}

/// Narrows ranges to what the predicate leaves; true if one changed.
fn narrow(symbols: &mut SymTable, pred: &Pred) -> bool {
    match pred {
        Pred::Le(a, b) => not_negative(symbols, &(b.clone() - a.clone())),
        Pred::Broadcastable(a, b) => [(a, b), (b, a)].iter().any(|(a, b)| capped(symbols, a, b)),
        Pred::And(all) => all.iter().fold(false, |any, p| narrow(symbols, p) | any),
        Pred::True | Pred::Eq(..) | Pred::Or(_) | Pred::Not(_) => false,
    }
}

/// `min(c, d)` and `d` broadcast only where `d <= c`: beyond, the first is c, which is neither `d` nor 1 if c is 2 or more.
fn capped(symbols: &mut SymTable, a: &Dim, b: &Dim) -> bool {
    let mut terms = a.terms();
    let (Some((1, [Atom::Min(x, y)])), None, 0) = (terms.next(), terms.next(), a.constant()) else {
        return false;
    };
    let (x, y): (&Dim, &Dim) = (x, y);
    [(x, y), (y, x)].iter().any(|(cap, rest)| {
        let cut = *rest == b && cap.as_const().is_some_and(|c| c >= 2);
        cut && not_negative(symbols, &((*cap).clone() - b.clone()))
    })
}

/// Narrows the symbol of `k * symbol + c` so that the sum is 0 or more.
fn not_negative(symbols: &mut SymTable, sum: &Dim) -> bool {
    let mut terms = sum.terms();
    let (Some((k, [Atom::Sym(name)])), None) = (terms.next(), terms.next()) else { return false };
    let c = sum.constant();
    let Some(info) = symbols.get_mut(name) else { return false };
    let (mut lo, mut hi) = (i128::from(info.lo), i128::from(info.hi));
    if k > 0 {
        lo = lo.max(-c.div_euclid(k));
    } else {
        hi = hi.min(c.div_euclid(-k));
    }
    let (Ok(lo), Ok(hi)) = (i64::try_from(lo), i64::try_from(hi)) else { return false };
    let changed = (info.lo, info.hi) != (lo, hi);
    (info.lo, info.hi) = (lo, hi);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use tgc_ir::types::SymInfo;

    fn after(preds: &[Pred]) -> (i64, i64) {
        let mut t = SymTable::default();
        t.insert("n", SymInfo::default());
        for p in preds {
            narrow(&mut t, p);
        }
        let i = t.get("n").unwrap();
        (i.lo, i.hi)
    }

    #[test]
    fn inequalities_round_to_whole_sizes() {
        let (n, d) = (Dim::sym("n"), |v: i64| Dim::from(v));
        let max = SymInfo::default().hi;
        assert_eq!(after(&[Pred::Le(d(1), d(64) * n.clone())]), (1, max));
        assert_eq!(after(&[Pred::Le(d(130), d(64) * n.clone())]), (3, max));
        assert_eq!(after(&[Pred::Le(d(3) * n.clone(), d(10))]), (0, 3));
        assert_eq!(after(&[Pred::Le(d(5), n.clone() + d(2)), Pred::Le(n.clone(), d(7))]), (3, 7));
        assert_eq!(after(&[Pred::Le(d(-5), n.clone())]), (0, max));
        assert_eq!(after(&[Pred::Le(n.clone() * n.clone(), d(9))]), (0, max));
        assert_eq!(after(&[Pred::Not(Box::new(Pred::Le(n, d(9))))]), (0, max));
    }

    #[test]
    fn a_table_cut_to_a_size_must_hold_it() {
        let (n, max) = (Dim::sym("n"), SymInfo::default().hi);
        let cut = |c: i64| Dim::from(c).dmin(&n);
        assert_eq!(after(&[Pred::Broadcastable(cut(512), n.clone())]), (0, 512));
        assert_eq!(after(&[Pred::Broadcastable(n.clone(), cut(512))]), (0, 512));
        // 1 broadcasts with anything
        assert_eq!(after(&[Pred::Broadcastable(cut(1), n.clone())]), (0, max));
        assert_eq!(after(&[Pred::Broadcastable(cut(512), Dim::sym("m"))]), (0, max));
    }
}
