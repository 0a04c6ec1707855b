"""Figures for losses. usage: python losses.py (torch 2.15)"""

import torch
import torch.nn.functional as F
from figures import case, write

torch.manual_seed(2)
x, t = torch.randn(3, 4), torch.randn(3, 4)
yes = torch.randint(0, 2, (3, 4)).float()
sign = torch.randint(0, 2, (3, 4)) * 2 - 1
rate, p = torch.rand(3, 4) * 3, torch.rand(3, 4)
w4 = torch.rand(4) + 0.5
for r in ["none", "mean", "sum"]:
    case(f"mse.{r}", [x, t], lambda x, t: F.mse_loss(x, t, reduction=r))
    case(f"l1.{r}", [x, t], lambda x, t: F.l1_loss(x, t, reduction=r))
    case(f"smooth_l1.{r}", [x, t], lambda x, t: F.smooth_l1_loss(x, t, reduction=r, beta=0.7))
    case(f"huber.{r}", [x, t], lambda x, t: F.huber_loss(x, t, reduction=r, delta=0.6))
    case(f"bce.{r}", [p, yes, w4], lambda x, t, w: F.binary_cross_entropy(x, t, w, reduction=r))
    case(
        f"bce_logits.{r}",
        [x * 3, yes, w4, w4 * 2],
        lambda x, t, w, q: F.binary_cross_entropy_with_logits(x, t, w, reduction=r, pos_weight=q),
    )
    case(f"poisson.{r}", [x, rate], lambda x, t: F.poisson_nll_loss(x, t, reduction=r))
    case(
        f"gaussian.{r}",
        [x, t, rate],
        lambda x, t, v: F.gaussian_nll_loss(x, t, v, full=True, reduction=r),
    )
    case(f"soft_margin.{r}", [x * 2, sign.float()], lambda x, t: F.soft_margin_loss(x, t, reduction=r))
    case(
        f"hinge.{r}",
        [x, sign],
        lambda x, t: F.hinge_embedding_loss(x, t, margin=0.8, reduction=r),
    )
    case(
        f"ranking.{r}",
        [x, t, sign],
        lambda x, y, t: F.margin_ranking_loss(x, y, t, margin=0.3, reduction=r),
    )
    case(
        f"cosine.{r}",
        [x, t, sign[:, 0]],
        lambda x, y, t: F.cosine_embedding_loss(x, y, t, margin=0.1, reduction=r),
    )
    case(
        f"multilabel.{r}",
        [x, yes, w4],
        lambda x, t, w: F.multilabel_soft_margin_loss(x, t, w, reduction=r),
    )
case("smooth_l1.beta0", [x, t], lambda x, t: F.smooth_l1_loss(x, t, beta=0.0))
case("bce.ends", [torch.tensor([0.0, 1.0, 0.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 0.0])], F.binary_cross_entropy)
case("bce_logits.plain", [x * 30, yes], F.binary_cross_entropy_with_logits)
case("poisson.rate", [rate, rate.flip(0) * 2], lambda x, t: F.poisson_nll_loss(x, t, log_input=False, full=True))
case("gaussian.narrow", [x, t, rate[:, 0] * 1e-6], lambda x, t, v: F.gaussian_nll_loss(x, t, v, eps=1e-2))
case("cosine.single", [x[0], t[0], torch.tensor(-1)], F.cosine_embedding_loss)

logs = x.log_softmax(1)
target = t.softmax(1)
target[0, 0] = 0.0
for r in ["none", "mean", "sum", "batchmean"]:
    case(f"kl.{r}", [logs, target], lambda x, t: F.kl_div(x, t, reduction=r))
    case(
        f"kl.log.{r}", [logs, t.log_softmax(1)], lambda x, t: F.kl_div(x, t, reduction=r, log_target=True)
    )

y, q, n = torch.randn(5, 4), torch.randn(5, 4), torch.randn(5, 4)
for r in ["none", "mean", "sum"]:
    case(f"triplet.{r}", [y, q, n], lambda a, p, n: F.triplet_margin_loss(a, p, n, reduction=r))
case("triplet.swap", [y, q, n], lambda a, p, n: F.triplet_margin_loss(a, p, n, margin=2.0, p=1.0, swap=True))

scores, wide = torch.randn(5, 4), torch.randn(2, 4, 3, 2)
index = torch.tensor([1, 0, -100, 3, 2])
windex = torch.randint(0, 4, (2, 3, 2))
windex[0, 1, 0] = 2
for r in ["none", "mean", "sum"]:
    case(f"ce.{r}", [scores, index], lambda x, t: F.cross_entropy(x, t, reduction=r))
    case(
        f"ce.all.{r}",
        [wide, windex, w4],
        lambda x, t, w: F.cross_entropy(x, t, w, ignore_index=2, label_smoothing=0.2, reduction=r),
    )
    case(
        f"ce.smooth.{r}",
        [scores, index],
        lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, reduction=r),
    )
    case(
        f"ce.prob.{r}",
        [wide, torch.randn(2, 4, 3, 2).softmax(1), w4],
        lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1, reduction=r),
    )
    case(
        f"nll.{r}",
        [scores.log_softmax(1), index, w4],
        lambda x, t, w: F.nll_loss(x, t, w, reduction=r),
    )
    case(
        f"multi_margin.{r}",
        [scores, index.clamp(min=0), w4],
        lambda x, t, w: F.multi_margin_loss(x, t, p=2, margin=0.9, weight=w, reduction=r),
    )
case("ce.single", [scores[0], torch.tensor(2)], F.cross_entropy)
case("ce.single.prob", [scores[0], torch.randn(4).softmax(0)], F.cross_entropy)
case("nll.wide", [wide.log_softmax(1), windex], F.nll_loss)
case("multi_margin.single", [scores[0], torch.tensor(2)], F.multi_margin_loss)
case("ce.half", [scores.bfloat16(), index], F.cross_entropy)
write(__file__)
