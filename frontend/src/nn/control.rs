//! Control flow that depends on data: eager code just runs it, a trace captures the bodies as regions.

use super::error::report;
use super::exec;
use super::program::Tree;
use super::tensor::Tensor;
use super::trace::{self, Region};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Cond, Gather, Op, Repeat};
use tgc_ir::types::{DType, Type};

type At = &'static Location<'static>;

fn tensors<R: Tree>(r: &R) -> Vec<Tensor> {
    let mut named = Vec::new();
    r.collect("", &mut named);
    named.into_iter().map(|n| n.1).collect()
}

fn failed<R: Tree>(like: &R) -> R {
    like.rebuild(&mut std::iter::repeat(Tensor::FAILED))
}

/// A body captured: its graph, what it reads from around, and the structure it gave.
fn body<R>(
    params: &[(&str, Type)],
    captures: &[(Value, Type)],
    at: At,
    f: impl FnOnce(Vec<Tensor>) -> (R, Vec<Tensor>),
) -> (R, Option<Region>) {
    let inputs = trace::with(|t| t.enter_region(params, captures), Vec::new());
    let (structure, results) = f(inputs);
    let region = trace::with(
        |t| {
            let loc = t.loc(at);
            t.leave_region(&results, &loc)
        },
        Err(None),
    );
    let region = region.map_err(|missing| missing.into_iter().for_each(|d| report(d, at))).ok();
    (structure, region)
}

/// The values a body reads, with their types, in its graph's order.
fn captured(r: &Region) -> Vec<(Value, Type)> {
    r.captures.iter().filter_map(|c| Some((c.0, r.graph.ty(c.1)?.clone()))).collect()
}

/// The values as tensors of the trace under way.
fn outer(captures: &[(Value, Type)]) -> Vec<Tensor> {
    trace::with(|t| captures.iter().map(|c| t.tensor(c.0)).collect(), Vec::new())
}

#[track_caller]
fn is_condition(p: &Tensor, what: &str, at: At) -> bool {
    let Some(ty) = p.ty() else { return false };
    let fits = ty.dtype == DType::Bool && ty.rank() == 0;
    if !fits {
        let m = format!("{what} takes a bool of rank 0, not {ty}");
        report(
            Diag::error("E-NN-110", m)
                .help("compare (x.gt(0.0)), and reduce to one element (sum, any, select)"),
            at,
        );
    }
    fits
}

/// One of two results, by a bool of rank 0: `yes()` where it is true. In a trace both are captured, and must give the same
/// structure and types; they read what they like from around and change nothing there.
#[track_caller]
pub fn cond<R: Tree>(p: &Tensor, yes: impl Fn() -> R, no: impl Fn() -> R) -> R {
    let at = Location::caller();
    let fits = is_condition(p, "cond", at);
    if !trace::is_tracing() {
        return if p.item() != 0.0 { yes() } else { no() };
    }
    let run = |f: &dyn Fn() -> R, captures: &[(Value, Type)]| {
        body(&[], captures, at, |_| {
            let r = f();
            let list = tensors(&r);
            (r, list)
        })
    };
    let (result, first) = run(&yes, &[]);
    let known = first.as_ref().map_or(Vec::new(), captured);
    let (other, second) = run(&no, &known);
    let (Some(mut first), Some(second)) = (first, second) else { return failed(&result) };
    let all = captured(&second);
    for (v, ty) in &all[known.len()..] {
        first.capture(*v, ty.clone());
    }
    let (n, m) = (tensors(&result).len(), tensors(&other).len());
    if n != m {
        let d = Diag::error("E-NN-112", format!("the branches of cond give {n} and {m} tensors"));
        report(d.help("give the same structure from both"), at);
        return failed(&result);
    }
    if !fits {
        return failed(&result);
    }
    let read = outer(&all);
    let operands: Vec<&Tensor> = std::iter::once(p).chain(&read).collect();
    let out = exec::apply_regions(Op::Cond(Cond {}), &operands, vec![first.graph, second.graph], n, at);
    result.rebuild(&mut out.into_iter())
}

/// Repeats `body` on the carried tensors while `test` of them is true (a bool of rank 0). Types must not change from one
/// round to the next.
#[track_caller]
pub fn while_loop<C: Tree>(init: C, test: impl Fn(&C) -> Tensor, body: impl Fn(C) -> C) -> C {
    let at = Location::caller();
    if !trace::is_tracing() {
        let mut c = init;
        loop {
            let go = test(&c);
            if !is_condition(&go, "while_loop", at) || go.item() == 0.0 {
                return c;
            }
            c = body(c);
        }
    }
    let go = test(&init);
    if !is_condition(&go, "while_loop", at) {
        return failed(&init);
    }
    let round = |_: &Tensor, c: C| {
        let c = body(c);
        (test(&c), c, Vec::new())
    };
    let trips = Tensor::scalar(i64::MAX);
    repeat(&trips, &go, init, None, at, round).0
}

