//! Losses of scores of classes. The classes are axis 1, or axis 0 of a single vector.

use super::{At, Reduction, any_failed, choose, refuse};
use crate::nn::exec::apply;
use crate::nn::ops::arith::cast;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;

/// Arguments of [`cross_entropy`].
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy<'a> {
    /// A factor for each class.
    pub weight: Option<&'a Tensor>,
    /// Targets of this class do not count.
    pub ignore_index: i64,
    /// The share of the target that is spread over all classes.
    pub label_smoothing: f64,
    /// What becomes of the losses.
    pub reduction: Reduction,
}

impl Default for CrossEntropy<'_> {
    fn default() -> Self {
        CrossEntropy { weight: None, ignore_index: -100, label_smoothing: 0.0, reduction: Reduction::Mean }
    }
}

/// Axis of the classes.
#[track_caller]
fn classes(x: &Tensor, what: &str, at: At) -> Option<usize> {
    match x.dim() {
        0 => {
            refuse("E-NN-098", format!("{what} of {x:#}"), "give [n, classes, ..], or [classes]", at);
            None
        }
        r => Some(usize::from(r > 1)),
    }
}

/// The weights of the classes, laid along their axis.
#[track_caller]
fn laid(w: &Tensor, x: &Tensor, axis: usize, at: At) -> Tensor {
    super::along(&cast(w, x.dtype(), at), axis, x.dim())
}

/// Targets with a class that exists for those that do not count, and where they count.
#[track_caller]
fn counted(target: &Tensor, ignore_index: i64) -> (Tensor, Tensor) {
    let keep = target.ne(ignore_index);
    (choose(&keep, target, 0, target), keep)
}

/// The element of each class vector that the target names.
#[track_caller]
fn picked(x: &Tensor, target: &Tensor, axis: usize, at: At) -> Tensor {
    let index = target.unsqueeze(axis as i64);
    let y = apply(ops::GatherElements { axis: axis as i64 }, &[x, &index], at);
    super::squeezed(&y, axis as i64)
}

#[track_caller]
fn weights_of(weight: Option<&Tensor>, target: &Tensor, keep: &Tensor, like: &Tensor, at: At) -> Tensor {
    let one = keep.to_dtype(like.dtype());
    match weight {
        Some(w) => one * apply(ops::Gather { axis: 0 }, &[&cast(w, like.dtype(), at), target], at),
        None => one,
    }
}

/// Negative log likelihood: minus the element of `x` (logarithms of probabilities) that the target names.
#[track_caller]
pub fn nll_loss(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignore_index: i64,
    reduction: Reduction,
) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let Some(axis) = classes(x, "nll_loss", at) else { return Tensor::FAILED };
    if target.dim() + 1 != x.dim() || !target.dtype().is_int() {
        let m = format!("nll_loss of {x:#} with the target {target:#}");
        return refuse("E-NN-098", m, "the target holds classes (integers), without the axis of classes", at);
    }
    let (target, keep) = counted(target, ignore_index);
    let w = weights_of(weight, &target, &keep, x, at);
    let losses = -(picked(x, &target, axis, at) * &w);
    match reduction {
        Reduction::Mean => losses.sum(&[], false) / w.sum(&[], false),
        _ => reduction.of(&losses),
    }
}

/// Negative log likelihood of the softmax of `x` [n, classes, ..]. The target holds classes (integers) without that
/// axis, or a probability for each element of `x`.
#[track_caller]
pub fn cross_entropy(x: &Tensor, target: &Tensor, args: &CrossEntropy<'_>) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let Some(axis) = classes(x, "cross_entropy", at) else { return Tensor::FAILED };
    let smooth = args.label_smoothing;
    if !(0.0..=1.0).contains(&smooth) {
        let m = format!("cross_entropy with label_smoothing {smooth}");
        return refuse("E-NN-098", m, "give 0 to 1", at);
    }
    let logs = x.log_softmax(axis as i64);
    if target.dtype().is_float() && target.dim() == x.dim() {
        return by_probabilities(&logs, target, axis, args, at);
    }
    let hard = nll_loss(&logs, target, args.weight, args.ignore_index, args.reduction);
    if smooth == 0.0 || hard.failed() {
        return hard;
    }
    let spread = spread_losses(&logs, target, axis, args, at);
    hard * (1.0 - smooth) + spread * smooth / x.size(axis as i64)
}

/// The sum of the losses for all classes, reduced.
#[track_caller]
fn spread_losses(logs: &Tensor, target: &Tensor, axis: usize, args: &CrossEntropy<'_>, at: At) -> Tensor {
    let all = match args.weight {
        Some(w) => logs * laid(w, logs, axis, at),
        None => logs.clone(),
    };
    let (target, keep) = counted(target, args.ignore_index);
    let losses = -(all.sum(&[axis as i64], false) * keep.to_dtype(logs.dtype()));
    match args.reduction {
        Reduction::Mean => {
            let w = weights_of(args.weight, &target, &keep, logs, at);
            losses.sum(&[], false) / w.sum(&[], false)
        }
        r => r.of(&losses),
    }
}

#[track_caller]
fn by_probabilities(logs: &Tensor, target: &Tensor, axis: usize, args: &CrossEntropy<'_>, at: At) -> Tensor {
    let smooth = args.label_smoothing;
    let n = logs.size(axis as i64);
    let mut target = target.clone();
    if smooth > 0.0 {
        target = target * (1.0 - smooth) + Tensor::scalar(smooth as f32).to_dtype(logs.dtype()) / n;
    }
    let mut all = logs * target;
    if let Some(w) = args.weight {
        all = &all * laid(w, logs, axis, at);
    }
    let losses = -all.sum(&[axis as i64], false);
    args.reduction.of(&losses)
}

/// Mean over the classes of the binary cross entropies of the sigmoid of `x` [n, classes].
#[track_caller]
pub fn multilabel_soft_margin_loss(
    x: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Tensor {
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    let yes = target * super::logsigmoid(x);
    let no = (1.0 - target) * super::logsigmoid(&-x);
    let mut losses = -(yes + no);
    if let Some(w) = weight {
        losses *= w;
    }
    reduction.of(&losses.mean(&[-1], false))
}

/// Mean over the classes but the target's of `max(0, margin - x[target] + x)^p`, of x [n, classes] or [classes].
#[track_caller]
pub fn multi_margin_loss(
    x: &Tensor,
    target: &Tensor,
    p: i64,
    margin: f64,
    weight: Option<&Tensor>,
    reduction: Reduction,
) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x, target]) {
        return Tensor::FAILED;
    }
    if !matches!(x.dim(), 1 | 2) || target.dim() + 1 != x.dim() || !matches!(p, 1 | 2) {
        let m = format!("multi_margin_loss with p = {p} of {x:#} with the target {target:#}");
        return refuse("E-NN-098", m, "give [n, classes] or [classes], a class each, and p 1 or 2", at);
    }
    let axis = x.dim() - 1;
    let own = picked(x, target, axis, at).unsqueeze(-1);
    let mut losses = (x - own + margin).maximum(0.0);
    if p == 2 {
        losses = &losses * &losses;
    }
    if let Some(w) = weight {
        losses *= apply(ops::Gather { axis: 0 }, &[&cast(w, x.dtype(), at), target], at).unsqueeze(-1);
    }
    let n = x.size(-1);
    let others = target.unsqueeze(-1).ne(Tensor::arange(n));
    let losses = choose(&others, &losses, 0.0, &losses);
    reduction.of(&losses.mean(&[-1], false))
}
