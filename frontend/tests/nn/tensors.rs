//! Operations of tensors against PyTorch's figures, eagerly and traced.

mod aliases;
mod errors;
mod pointwise;
mod reduce;
mod shapes;
mod symbolic;
mod table;

use crate::figures::{Figures, figures};
use std::collections::BTreeSet;
use tgc_frontend::nn::*;

fn all() -> Figures {
    figures("tensors.json", include_str!("torch/tensors.json"))
}

type Run = Box<dyn Fn(&[Tensor]) -> Vec<Tensor>>;

/// What a case of the figures is computed by, and how near it must be (relative).
pub struct Case {
    name: String,
    rtol: f64,
    f: Run,
}

/// Absolute tolerance, for results that cancel.
const ATOL: f64 = 1e-7;

/// f32 results that are sums.
const SUMS: f64 = 2e-6;

impl Case {
    fn new(name: impl Into<String>, rtol: f64, f: impl Fn(&[Tensor]) -> Vec<Tensor> + 'static) -> Case {
        Case { name: name.into(), rtol, f: Box::new(f) }
    }

    fn one(name: impl Into<String>, rtol: f64, f: impl Fn(&[Tensor]) -> Tensor + 'static) -> Case {
        Case::new(name, rtol, move |x| vec![f(x)])
    }
}

/// Checks all cases; tells every one that fails.
fn run(cases: Vec<Case>) {
    let figures = all();
    let mut bad = Vec::new();
    for c in &cases {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            figures.check(&c.name, c.rtol, ATOL, |x| (c.f)(x));
        }));
        if checked.is_err() {
            bad.push(c.name.clone());
        }
    }
    assert!(bad.is_empty(), "{} of {} differ: {bad:?}", bad.len(), cases.len());
}

#[test]
fn every_figure_is_checked() {
    let checked: Vec<String> = [pointwise::cases(), reduce::cases(), shapes::cases()]
        .into_iter()
        .flatten()
        .map(|c| c.name)
        .collect();
    let figures = all();
    let (have, names): (BTreeSet<&str>, BTreeSet<&str>) =
        (figures.names().collect(), checked.iter().map(String::as_str).collect());
    assert_eq!(names.len(), checked.len(), "a case is checked twice");
    assert_eq!(have.symmetric_difference(&names).collect::<Vec<_>>(), Vec::<&&str>::new());
}
