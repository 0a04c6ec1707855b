//! Losses against PyTorch's figures, and the modules of losses against their functions.

use crate::figures::{Figures, figures};
use functional::*;
use std::collections::BTreeMap;
use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

fn all() -> Figures {
    figures("losses.json", include_str!("torch/losses.json"))
}

type Loss = Box<dyn Fn(&[Tensor]) -> Tensor>;

const REDUCTIONS: [(&str, Reduction); 3] =
    [("none", Reduction::None), ("mean", Reduction::Mean), ("sum", Reduction::Sum)];

/// The cases by name.
#[derive(Default)]
struct Table(BTreeMap<String, Loss>);

impl Table {
    fn one(&mut self, name: &str, f: impl Fn(&[Tensor]) -> Tensor + 'static) {
        assert!(self.0.insert(name.to_string(), Box::new(f)).is_none(), "{name}");
    }

    /// A case for each reduction.
    fn each(&mut self, name: &str, f: fn(&[Tensor], Reduction) -> Tensor) {
        for (word, r) in REDUCTIONS {
            self.one(&format!("{name}.{word}"), move |x| f(x, r));
        }
    }
}

fn elements() -> Table {
    let mut t = Table::default();
    t.each("mse", |x, r| mse_loss(&x[0], &x[1], r));
    t.each("l1", |x, r| l1_loss(&x[0], &x[1], r));
    t.each("smooth_l1", |x, r| smooth_l1_loss(&x[0], &x[1], 0.7, r));
    t.each("huber", |x, r| huber_loss(&x[0], &x[1], 0.6, r));
    t.each("bce", |x, r| binary_cross_entropy(&x[0], &x[1], Some(&x[2]), r));
    t.each("bce_logits", |x, r| binary_cross_entropy_with_logits(&x[0], &x[1], Some(&x[2]), Some(&x[3]), r));
    t.each("poisson", |x, r| poisson_nll_loss(&x[0], &x[1], true, false, 1e-8, r));
    t.each("gaussian", |x, r| gaussian_nll_loss(&x[0], &x[1], &x[2], true, 1e-6, r));
    t.each("soft_margin", |x, r| soft_margin_loss(&x[0], &x[1], r));
    t.each("hinge", |x, r| hinge_embedding_loss(&x[0], &x[1], 0.8, r));
    t.one("smooth_l1.beta0", |x| smooth_l1_loss(&x[0], &x[1], 0.0, Reduction::Mean));
    t.one("bce.ends", |x| binary_cross_entropy(&x[0], &x[1], None, Reduction::Mean));
    t.one("bce_logits.plain", |x| {
        binary_cross_entropy_with_logits(&x[0], &x[1], None, None, Reduction::Mean)
    });
    t.one("poisson.rate", |x| poisson_nll_loss(&x[0], &x[1], false, true, 1e-8, Reduction::Mean));
    t.one("gaussian.narrow", |x| gaussian_nll_loss(&x[0], &x[1], &x[2], false, 1e-2, Reduction::Mean));
    let kl = [
        ("none", KlReduction::None),
        ("mean", KlReduction::Mean),
        ("sum", KlReduction::Sum),
        ("batchmean", KlReduction::BatchMean),
    ];
    for (word, r) in kl {
        t.one(&format!("kl.{word}"), move |x| kl_div(&x[0], &x[1], false, r));
        t.one(&format!("kl.log.{word}"), move |x| kl_div(&x[0], &x[1], true, r));
    }
    t
}

fn pairs() -> Table {
    let mut t = Table::default();
    t.each("ranking", |x, r| margin_ranking_loss(&x[0], &x[1], &x[2], 0.3, r));
    t.each("cosine", |x, r| cosine_embedding_loss(&x[0], &x[1], &x[2], 0.1, r));
    t.one("cosine.single", |x| cosine_embedding_loss(&x[0], &x[1], &x[2], 0.0, Reduction::Mean));
    t.each("triplet", |x, r| {
        triplet_margin_loss(&x[0], &x[1], &x[2], &Triplet { reduction: r, ..Triplet::default() })
    });
    t.one("triplet.swap", |x| {
        let args = Triplet { margin: 2.0, p: 1.0, swap: true, ..Triplet::default() };
        triplet_margin_loss(&x[0], &x[1], &x[2], &args)
    });
    t
}

fn classes() -> Table {
    let mut t = Table::default();
    t.each("multilabel", |x, r| multilabel_soft_margin_loss(&x[0], &x[1], Some(&x[2]), r));
    t.each("ce", |x, reduction| {
        cross_entropy(&x[0], &x[1], &CrossEntropy { reduction, ..CrossEntropy::default() })
    });
    t.each("ce.all", |x, reduction| {
        let args = CrossEntropy { weight: Some(&x[2]), ignore_index: 2, label_smoothing: 0.2, reduction };
        cross_entropy(&x[0], &x[1], &args)
    });
    t.each("ce.smooth", |x, reduction| {
        let args = CrossEntropy { label_smoothing: 0.1, reduction, ..CrossEntropy::default() };
        cross_entropy(&x[0], &x[1], &args)
    });
    t.each("ce.prob", |x, reduction| {
        let args =
            CrossEntropy { weight: Some(&x[2]), label_smoothing: 0.1, reduction, ..CrossEntropy::default() };
        cross_entropy(&x[0], &x[1], &args)
    });
    t.each("nll", |x, r| nll_loss(&x[0], &x[1], Some(&x[2]), -100, r));
    t.each("multi_margin", |x, r| multi_margin_loss(&x[0], &x[1], 2, 0.9, Some(&x[2]), r));
    for name in ["ce.single", "ce.single.prob", "ce.half"] {
        t.one(name, |x| cross_entropy(&x[0], &x[1], &CrossEntropy::default()));
    }
    t.one("nll.wide", |x| nll_loss(&x[0], &x[1], None, -100, Reduction::Mean));
    t.one("multi_margin.single", |x| multi_margin_loss(&x[0], &x[1], 1, 1.0, None, Reduction::Mean));
    t
}

