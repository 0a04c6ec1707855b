//! The models by name, with random weights and captured.

use crate::{bert, gpt2, llama, mobilenet, perceptron, resnet, vit};
use tgc_frontend::nn::*;

/// Names of the models, and what they take.
pub const NAMES: [(&str, &str); 9] = [
    ("mlp", "784-512-512-10 perceptron: x f32[batch, 784]"),
    ("lenet", "LeNet-5: x f32[batch, 1, 28, 28]"),
    ("resnet18", "ResNet-18: x f32[batch, 3, 224, 224]"),
    ("resnet50", "ResNet-50: x f32[batch, 3, 224, 224]"),
    ("mobilenet_v2", "MobileNetV2: x f32[batch, 3, 224, 224]"),
    ("vit_b_16", "ViT-B/16: x f32[batch, 3, 224, 224]"),
    ("bert_base", "BERT-base: input_ids and attention_mask i64[batch, seq]"),
    ("gpt2", "GPT-2 124M: input_ids i64[batch, seq]"),
    ("llama", "a Llama-style decoder of 56M: input_ids i64[batch, seq]"),
];

fn batch() -> DimSpec {
    dim("batch").range(1..=64)
}

fn image(side: i64) -> [Spec; 1] {
    [spec("x", F32, [batch(), 3.into(), side.into(), side.into()])]
}

fn ids(name: &str, longest: usize) -> Spec {
    spec(name, I64, [batch(), dim("seq").range(1..=longest as i64)])
}

/// Captures a model with the weights of a seed, as the entry `forward`. None for an unknown name.
pub fn program(name: &str, seed: u64) -> Option<Result<Program, Errors>> {
    manual_seed(seed);
    Some(match name {
        "mlp" => {
            let m = perceptron::mlp(&[784, 512, 512, 10]);
            trace(&m, [spec("x", F32, [batch(), 784.into()])], |m, [x]| m.forward(&x))
        }
        "lenet" => {
            let m = perceptron::LeNet::new();
            trace(&m, [spec("x", F32, [batch(), 1.into(), 28.into(), 28.into()])], |m, [x]| m.forward(&x))
        }
        "resnet18" => residual(&resnet::ResNet::resnet18(1000)),
        "resnet50" => residual(&resnet::ResNet::resnet50(1000)),
        "mobilenet_v2" => {
            let m = mobilenet::MobileNetV2::new(1.0, 1000);
            m.eval();
            trace(&m, image(224), |m, [x]| m.forward(&x))
        }
        "vit_b_16" => {
            let m = vit::VisionTransformer::new(&vit::Config::b_16());
            m.eval();
            trace(&m, image(224), |m, [x]| m.forward(&x))
        }
        "bert_base" => {
            let c = bert::Config::base();
            let m = bert::BertModel::new(&c);
            m.eval();
            let inputs = [ids("input_ids", c.positions), ids("attention_mask", c.positions)];
            trace(&m, inputs, |m, [ids, mask]| {
                let (hidden, pooled) = m.forward(&ids, Some(&mask), None);
                named([("last_hidden_state", hidden), ("pooler_output", pooled)])
            })
        }
        "gpt2" => {
            let c = gpt2::Config::small();
            let m = gpt2::Gpt2::new(&c);
            m.eval();
            let result = |m: &gpt2::Gpt2, [ids]: [Tensor; 1]| named([("logits", m.forward(&ids))]);
            trace(&m, [ids("input_ids", c.positions)], result)
        }
        "llama" => {
            let c = llama::Config::small();
            let m = llama::Llama::new(&c);
            let result = |m: &llama::Llama, [ids]: [Tensor; 1]| named([("logits", m.forward(&ids))]);
            trace(&m, [ids("input_ids", c.positions)], result)
        }
        _ => return None,
    })
}

fn residual(m: &resnet::ResNet) -> Result<Program, Errors> {
    m.eval();
    trace(m, image(224), |m, [x]| m.forward(&x))
}
