//! Losses of an operand against a target, element by element.

use super::{any_failed, choose, refuse};
use crate::nn::tensor::Tensor;
use std::panic::Location;

/// What becomes of the losses of all elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reduction {
    /// They stay.
    None,
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
}

impl Reduction {
    #[track_caller]
    pub(crate) fn of(self, losses: &Tensor) -> Tensor {
        match self {
            Reduction::None => losses.clone(),
            Reduction::Mean => losses.mean(&[], false),
            Reduction::Sum => losses.sum(&[], false),
        }
    }
}

/// `(x - target)^2`.
#[track_caller]
pub fn mse_loss(x: &Tensor, target: &Tensor, reduction: Reduction) -> Tensor {
    let d = x - target;
    reduction.of(&(&d * &d))
}

/// `|x - target|`.
#[track_caller]
pub fn l1_loss(x: &Tensor, target: &Tensor, reduction: Reduction) -> Tensor {
    reduction.of(&(x - target).abs())
}

/// Squared below `beta`, linear above: `d^2 / (2 beta)` or `|d| - beta / 2`.
#[track_caller]
pub fn smooth_l1_loss(x: &Tensor, target: &Tensor, beta: f64, reduction: Reduction) -> Tensor {
    if beta == 0.0 {
        return l1_loss(x, target, reduction);
    }
    let d = (x - target).abs();
    let square = &d * &d * (0.5 / beta);
    reduction.of(&choose(&d.lt(beta), square, &d - 0.5 * beta, &d))
}

/// Squared below `delta`, linear above: `d^2 / 2` or `delta (|d| - delta / 2)`.
#[track_caller]
pub fn huber_loss(x: &Tensor, target: &Tensor, delta: f64, reduction: Reduction) -> Tensor {
    let d = (x - target).abs();
    let square = &d * &d * 0.5;
    reduction.of(&choose(&d.le(delta), square, (&d - 0.5 * delta) * delta, &d))
}

#[track_caller]
fn weighted(losses: Tensor, weight: Option<&Tensor>) -> Tensor {
    match weight {
        Some(w) => losses * w,
        None => losses,
    }
}

/// Cross entropy of probabilities with targets from 0 to 1; logarithms are at least -100.
#[track_caller]
pub fn binary_cross_entropy(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Tensor {
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let yes = x.log().maximum(-100.0);
    let no = (1f64 - x).log().maximum(-100.0);
    let losses = (target - 1.0) * no - target * yes;
    reduction.of(&weighted(losses, weight))
}

/// [`binary_cross_entropy`] of the sigmoid of `x`; `pos_weight` is a factor of the positive part.
#[track_caller]
pub fn binary_cross_entropy_with_logits(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    pos_weight: Option<&Tensor>,
    reduction: Reduction,
) -> Tensor {
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    // log(1 + e^-x)
    let soft = ((-x.abs()).exp() + 1.0).log() - x.minimum(0.0);
    let losses = match pos_weight {
        Some(p) => (1.0 - target) * x + (target * (p - 1.0) + 1.0) * soft,
        None => (1.0 - target) * x + soft,
    };
    reduction.of(&weighted(losses, weight))
}

/// How [`kl_div`] is reduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KlReduction {
    /// As other losses are.
    #[default]
    Mean,
    /// The sum divided by the first size, which is the divergence's definition.
    BatchMean,
    /// The sum.
    Sum,
    /// The losses stay.
    None,
}

/// `target * (log(target) - x)` with logarithms of probabilities `x`; `log_target` says that the target is one too.
#[track_caller]
pub fn kl_div(x: &Tensor, target: &Tensor, log_target: bool, reduction: KlReduction) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let losses = match log_target {
        true => target.exp() * (target - x),
        false => {
            // 0 log 0 is 0
            let zero = target.eq(0.0);
            let log = choose(&zero, 1.0, target, target).log();
            target * log - target * x
        }
    };
    match reduction {
        KlReduction::None => losses,
        KlReduction::Mean => losses.mean(&[], false),
        KlReduction::Sum => losses.sum(&[], false),
        KlReduction::BatchMean if x.dim() == 0 => {
            let m = format!("kl_div with BatchMean of {x:#}");
            refuse("E-NN-097", m, "give rank 1 or more, or another reduction", at)
        }
        KlReduction::BatchMean => losses.sum(&[], false) / x.size(0),
    }
}

/// Negative log likelihood of Poisson counts; `x` is the rate, or its logarithm for `log_input`. `full` adds Stirling's
/// approximation of the rest.
#[track_caller]
pub fn poisson_nll_loss(
    x: &Tensor,
    target: &Tensor,
    log_input: bool,
    full: bool,
    eps: f64,
    reduction: Reduction,
) -> Tensor {
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let mut losses = match log_input {
        true => x.exp() - target * x,
        false => x - target * (x + eps).log(),
    };
    if full {
        let t = target.maximum(1.0);
        let rest = &t * t.log() - &t + (&t * std::f64::consts::TAU).log() * 0.5;
        losses += choose(&target.gt(1.0), &rest, 0.0, &rest);
    }
    reduction.of(&losses)
}

/// Negative log likelihood of normal distributions with the variances `var` (at least `eps`), which may lack the last
/// axis. `full` adds the constant.
#[track_caller]
pub fn gaussian_nll_loss(
    x: &Tensor,
    target: &Tensor,
    var: &Tensor,
    full: bool,
    eps: f64,
    reduction: Reduction,
) -> Tensor {
    if any_failed(&[x, target, var]) {
        return Tensor::FAILED;
    }
    let var = if var.dim() + 1 == x.dim() { var.unsqueeze(-1) } else { var.clone() };
    let var = var.maximum(eps);
    let d = x - target;
    let mut losses = (var.log() + &d * &d / &var) * 0.5;
    if full {
        losses += 0.5 * std::f64::consts::TAU.ln();
    }
    reduction.of(&losses)
}

/// `log(1 + e^(-target x))` with targets 1 and -1.
#[track_caller]
pub fn soft_margin_loss(x: &Tensor, target: &Tensor, reduction: Reduction) -> Tensor {
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    reduction.of(&-super::logsigmoid(&(target * x)))
}

/// `x` for the target 1, `max(0, margin - x)` for -1.
#[track_caller]
pub fn hinge_embedding_loss(x: &Tensor, target: &Tensor, margin: f64, reduction: Reduction) -> Tensor {
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let far = choose(&target.ne(1), (-x + margin).maximum(0.0), 0.0, x);
    let near = choose(&target.ne(-1), x, 0.0, x);
    reduction.of(&(far + near))
}
