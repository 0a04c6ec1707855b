//! Losses of two or three operands.

use super::{Reduction, any_failed, choose, pairwise_distance};
use crate::nn::tensor::Tensor;

/// `max(0, -target (x1 - x2) + margin)` with targets 1 and -1.
#[track_caller]
pub fn margin_ranking_loss(
    x1: &Tensor,
    x2: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Tensor {
    if any_failed(&[x1, x2, target]) {
        return Tensor::FAILED;
    }
    reduction.of(&((x2 - x1) * target + margin).maximum(0.0))
}

/// `1 - cos` of the vectors for the target 1, `max(0, cos - margin)` for -1; the vectors are [n, width], or [width].
#[track_caller]
pub fn cosine_embedding_loss(
    x1: &Tensor,
    x2: &Tensor,
    target: &Tensor,
    margin: f64,
    reduction: Reduction,
) -> Tensor {
    const EPS: f64 = 1e-12;
    if any_failed(&[x1, x2, target]) {
        return Tensor::FAILED;
    }
    let squares1 = (x1 * x1).sum(&[-1], false) + EPS;
    let squares2 = (x2 * x2).sum(&[-1], false) + EPS;
    let cos = (x1 * x2).sum(&[-1], false) / (squares1 * squares2).sqrt();
    let near = choose(&target.eq(1), 1.0 - &cos, 0.0, &cos);
    let far = choose(&target.eq(-1), (&cos - margin).maximum(0.0), 0.0, &cos);
    reduction.of(&(near + far))
}

/// Arguments of [`triplet_margin_loss`].
#[derive(Clone, Copy, Debug)]
pub struct Triplet {
    /// How much nearer the positive one shall be.
    pub margin: f64,
    /// Which norm.
    pub p: f64,
    /// Added to differences.
    pub eps: f64,
    /// The negative one counts from the nearer of anchor and positive.
    pub swap: bool,
    /// What becomes of the losses.
    pub reduction: Reduction,
}

impl Default for Triplet {
    fn default() -> Triplet {
        Triplet { margin: 1.0, p: 2.0, eps: 1e-6, swap: false, reduction: Reduction::Mean }
    }
}

/// `max(0, |anchor - positive| - |anchor - negative| + margin)` over the last axis.
#[track_caller]
pub fn triplet_margin_loss(anchor: &Tensor, positive: &Tensor, negative: &Tensor, args: &Triplet) -> Tensor {
    if any_failed(&[anchor, positive, negative]) {
        return Tensor::FAILED;
    }
    let near = pairwise_distance(anchor, positive, args.p, args.eps, false);
    let mut far = pairwise_distance(anchor, negative, args.p, args.eps, false);
    if args.swap {
        far = far.minimum(pairwise_distance(positive, negative, args.p, args.eps, false));
    }
    args.reduction.of(&(near - far + args.margin).maximum(0.0))
}
