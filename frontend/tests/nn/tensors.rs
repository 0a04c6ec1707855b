//! Operations of tensors against PyTorch's figures.

use crate::figures::{Figures, figures};
use tgc_frontend::nn::*;

fn all() -> Figures {
    figures("tensors.json", include_str!("torch/tensors.json"))
}

/// Relative and absolute tolerance of f32 results: a few units in the last place.
const TOL: (f64, f64) = (2e-6, 1e-7);

fn one(name: &str, f: impl Fn(&[Tensor]) -> Tensor) {
    all().check(name, TOL.0, TOL.1, |x| vec![f(x)]);
}

#[test]
fn reductions() {
    one("softmax", |x| x[0].softmax(1));
}

#[test]
fn promotion() {
    one("add.int.float", |x| &x[0] + &x[1]);
}
