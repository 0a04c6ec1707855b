//! Every model, small: eager and traced agree at three sizes of each dynamic dim, and the keys are the published ones.

use tgc_frontend::nn::*;
use tgc_zoo::{bert, gpt2, llama, mobilenet, perceptron, resnet, vit};

fn close(what: &str, got: &[Tensor], want: &[Tensor]) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (g, w) in got.iter().zip(want) {
        assert_eq!(format!("{g:#}"), format!("{w:#}"), "{what}");
        let w = w.to_vec();
        let scale = w.iter().fold(1e-6f64, |m, x| m.max(x.abs()));
        let worst = g.to_vec().iter().zip(&w).fold(0f64, |m, (x, y)| m.max((x - y).abs()));
        assert!(worst <= 1e-4 * scale, "{what}: off by {worst:e} of {scale:e}");
    }
}

/// Traces once and compares with eager runs on the inputs of three sizes.
fn same<M: Module, const N: usize>(
    what: &str,
    m: &M,
    specs: [Spec; N],
    inputs: [[Tensor; N]; 3],
    f: impl Fn(&M, [Tensor; N]) -> Vec<Tensor>,
) {
    m.eval();
    let p = trace(m, specs, |m, x| f(m, x)).unwrap();
    for x in inputs {
        let got = p.run("forward", &x).unwrap();
        close(what, &got, &f(m, x));
    }
}

fn images(channels: i64, side: i64) -> [[Tensor; 1]; 3] {
    manual_seed(7);
    [1, 2, 3].map(|n| [Tensor::randn((n, channels, side, side))])
}

fn ids(vocab: i64) -> [[Tensor; 1]; 3] {
    manual_seed(8);
    [(1, 1), (2, 5), (3, 9)].map(|(n, t)| [Tensor::randint(0, vocab, (n, t))])
}

#[test]
fn perceptrons() {
    let m = perceptron::mlp(&[12, 8, 8, 4]);
    let x = [1, 3, 8].map(|n| [Tensor::randn((n, 12))]);
    same("mlp", &m, [spec("x", F32, ("batch", 12))], x, |m, [x]| vec![m.forward(&x)]);
    let m = perceptron::LeNet::new();
    let s = spec("x", F32, ("batch", 1, 28, 28));
    same("lenet", &m, [s], images(1, 28), |m, [x]| vec![m.forward(&x)]);
}

#[test]
fn residual() {
    let m = resnet::ResNet::small(10);
    let s = spec("x", F32, ("batch", 3, 33, 33));
    same("resnet", &m, [s], images(3, 33), |m, [x]| vec![m.forward(&x)]);
}

#[test]
fn mobile() {
    let m = mobilenet::MobileNetV2::new(0.25, 10);
    let s = spec("x", F32, ("batch", 3, 32, 32));
    same("mobilenet", &m, [s], images(3, 32), |m, [x]| vec![m.forward(&x)]);
}

#[test]
fn vision_transformer() {
    let c = vit::Config { image: 16, patch: 8, layers: 2, heads: 2, hidden: 16, mlp: 24, classes: 5 };
    let m = vit::VisionTransformer::new(&c);
    let s = spec("x", F32, ("batch", 3, 16, 16));
    same("vit", &m, [s], images(3, 16), |m, [x]| vec![m.forward(&x)]);
}

#[test]
fn language() {
    let c = bert::Config { vocab: 50, hidden: 16, layers: 2, heads: 2, intermediate: 24, positions: 12 };
    let m = bert::BertModel::new(&c);
    let input = |n: &str| spec(n, I64, ("batch", dim("seq").range(1..=12)));
    let x = ids(50).map(|[i]| {
        let mask = Tensor::randint(0, 2, i.shape());
        [i, mask.maximum(Tensor::arange(mask.size(1)).eq(0).to_dtype(I64))]
    });
    same("bert", &m, [input("ids"), input("mask")], x, |m, [i, mask]| {
        let (a, b) = m.forward(&i, Some(&mask), None);
        vec![a, b]
    });
    let c = gpt2::Config { vocab: 50, positions: 12, width: 16, layers: 2, heads: 2 };
    let m = gpt2::Gpt2::new(&c);
    same("gpt2", &m, [input("ids")], ids(50), |m, [i]| vec![m.forward(&i)]);
    let m = llama::Llama::new(&decoder());
    same("llama", &m, [input("ids")], ids(100), |m, [i]| vec![m.forward(&i)]);
}

fn decoder() -> llama::Config {
    llama::Config {
        vocab: 100,
        hidden: 64,
        intermediate: 96,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        positions: 12,
        theta: 10000.0,
    }
}

/// Names and shapes as torchvision and transformers publish them (`keys.txt` is made by `keys.py` from those packages).
#[test]
fn keys_are_the_published_ones() {
    let published = include_str!("keys.txt");
    let mut models: Vec<(&str, ModuleDict<Tensor>)> = Vec::new();
    models.push(("resnet18", resnet::ResNet::resnet18(1000).state_dict()));
    models.push(("mobilenet_v2", mobilenet::MobileNetV2::new(1.0, 1000).state_dict()));
    let c = vit::Config { layers: 2, ..vit::Config::b_16() };
    models.push(("vit_b_16", vit::VisionTransformer::new(&c).state_dict()));
    let c = bert::Config { layers: 2, vocab: 100, ..bert::Config::base() };
    models.push(("bert_base", bert::BertModel::new(&c).state_dict()));
    let c = gpt2::Config { layers: 2, vocab: 100, ..gpt2::Config::small() };
    models.push(("llama", llama::Llama::new(&decoder()).state_dict()));
    models.push(("gpt2", gpt2::Gpt2::new(&c).state_dict()));
    for (name, dict) in models {
        let mut ours: Vec<String> = dict.iter().map(|(k, v)| format!("{name} {k} {:?}", v.shape())).collect();
        let mut wanted: Vec<&str> = published.lines().filter(|l| l.split(' ').next() == Some(name)).collect();
        ours.sort();
        wanted.sort_unstable();
        assert_eq!(ours, wanted, "{name}");
    }
}
