//! Padding that a whole block does not meet: from the conditions of a stage's loads, a cheap condition for all steps of the
//! sum and all rows and lanes of a block at once. Where it holds, the block's reads need no condition of their own. What
//! must not be here: what is done with a block.

use super::build::{Op, R, V};
use super::emit::Emit;
use super::stage::Copies;
use crate::kernel::{Mode, Stage};
use inkwell::IntPredicate;
use tgc_ir::types::{Atom, Dim, Pred};

/// Values of a label that are tried one by one where a condition is not linear in it.
const MOST_VALUES: i64 = 64;
/// More tests than these are no longer cheap.
const MOST_TESTS: usize = 64;

/// Names in conditions: a row of the block, and the first position of a vector.
fn row_name(i: usize) -> String {
    format!("%row {i}")
}

fn lane_name(i: usize) -> String {
    format!("%lanes {i}")
}

impl<'c> Emit<'c, '_> {
    /// A condition under which no read of the copies' sums is filled; None where none is found or nothing is filled.
    pub(super) fn all_inside(&mut self, s: &Stage, c: &Copies<'c>) -> R<Option<V<'c>>> {
        let mut tests = Vec::new();
        for l in &s.loads {
            let Mode::Fill(p, _) = &l.mode else { continue };
            if add(&mut tests, s, c, p).is_none() {
                return Ok(None);
            }
        }
        if tests.is_empty() {
            return Ok(None);
        }
        if let Some((_, at)) = &c.rows {
            for (i, row) in at.iter().enumerate() {
                self.named.insert(row_name(i), (*row, c.depth));
            }
        }
        for (i, v) in c.vectors.iter().enumerate() {
            self.named.insert(lane_name(i), (v.base, v.depth));
        }
        let mut all: V<'c> = self.ir.ctx.bool_type().const_int(1, false).into();
        for t in tests {
            let t = self.dim(&t)?;
            let ok = self.ir.icmp(IntPredicate::SGE, t, self.ir.i64(0))?;
            all = self.ir.op(Op::And, all, ok)?;
        }
        Ok(Some(all))
    }
}

/// Dims that are at least 0 wherever no read is filled, as far as conditions are comparisons.
pub(super) fn margins(s: &Stage) -> Vec<Dim> {
    let fills = s.loads.iter().filter_map(|l| match &l.mode {
        Mode::Fill(p, _) => Some(p),
        _ => None,
    });
    fills.flat_map(parts).filter_map(|t| if let Pred::Le(x, y) = t { Some(y - x) } else { None }).collect()
}

/// The conditions that must hold together.
fn parts(p: &Pred) -> Vec<Pred> {
    match p {
        Pred::And(v) => v.to_vec(),
        p => vec![p.clone()],
    }
}

/// Adds dims that are all at least 0 only if the condition holds for all steps of the sum, all rows and all lanes.
fn add(tests: &mut Vec<Dim>, s: &Stage, c: &Copies<'_>, p: &Pred) -> Option<()> {
    for t in parts(p) {
        let Pred::Le(x, y) = t else { return None };
        let mut margins = vec![y - x];
        if margins[0].any_leaf(|a| matches!(a, Atom::Val(_))) {
            return None;
        }
        for (label, extent) in &s.red {
            let ends = |step: i64| Some(Dim::from(0.min(step.checked_mul(extent.as_const()? - 1)?)));
            let values = extent.as_const().filter(|n| (1..=MOST_VALUES).contains(n));
            let values = values.map(|n| (0..n).map(Dim::from).collect());
            margins = over(margins, *label, &ends, values)?;
        }
        if let Some((label, at)) = &c.rows {
            let last = at.len() - 1;
            let ends =
                |step: i64| Some(Dim::from(step) * Dim::sym(&row_name(if step >= 0 { 0 } else { last })));
            let values = (0..=last).map(|i| Dim::sym(&row_name(i))).collect();
            margins = over(margins, *label, &ends, Some(values))?;
        }
        if let (Some(first), Some(last)) = (c.vectors.first(), c.vectors.last()) {
            let end = Dim::sym(&lane_name(c.vectors.len() - 1)) + Dim::from(i64::from(last.width) - 1);
            let ends = |step: i64| {
                Some(Dim::from(step) * if step >= 0 { Dim::sym(&lane_name(0)) } else { end.clone() })
            };
            margins = over(margins, first.label, &ends, None)?;
        }
        for m in margins {
            least(tests, m);
        }
        if tests.len() > MOST_TESTS {
            return None;
        }
    }
    Some(())
}

/// The margins for all values of a label: `ends` gives the least of a multiple of it, `values` all of them, for margins that
/// are not linear in it.
fn over(
    margins: Vec<Dim>,
    label: u32,
    ends: &dyn Fn(i64) -> Option<Dim>,
    values: Option<Vec<Dim>>,
) -> Option<Vec<Dim>> {
    let mut out = Vec::new();
    for m in margins {
        let step = m.affine(label).and_then(|(step, rest)| Some((step.as_const()?, rest)));
        match step {
            Some((0, rest)) => least(&mut out, rest),
            Some((step, rest)) => least(&mut out, rest + ends(step)?),
            None => {
                for v in values.as_ref()? {
                    least(&mut out, m.subst(&|a| (*a == Atom::Label(label)).then(|| v.clone())));
                }
            }
        }
        if out.len() > MOST_TESTS {
            return None;
        }
    }
    Some(out)
}

/// Adds a margin, unless another is always at most as great; of two that differ by a constant the smaller stays.
fn least(margins: &mut Vec<Dim>, m: Dim) {
    if m.as_const().is_some_and(|n| n >= 0) {
        return;
    }
    for o in margins.iter_mut() {
        if let Some(more) = (m.clone() - o.clone()).as_const() {
            if more < 0 {
                *o = m;
            }
            return;
        }
    }
    margins.push(m);
}
