//! Applying an op: recorded in the trace under way, or computed at once by the reference interpreter.

use super::error::report;
use super::tensor::{Repr, Tensor};
use super::trace;
use std::panic::Location;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, Value};
use tgc_ir::interp;
use tgc_ir::ops::Op;
use tgc_ir::tensor::Tensor as Data;
use tgc_ir::types::Type;

/// The result of an op.
#[track_caller]
pub(crate) fn apply(op: impl Into<Op>, ins: &[&Tensor], at: &'static Location<'static>) -> Tensor {
    apply_n(op, ins, 1, at).pop().unwrap_or(Tensor::FAILED)
}

/// The first `n` results of an op.
#[track_caller]
pub(crate) fn apply_n(
    op: impl Into<Op>,
    ins: &[&Tensor],
    n: usize,
    at: &'static Location<'static>,
) -> Vec<Tensor> {
    apply_regions(op.into(), ins, Vec::new(), n, at)
}

#[track_caller]
pub(crate) fn apply_regions(
    op: Op,
    ins: &[&Tensor],
    regions: Vec<Graph>,
    n: usize,
    at: &'static Location<'static>,
) -> Vec<Tensor> {
    let outcome = match trace::is_tracing() {
        true => trace::add(op, ins, regions, at, n).unwrap_or(Err(None)),
        false => compute(&op, ins, n),
    };
    outcome.unwrap_or_else(|missing| {
        if let Some(d) = missing {
            report(d, at);
        }
        vec![Tensor::FAILED; n]
    })
}

/// A tensor as a value of the trace under way.
#[track_caller]
pub(crate) fn placed(t: &Tensor, at: &'static Location<'static>) -> Tensor {
    let outcome = trace::with(
        |tr| {
            let loc = tr.loc(at);
            tr.value(t, &loc).map(|v| tr.tensor(v))
        },
        Ok(t.clone()),
    );
    outcome.unwrap_or_else(|missing| {
        if let Some(d) = missing {
            report(d, at);
        }
        Tensor::FAILED
    })
}

fn compute(op: &Op, ins: &[&Tensor], n: usize) -> Result<Vec<Tensor>, Option<Diag>> {
    let mut data: Vec<Data> = Vec::with_capacity(ins.len());
    for t in ins {
        match &t.0 {
            Repr::Held(d) => data.push(d.clone()),
            Repr::Cell(c) => data.push(c.value()),
            Repr::Node(_) => return Err(Some(trace::ended())),
            Repr::Failed => return Err(None),
        }
    }
    let mut g = Graph::new("");
    let values: Vec<Value> = data.iter().map(|d| g.input("", d.ty(), Loc::default())).collect();
    let id = g.add(op.clone(), &values, Vec::new(), Loc::default()).map_err(Some)?;
    let types = (0..).map_while(|i| g.ty(Value { node: id, result: i }).cloned());
    let outs: Vec<Type> = types.collect();
    let none = interp::Bindings::new();
    let results = interp::eval_node(op, &data, &[], &g.symbols, &none, &outs).map_err(Some)?;
    Ok(results.into_iter().take(n).map(Tensor::from).collect())
}