/// Runs `f` on the carried tensors and one part of `xs` after another along its first axis. Gives what is carried at the
/// end, and what every step gave, stacked on a new first axis.
#[track_caller]
pub fn scan<C: Tree, Y: Tree>(init: C, xs: &Tensor, f: impl Fn(C, Tensor) -> (C, Y)) -> (C, Y) {
    let at = Location::caller();
    if xs.dim() == 0 && !xs.failed() {
        let d = Diag::error("E-NN-113", "scan over a tensor of rank 0");
        report(d.help("its first axis is the one that is run along"), at);
    }
    if !trace::is_tracing() {
        return run_scan(init, xs, at, f);
    }
    let steps = xs.size(0);
    let structure = std::cell::RefCell::new(None);
    let round = |i: &Tensor, c: C| {
        let x = exec::apply(Gather { axis: 0 }, &[xs, i], at);
        let (c, y) = f(c, x);
        let list = tensors(&y);
        structure.replace(Some(y));
        (Tensor::scalar(true), c, list)
    };
    let trips = Tensor::size_value(steps);
    let (c, scans) = repeat(&trips, &Tensor::scalar(true), init, Some(steps), at, round);
    match structure.into_inner() {
        Some(y) => (c, y.rebuild(&mut scans.into_iter().chain(std::iter::repeat(Tensor::FAILED)))),
        None => super::error::end(Diag::error("E-NN-114", "the body of scan did not run"), at),
    }
}

#[track_caller]
fn run_scan<C: Tree, Y: Tree>(init: C, xs: &Tensor, at: At, f: impl Fn(C, Tensor) -> (C, Y)) -> (C, Y) {
    let steps = xs.size(0).to_usize();
    let (mut c, mut structure, mut all) = (init, None, Vec::<Vec<Tensor>>::new());
    for i in 0..steps {
        let (next, y) = f(c, xs.select(0, i));
        c = next;
        let list = tensors(&y);
        all.resize(list.len(), Vec::new());
        all.iter_mut().zip(list).for_each(|(all, t)| all.push(t.unsqueeze(0)));
        structure = Some(y);
    }
    let Some(y) = structure else {
        let d = Diag::error("E-NN-115", "scan over no steps: the types of its results are not known");
        super::error::end(d.help("give at least one step, or trace the model, where types are known"), at)
    };
    let mut joined = all.iter().map(|parts| Tensor::cat(&parts.iter().collect::<Vec<_>>(), 0));
    let y = y.rebuild(&mut joined);
    (c, y)
}

/// A loop in a trace. `round` takes the number of the round and what is carried, and gives the condition for another
/// one, what is carried on, and what is kept of each round.
fn repeat<C: Tree>(
    trips: &Tensor,
    go: &Tensor,
    init: C,
    extent: Option<super::dim::Dim>,
    at: At,
    round: impl FnOnce(&Tensor, C) -> (Tensor, C, Vec<Tensor>),
) -> (C, Vec<Tensor>) {
    let start = tensors(&init);
    let types: Option<Vec<Type>> = start.iter().map(Tensor::ty).collect();
    let (Some(types), Ok(trip)) = (types, extent.map(|d| d.size()).transpose()) else {
        return (failed(&init), Vec::new());
    };
    let mut params = vec![("i", Type::scalar(DType::I64)), ("go", Type::scalar(DType::Bool))];
    params.extend(types.into_iter().map(|t| ("carried", t)));
    let ((next, kept), region) = body(&params, &[], at, |inputs| {
        let mut inputs = inputs.into_iter();
        let i = inputs.next().unwrap_or(Tensor::FAILED);
        let _go = inputs.next();
        let (go, c, kept) = round(&i, init.rebuild(&mut inputs));
        let mut results = vec![go];
        results.extend(tensors(&c));
        results.extend(kept.iter().cloned());
        ((c, kept.len()), results)
    });
    let Some(region) = region else { return (failed(&init), Vec::new()) };
    if tensors(&next).len() != start.len() {
        let m = format!("{} tensors are carried into the loop and {} on", start.len(), tensors(&next).len());
        report(Diag::error("E-NN-112", m).help("give the same structure from the body"), at);
        return (failed(&init), Vec::new());
    }
    let read = outer(&captured(&region));
    let operands: Vec<&Tensor> = [trips, go].into_iter().chain(&start).chain(&read).collect();
    let op = Op::Repeat(Repeat { carried: start.len() as i64, trip });
    let mut out = exec::apply_regions(op, &operands, vec![region.graph], start.len() + kept, at);
    let scans = out.split_off(start.len().min(out.len()));
    (init.rebuild(&mut out.into_iter()), scans)
}
