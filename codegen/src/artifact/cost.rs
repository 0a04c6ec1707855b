//! What a kernel does, counted from its stages: operations on elements, bytes of buffers, and from both the least work worth
//! a thread. Formulas over the kernel's dim parameters. What must not be here: measuring, or choosing schedules.
//!
//! An operation is one node of a scalar program other than arguments, constants and reinterpretations, functions such as
//! exp taken as the primitive operations they are lowered to; an fma, and a step of a contraction, are two. Conditions are
//! taken to hold. A buffer's bytes count once, and no more of them than the loads can reach.

use crate::kernel::{Buf, Item, Kernel, Kind, Stage};
use crate::schedule::{self, Schedule};
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::scalar::{ENode, Expr};
use tgc_ir::types::{Atom, Dim};

/// Least work of a thread in nanoseconds: handing work over and waiting for the last one costs about a tenth of it.
const GRAIN_NS: i64 = 5000;
/// What a thread does in a nanosecond, roughly: elements of the vector width in a contraction and elsewhere, bytes.
const CONTRACT_RATE: i64 = 4;
const MAP_RATE: i64 = 1;
const BYTE_RATE: i64 = 8;

/// Work of one launch.
pub(crate) struct Cost {
    /// Operations of each stage, in the order of [`Kernel::stages`].
    stages: Vec<Dim>,
    pub(crate) bytes: Dim,
}

impl Cost {
    /// Operations of all stages.
    pub(crate) fn flops(&self) -> Dim {
        self.stages.iter().fold(Dim::from(0), |sum, s| sum + s.clone())
    }
}

/// Counts a kernel whose functions are lowered.
pub(crate) fn of(kernel: &Kernel) -> Cost {
    let mut count = Count { kernel, stages: Vec::new(), touched: vec![Dim::from(0); kernel.args.len()] };
    let grid = kernel.grid.iter().enumerate().map(|(i, e)| (i as u32, Range::upto(e)));
    count.items(&kernel.body, &Dim::from(1), &grid.collect());
    let mut bytes = Dim::from(0);
    for (a, touched) in kernel.args.iter().zip(count.touched) {
        let all: Dim = a.dims.iter().cloned().product();
        bytes = bytes + touched.dmin(&all) * Dim::from(a.dtype.size());
    }
    Cost { stages: count.stages, bytes }
}

/// The least number of tiles worth giving to a thread.
pub(crate) fn grain(kernel: &Kernel, schedule: &Schedule, cost: &Cost) -> Dim {
    let mut ns = cost.bytes.floordiv(&Dim::from(BYTE_RATE));
    for ((stage, how), ops) in kernel.stages().into_iter().zip(&schedule.stages).zip(&cost.stages) {
        let rate = if matches!(stage.kind, Kind::Contract { .. }) { CONTRACT_RATE } else { MAP_RATE };
        ns = ns + ops.floordiv(&Dim::from(rate * i64::from(how.width.max(1))));
    }
    let tiles = schedule::tile_count(kernel, schedule);
    (tiles * Dim::from(GRAIN_NS)).floordiv(&ns.dmax(&Dim::from(1))).dmax(&Dim::from(1))
}

/// Values of a label: how many, and one in their middle.
#[derive(Clone)]
struct Range {
    extent: Dim,
    middle: Dim,
}

impl Range {
    fn upto(extent: &Dim) -> Range {
        Range { extent: extent.clone(), middle: extent.floordiv(&Dim::from(2)) }
    }
}

type Labels = BTreeMap<u32, Range>;

struct Count<'k> {
    kernel: &'k Kernel,
    stages: Vec<Dim>,
    /// Elements of each argument that loads and stores reach, some counted several times.
    touched: Vec<Dim>,
}

impl Count<'_> {
    fn items(&mut self, body: &[Item], rounds: &Dim, labels: &Labels) {
        for item in body {
            match item {
                Item::Stage(s) => self.stage(s, rounds, labels),
                Item::Loop { var, lo, hi, body } => {
                    let (lo, hi) = (typical(lo, labels), typical(hi, labels));
                    let extent = (hi.clone() - lo.clone()).dmax(&Dim::from(0));
                    let middle = (lo + hi).floordiv(&Dim::from(2));
                    let mut inside = labels.clone();
                    inside.insert(*var, Range { extent: extent.clone(), middle });
                    self.items(body, &(rounds.clone() * extent), &inside);
                }
            }
        }
    }

    fn stage(&mut self, s: &Stage, rounds: &Dim, labels: &Labels) {
        let mut labels = labels.clone();
        for (l, e) in s.inner.iter().chain(&s.red) {
            let extent = typical(e, &labels);
            labels.insert(*l, Range::upto(&extent));
        }
        let extent = |l: &u32| labels.get(l).map_or(Dim::from(1), |r| r.extent.clone());
        let points = s.over.iter().map(extent).chain(s.inner.iter().map(|(l, _)| extent(l))).product::<Dim>();
        let points = points * rounds.clone();
        let reduced = points.clone() * s.red.iter().map(|(l, _)| extent(l)).product::<Dim>();
        let ops = |e: &Expr| Dim::from(e.nodes.iter().map(|n| operations(&n.0)).sum::<i64>());
        let finished = s.post.as_ref().map_or(Dim::from(0), ops);
        self.stages.push(match &s.kind {
            Kind::Map => points * ops(&s.expr),
            Kind::Reduce { reducer, .. } => {
                reduced * (ops(&s.expr) + ops(&reducer.step)) + points * (ops(&reducer.finish) + finished)
            }
            Kind::Contract { .. } => reduced * (ops(&s.expr) + Dim::from(2)) + points * finished,
        });
        let loads = s.loads.iter().map(|l| (l.from, &l.index));
        for (buf, index) in loads.chain(s.stores.iter().map(|st| (st.to, &st.index))) {
            let Buf::Arg(a) = buf else { continue };
            let mut used: BTreeSet<u32> = BTreeSet::new();
            let mut data = false;
            for d in index {
                d.leaves(&mut |leaf| match leaf {
                    Atom::Label(l) => _ = used.insert(*l),
                    Atom::Val(_) => data = true,
                    _ => {}
                });
            }
            if data {
                used.extend(labels.keys().filter(|l| **l as usize >= self.kernel.grid.len()));
                used.extend(&s.over);
            }
            if let Some(t) = self.touched.get_mut(a as usize) {
                *t = t.clone() + used.iter().map(extent).product::<Dim>();
            }
        }
    }
}

