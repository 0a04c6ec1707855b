//! Losses. Their weights are buffers, as in PyTorch.

use super::plain::plain_layers;
use crate::nn::ops::functional::{self, CrossEntropy, KlReduction, Reduction, Triplet};

plain_layers! {
    /// `(x - target)^2`.
    MSELoss() { reduction: Reduction = Reduction::Mean } (self, x, target) functional::mse_loss(x, target, self.reduction);
    /// `|x - target|`.
    L1Loss() { reduction: Reduction = Reduction::Mean } (self, x, target) functional::l1_loss(x, target, self.reduction);
    /// Squared below `beta`, linear above.
    SmoothL1Loss() { beta: f64 = 1.0, reduction: Reduction = Reduction::Mean }
        (self, x, target) functional::smooth_l1_loss(x, target, self.beta, self.reduction);
    /// Squared below `delta`, linear above.
    HuberLoss() { delta: f64 = 1.0, reduction: Reduction = Reduction::Mean }
        (self, x, target) functional::huber_loss(x, target, self.delta, self.reduction);
    /// Negative log likelihood of the softmax of scores of classes.
    CrossEntropyLoss()
        { ignore_index: i64 = -100, label_smoothing: f64 = 0.0, reduction: Reduction = Reduction::Mean } [weight]
        (self, x, target) functional::cross_entropy(x, target, &CrossEntropy {
            weight: self.weight.as_deref(),
            ignore_index: self.ignore_index,
            label_smoothing: self.label_smoothing,
            reduction: self.reduction,
        });
    /// Negative log likelihood of logarithms of probabilities of classes.
    NLLLoss() { ignore_index: i64 = -100, reduction: Reduction = Reduction::Mean } [weight]
        (self, x, target)
        functional::nll_loss(x, target, self.weight.as_deref(), self.ignore_index, self.reduction);
    /// Cross entropy of probabilities of yes.
    BCELoss() { reduction: Reduction = Reduction::Mean } [weight]
        (self, x, target) functional::binary_cross_entropy(x, target, self.weight.as_deref(), self.reduction);
    /// Cross entropy of the sigmoid of scores of yes.
    BCEWithLogitsLoss() { reduction: Reduction = Reduction::Mean } [weight, pos_weight]
        (self, x, target) functional::binary_cross_entropy_with_logits(
            x,
            target,
            self.weight.as_deref(),
            self.pos_weight.as_deref(),
            self.reduction,
        );
    /// Kullback-Leibler divergence of logarithms of probabilities.
    KLDivLoss() { log_target: bool = false, reduction: KlReduction = KlReduction::Mean }
        (self, x, target) functional::kl_div(x, target, self.log_target, self.reduction);
    /// Negative log likelihood of Poisson counts.
    PoissonNLLLoss()
        { log_input: bool = true, full: bool = false, eps: f64 = 1e-8, reduction: Reduction = Reduction::Mean }
        (self, x, target)
        functional::poisson_nll_loss(x, target, self.log_input, self.full, self.eps, self.reduction);
    /// Negative log likelihood of normal distributions.
    GaussianNLLLoss() { full: bool = false, eps: f64 = 1e-6, reduction: Reduction = Reduction::Mean }
        (self, x, target, var)
        functional::gaussian_nll_loss(x, target, var, self.full, self.eps, self.reduction);
    /// `log(1 + e^(-target x))`.
    SoftMarginLoss() { reduction: Reduction = Reduction::Mean }
        (self, x, target) functional::soft_margin_loss(x, target, self.reduction);
    /// `x` for the target 1, `max(0, margin - x)` for -1.
    HingeEmbeddingLoss() { margin: f64 = 1.0, reduction: Reduction = Reduction::Mean }
        (self, x, target) functional::hinge_embedding_loss(x, target, self.margin, self.reduction);
    /// `max(0, -target (x1 - x2) + margin)`.
    MarginRankingLoss() { margin: f64 = 0.0, reduction: Reduction = Reduction::Mean }
        (self, x1, x2, target) functional::margin_ranking_loss(x1, x2, target, self.margin, self.reduction);
    /// `1 - cos` for the target 1, `max(0, cos - margin)` for -1.
    CosineEmbeddingLoss() { margin: f64 = 0.0, reduction: Reduction = Reduction::Mean }
        (self, x1, x2, target) functional::cosine_embedding_loss(x1, x2, target, self.margin, self.reduction);
    /// `max(0, |anchor - positive| - |anchor - negative| + margin)`.
    TripletMarginLoss()
        {
            margin: f64 = 1.0,
            p: f64 = 2.0,
            eps: f64 = 1e-6,
            swap: bool = false,
            reduction: Reduction = Reduction::Mean
        }
        (self, anchor, positive, negative) functional::triplet_margin_loss(anchor, positive, negative, &Triplet {
            margin: self.margin,
            p: self.p,
            eps: self.eps,
            swap: self.swap,
            reduction: self.reduction,
        });
    /// Mean over the classes of binary cross entropies.
    MultiLabelSoftMarginLoss() { reduction: Reduction = Reduction::Mean } [weight]
        (self, x, target)
        functional::multilabel_soft_margin_loss(x, target, self.weight.as_deref(), self.reduction);
    /// Hinge loss of classes.
    MultiMarginLoss() { p: i64 = 1, margin: f64 = 1.0, reduction: Reduction = Reduction::Mean } [weight]
        (self, x, target) functional::multi_margin_loss(
            x,
            target,
            self.p,
            self.margin,
            self.weight.as_deref(),
            self.reduction,
        );
}