fn check(t: Table) {
    let figures = all();
    for (name, f) in t.0 {
        let tolerance = if name == "ce.half" { (1e-2, 1e-2) } else { (3e-6, 3e-7) };
        figures.check(&name, tolerance.0, tolerance.1, |x| vec![f(x)]);
    }
}

#[test]
fn of_elements() {
    check(elements());
}

#[test]
fn of_pairs() {
    check(pairs());
}

#[test]
fn of_classes() {
    check(classes());
}

#[test]
fn every_case_is_checked() {
    let mut tested: Vec<String> =
        [elements(), pairs(), classes()].into_iter().flat_map(|t| t.0.into_keys()).collect();
    tested.sort();
    assert_eq!(all().names().collect::<Vec<_>>(), tested);
}

/// The modules give what their functions give, and their weights are in the state dict.
#[test]
fn modules() {
    let f = all();
    let check = |name: &str, run: &dyn Fn(&[Tensor]) -> Tensor| {
        let c = f.case(name);
        crate::figures::agree(name, &[run(&c.inputs)], &c.outputs, 3e-6, 3e-7);
    };
    let sum = Reduction::Sum;
    check("mse.sum", &|x| MSELoss::new().reduction(sum).forward(&x[0], &x[1]));
    check("l1.mean", &|x| L1Loss::new().forward(&x[0], &x[1]));
    check("smooth_l1.sum", &|x| SmoothL1Loss::new().beta(0.7).reduction(sum).forward(&x[0], &x[1]));
    check("huber.mean", &|x| HuberLoss::new().delta(0.6).forward(&x[0], &x[1]));
    check("bce.sum", &|x| BCELoss::new().weight(&x[2]).reduction(sum).forward(&x[0], &x[1]));
    check("bce_logits.mean", &|x| {
        BCEWithLogitsLoss::new().weight(&x[2]).pos_weight(&x[3]).forward(&x[0], &x[1])
    });
    check("kl.log.batchmean", &|x| {
        KLDivLoss::new().log_target(true).reduction(KlReduction::BatchMean).forward(&x[0], &x[1])
    });
    check("poisson.rate", &|x| PoissonNLLLoss::new().log_input(false).full(true).forward(&x[0], &x[1]));
    check("gaussian.mean", &|x| GaussianNLLLoss::new().full(true).forward(&x[0], &x[1], &x[2]));
    check("soft_margin.mean", &|x| SoftMarginLoss::new().forward(&x[0], &x[1]));
    check("hinge.mean", &|x| HingeEmbeddingLoss::new().margin(0.8).forward(&x[0], &x[1]));
    check("ranking.mean", &|x| MarginRankingLoss::new().margin(0.3).forward(&x[0], &x[1], &x[2]));
    check("cosine.mean", &|x| CosineEmbeddingLoss::new().margin(0.1).forward(&x[0], &x[1], &x[2]));
    check("triplet.swap", &|x| {
        TripletMarginLoss::new().margin(2.0).p(1.0).swap(true).forward(&x[0], &x[1], &x[2])
    });
    check("ce.all.mean", &|x| {
        let m = CrossEntropyLoss::new().weight(&x[2]).ignore_index(2).label_smoothing(0.2);
        assert_eq!(m.state_dict().keys().collect::<Vec<_>>(), ["weight"]);
        m.forward(&x[0], &x[1])
    });
    check("nll.sum", &|x| NLLLoss::new().weight(&x[2]).reduction(sum).forward(&x[0], &x[1]));
    check("multilabel.mean", &|x| MultiLabelSoftMarginLoss::new().weight(&x[2]).forward(&x[0], &x[1]));
    check("multi_margin.mean", &|x| {
        MultiMarginLoss::new().p(2).margin(0.9).weight(&x[2]).forward(&x[0], &x[1])
    });
}

#[test]
fn symbolic_batches() {
    let x = spec("x", F32, ("batch", 4));
    let t = spec("t", I64, ("batch",));
    let loss = |x: &Tensor, t: &Tensor| {
        let args = CrossEntropy { ignore_index: 1, label_smoothing: 0.1, ..CrossEntropy::default() };
        cross_entropy(x, t, &args) + mse_loss(x, &x.zeros_like(), Reduction::Mean)
    };
    let p = trace(&(), [x, t], |_, [x, t]| loss(&x, &t)).unwrap();
    for n in [1, 2, 7] {
        let (x, t) = (Tensor::randn((n, 4)), Tensor::arange(n) % 3);
        let y = p.run("forward", &[x.clone(), t.clone()]).unwrap();
        crate::figures::agree("batch", &y, &[loss(&x, &t)], 1e-6, 1e-7);
    }
}
