//! Formulas that the importer of ONNX files shares, on tensors.

use crate::formula::Build;
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use crate::nn::trace;
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops::Op;
use tgc_ir::types::{DType, Pred, Type};

type At = &'static Location<'static>;

/// Tensors of a formula under way, by number.
pub(crate) struct Tape {
    all: Vec<Tensor>,
    at: At,
}

/// Something failed, and has been reported.
pub(crate) struct Failed;

/// A number of the tape.
pub(crate) type V = usize;

impl Tape {
    fn put(&mut self, t: Tensor) -> Result<V, Failed> {
        if t.failed() {
            return Err(Failed);
        }
        self.all.push(t);
        Ok(self.all.len() - 1)
    }
}

impl Build for Tape {
    type V = V;
    type E = Failed;

    fn apply(&mut self, op: Op, operands: &[V]) -> Result<V, Failed> {
        let ins: Vec<&Tensor> = operands.iter().map(|i| &self.all[*i]).collect();
        let y = apply(op, &ins, self.at);
        self.put(y)
    }

    fn ty(&self, v: V) -> Type {
        self.all[v].ty().unwrap_or(Type::scalar(DType::F32))
    }

    fn num(&mut self, dtype: DType, v: f64) -> Result<V, Failed> {
        self.put(Tensor::number(dtype, v))
    }

    fn demand(&mut self, pred: Pred, why: &str) -> Result<(), Failed> {
        if demand(&pred, why, self.at) { Ok(()) } else { Err(Failed) }
    }
}

/// Requires a condition on sizes: false and an error where it cannot hold, a guard of the trace where it is not known yet.
#[track_caller]
pub(crate) fn demand(pred: &Pred, why: &str, at: At) -> bool {
    let answer = trace::with(|t| pred.decide_in(t.symbols()), pred.eval(&|_| None).ok());
    match answer {
        Some(true) => true,
        Some(false) => {
            report(Diag::error("E-NN-090", format!("{why}: `{pred}` cannot hold")), at);
            false
        }
        None => {
            let pinned = trace::with(|t| t.guard(pred, why, at), None);
            let fine = pinned.is_none();
            pinned.into_iter().for_each(|d| report(d, at));
            fine
        }
    }
}

/// Requires two sizes to be equal, as [`demand`].
#[track_caller]
pub(crate) fn same(a: Dim, b: Dim, why: &str, at: At) -> bool {
    match (a.size(), b.size()) {
        (Ok(a), Ok(b)) => a == b || demand(&Pred::Eq(a, b), why, at),
        _ => false,
    }
}

/// `f` of tensors; narrow floats are computed in f32 and the result is rounded once. All have one element type.
#[track_caller]
pub(crate) fn formula(
    ins: &[&Tensor],
    at: At,
    f: impl FnOnce(&mut Tape, &[V]) -> Result<V, Failed>,
) -> Tensor {
    let Some(first) = ins.first().filter(|_| ins.iter().all(|t| !t.failed())) else { return Tensor::FAILED };
    let d = first.dtype();
    let inner = computed(d);
    let all: Vec<Tensor> = ins.iter().map(|t| super::arith::cast(t, inner, at)).collect();
    let given: Vec<V> = (0..all.len()).collect();
    let mut tape = Tape { all, at };
    match f(&mut tape, &given) {
        Ok(v) if tape.all[v].dtype() == inner => super::arith::cast(&tape.all[v], d, at),
        Ok(v) => tape.all[v].clone(),
        Err(Failed) => Tensor::FAILED,
    }
}

/// The element type that formulas of several steps compute in.
pub(crate) fn computed(d: DType) -> DType {
    if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d }
}
