//! The models against the published implementations: the same weights, by a formula of the key's place and the element's
//! index, the same inputs, and their results (`figures.json`, made by `figures.py`).

use std::collections::BTreeMap;
use tgc_frontend::nn::*;
use tgc_zoo::{bert, gpt2, llama, mobilenet, resnet, vit};

/// Numbers from -1 to 1 by a multiplicative hash of their index.
fn number(i: usize, salt: usize) -> f64 {
    let h = (i as u64 * 2_654_435_761 + salt as u64 * 40503) % (1 << 32);
    h as f64 / f64::from(1u32 << 31) - 1.0
}

fn fill(m: &impl Module) {
    let mut dict = m.state_dict();
    let mut keys: Vec<String> = dict.keys().cloned().collect();
    keys.retain(|k| dict[k].dtype() == F32);
    keys.sort();
    for (salt, key) in keys.iter().enumerate() {
        let shape: Vec<usize> = dict[key].shape().iter().map(|d| d.to_usize()).collect();
        let n: usize = shape.iter().product();
        let fan_in = n as f64 / shape.first().copied().unwrap_or(1) as f64;
        let (base, amp) = if key.ends_with("running_var") || (shape.len() == 1 && key.ends_with("weight")) {
            (1.0, 0.3)
        } else if shape.len() <= 1 {
            (0.0, 0.1)
        } else {
            (0.0, (4.0 / fan_in).sqrt())
        };
        let all: Vec<f32> = (0..n).map(|i| (base + amp * number(i, salt)) as f32).collect();
        dict.insert(key.clone(), Tensor::from_slice(&all, shape));
    }
    m.load_state_dict(&dict, true).unwrap();
    m.eval();
}

fn image(side: usize) -> Tensor {
    let all: Vec<f32> = (0..2 * 3 * side * side).map(|i| number(i, 99) as f32).collect();
    Tensor::from_slice(&all, (2, 3, side, side))
}

fn ids() -> Tensor {
    Tensor::from([[1i64, 5, 7, 2, 9], [0, 3, 19, 4, 11]])
}

fn agrees(name: &str, got: &Tensor) {
    let all: BTreeMap<String, Vec<f64>> = serde_json::from_str(include_str!("figures.json")).unwrap();
    let (want, got) = (&all[name], got.to_vec());
    assert_eq!(got.len(), want.len(), "{name}");
    let scale = want.iter().fold(0f64, |m, x| m.max(x.abs()));
    let worst = got.iter().zip(want).fold(0f64, |m, (x, y)| m.max((x - y).abs()));
    assert!(scale > 0.01 && worst <= 2e-5 * scale, "{name}: off by {worst:e} of {scale:e}");
}

#[test]
fn images() {
    let m = resnet::ResNet::resnet18(10);
    fill(&m);
    agrees("resnet18", &m.forward(&image(32)));
    let m = resnet::ResNet::resnet50(10);
    fill(&m);
    agrees("resnet50", &m.forward(&image(32)));
    let m = mobilenet::MobileNetV2::new(1.0, 10);
    fill(&m);
    agrees("mobilenet_v2", &m.forward(&image(32)));
    let c = vit::Config { image: 32, patch: 8, layers: 2, heads: 4, hidden: 32, mlp: 64, classes: 10 };
    let m = vit::VisionTransformer::new(&c);
    fill(&m);
    agrees("vit", &m.forward(&image(32)));
}

#[test]
fn texts() {
    let c = bert::Config { vocab: 20, hidden: 32, layers: 2, heads: 4, intermediate: 64, positions: 16 };
    let m = bert::BertModel::new(&c);
    fill(&m);
    let mask = Tensor::from([[1i64, 1, 1, 1, 1], [1, 1, 1, 0, 0]]);
    let (hidden, pooled) = m.forward(&ids(), Some(&mask), None);
    agrees("bert hidden", &hidden);
    agrees("bert pooled", &pooled);
    let c = gpt2::Config { vocab: 20, positions: 16, width: 32, layers: 2, heads: 4 };
    let m = gpt2::Gpt2::new(&c);
    fill(&m);
    agrees("gpt2", &m.forward(&ids()));
    let c = llama::Config {
        vocab: 20,
        hidden: 32,
        intermediate: 48,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        positions: 16,
        theta: 10000.0,
    };
    let m = llama::Llama::new(&c);
    fill(&m);
    agrees("llama", &m.forward(&ids()));
}