/// The dim with outer labels in the middle of their ranges: the mean, for extents that grow with a label.
fn typical(d: &Dim, labels: &Labels) -> Dim {
    d.subst(&|a| match a {
        Atom::Label(l) => labels.get(l).map(|r| r.middle.clone()),
        _ => None,
    })
}

fn operations(n: &ENode) -> i64 {
    match n {
        ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) | ENode::Bitcast(_) => 0,
        ENode::Un(..) | ENode::Bin(..) | ENode::Select(..) | ENode::Cast(_) => 1,
        ENode::Fma(..) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::text::parse;
    use crate::schedule::Isa;

    fn one(text: &str) -> Kernel {
        parse(text).unwrap().remove(0)
    }

    fn value(d: &Dim, params: &[i64]) -> i64 {
        let leaf = |a: &Atom| match a {
            Atom::Sym(s) => s[1..].parse::<usize>().ok().and_then(|i| params.get(i).copied()),
            _ => None,
        };
        d.eval(&leaf).unwrap()
    }

    #[test]
    fn a_contraction_counts_two_a_product() {
        let k = one(
            "kernel @k(d0)(%x: in f32[d0, 16], %w: const f32[16, 32], %b: const f32[32], %y: out f32[d0, 32]) \
             grid [d0, 32] { stage \"s\" over [#0, #1] red [#2 < 16] contract chunk 1024 { \
             load 0 %x[#0, #2] load 1 %w[#2, #1] load 2 %b[#1] $0 = arg 0 : f32 $1 = arg 1 : f32 result $0, $1 \
             post { $0 = arg 0 : f32 $1 = arg 3 : f32 $2 = add $0, $1 : f32 result $2 } store %y[#0, #1] = 0 } }",
        );
        let cost = of(&k);
        assert_eq!(value(&cost.flops(), &[3]), 3 * 32 * (16 * 2 + 1));
        assert_eq!(value(&cost.bytes, &[3]), 4 * (3 * 16 + 16 * 32 + 32 + 3 * 32));
        let schedule = Schedule::default_for(&k, Isa { vector_bytes: 32, fma: true });
        let grain = grain(&k, &schedule, &cost);
        let tiles = schedule::tile_count(&k, &schedule);
        assert!(value(&grain, &[1]) > value(&tiles, &[1]), "microseconds of work stay on one thread");
        let [g, t] = [&grain, &tiles].map(|d| value(d, &[100_000]));
        assert!(g >= 1 && g * 100 < t, "milliseconds of work are for many threads: {g} of {t} tiles");
    }

    #[test]
    fn gathered_rows_count_once_each_and_never_the_whole_table() {
        let k =
            one("kernel @k(d0)(%t: in f32[1000, 64], %i: in i64[d0], %y: out f32[d0, 64]) grid [d0, 64] { \
             site 1 \"s\" stage \"gather\" over [#0, #1] map { load 0 %i[#0] load 1 %t[$0, #1] trap 1 true \
             $0 = arg 0 : i64 $1 = arg 1 : f32 result $1 store %y[#0, #1] = 0 } }");
        let cost = of(&k);
        assert_eq!(value(&cost.flops(), &[10]), 0);
        assert_eq!(value(&cost.bytes, &[10]), 10 * 8 + 2 * 10 * 64 * 4);
        assert_eq!(value(&cost.bytes, &[5000]), 5000 * 8 + (1000 + 5000) * 64 * 4);
    }

    #[test]
    fn loops_multiply_and_growing_extents_count_their_mean() {
        let sum = "{ init 0.0 : f32 step { $0 = arg 0 : f32 $1 = arg 1 : f32 $2 = add $0, $1 : f32 result $2 } \
             combine { $0 = arg 0 : f32 $1 = arg 1 : f32 $2 = add $0, $1 : f32 result $2 } \
             finish { $0 = arg 0 : f32 result $0 } load 0 %x[#0, #2] $0 = arg 0 : f32 result $0 store %y[#0, #1] = 0 }";
        let k = one(&format!(
            "kernel @k()(%x: in f32[2, 9], %y: out f32[2, 9]) grid [2] {{ loop #1 in 0..9 {{ \
             stage \"s\" over [#0] red [#2 < #1 + 1] reduce lanes 1 {sum} }} }}"
        ));
        assert_eq!(value(&of(&k).flops(), &[]), 2 * 9 * 5);
    }
}
