//! Initialisations against PyTorch's: the mean, deviation and greatest absolute value of many random numbers, and what is
//! not random exactly.

use crate::figures::{Figures, agree, figures};
use tgc_frontend::nn::init::*;
use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

fn all() -> Figures {
    figures("init.json", include_str!("torch/init.json"))
}

/// Mean, deviation and greatest absolute value, and the number of elements.
fn told(t: &Tensor) -> ([f64; 3], f64) {
    let v = t.to_vec();
    let n = v.len() as f64;
    let mean = v.iter().sum::<f64>() / n;
    let std = (v.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    ([mean, std, v.iter().fold(0.0, |m: f64, x| m.max(x.abs()))], n)
}

/// Five standard errors; a tenth of the greatest value where it is a bound, else a quarter.
fn alike(what: &str, got: &Tensor, want: &Tensor) {
    let (([mean, std, most], n), want) = (told(got), want.to_vec());
    let error = 5.0 * std / n.sqrt() + 1e-7;
    let bound = want[2] <= want[0].abs() + 1.8 * want[1];
    let slack = if bound { 0.1 } else { 0.25 };
    assert!((mean - want[0]).abs() <= 1.5 * error, "{what}: mean {mean}, PyTorch has {}", want[0]);
    assert!((std - want[1]).abs() <= error, "{what}: deviation {std}, PyTorch has {}", want[1]);
    assert!((most - want[2]).abs() <= slack * want[2], "{what}: at most {most}, PyTorch has {}", want[2]);
}

fn layer(name: &str, m: &dyn Fn() -> Box<dyn Module>) -> String {
    manual_seed(5);
    let (figures, m) = (all(), m());
    let (case, state) = (figures.case(name), m.state_dict());
    assert_eq!(state.keys().cloned().collect::<Vec<_>>(), figures.keys(name), "{name}");
    for ((key, got), want) in state.iter().zip(&case.outputs) {
        alike(&format!("{name}, {key}"), got, want);
    }
    name.to_string()
}

macro_rules! modules {
    ($($name:literal $m:expr;)*) => { vec![$(layer($name, &|| Box::new($m))),*] };
}

fn layers() -> Vec<String> {
    modules! {
        "linear" Linear::new(200, 150);
        "bilinear" Bilinear::new(20, 30, 40);
        "prelu" PReLU::with(3, 0.25);
        "conv1d" Conv1d::new(40, 50, 5);
        "conv2d" Conv2d::new(32, 64, 3).groups(2);
        "convt2d" ConvTranspose2d::new(32, 64, 3).groups(2);
        "bn" BatchNorm2d::new(5);
        "in" InstanceNorm1d::new(4).affine(true);
        "ln" LayerNorm::with(&[3, 4], 1e-5, true, true);
        "rms" RMSNorm::new(4);
        "gn" GroupNorm::new(2, 4);
        "embedding" Embedding::new(100, 200);
        "bag" EmbeddingBag::new(100, 200);
        "mha" MultiheadAttention::new(64, 4);
        "mha.dims" MultiheadAttention::new(64, 4).kdim_vdim(80, 30);
        "lstm" LSTM::new(50, 40);
        "gru" GRU::new(50, 40).bidirectional(true);
        "rnn" RNN::new(60, 90);
        "gru_cell" GRUCell::new(50, 40);
        "encoder_layer" TransformerEncoderLayer::new(TransformerArgs {
            dim_feedforward: 100,
            ..TransformerArgs::new(64, 4)
        });
    }
}

fn random() -> Vec<String> {
    let one = |name: &str, f: &dyn Fn(&Param)| {
        manual_seed(6);
        let p = Param::new(Tensor::zeros((60, 40, 3), F32));
        f(&p);
        alike(name, &p, &all().case(name).outputs[0]);
        name.to_string()
    };
    let (tanh, selu) = (calculate_gain(Nonlinearity::Tanh), calculate_gain(Nonlinearity::Selu));
    vec![
        one("uniform_", &|p| uniform_(p, -1.0, 3.0)),
        one("normal_", &|p| normal_(p, 2.0, 0.5)),
        one("trunc_normal_", &|p| trunc_normal_(p, 0.2, 1.0, -0.5, 1.0)),
        one("xavier_uniform_", &|p| xavier_uniform_(p, tanh)),
        one("xavier_normal_", &|p| xavier_normal_(p, selu)),
        one("kaiming_uniform_", &|p| kaiming_uniform_(p, Mode::FanIn, Nonlinearity::LeakyRelu(0.3))),
        one("kaiming_normal_", &|p| kaiming_normal_(p, Mode::FanOut, Nonlinearity::Relu)),
        one("orthogonal_", &|p| {
            orthogonal_(p, 2.0);
            let w = p.reshape((60, 120));
            let eye = Tensor::arange(60).unsqueeze(1).eq(Tensor::arange(60)).to_dtype(F32);
            agree("orthogonal", &[w.matmul(&w.transpose(0, 1))], &[eye * 4.0], 0.0, 2e-6);
        }),
    ]
}

fn exact() -> Vec<String> {
    let one = |name: &str, f: &dyn Fn(&Param)| {
        let want = all().case(name).outputs;
        let p = Param::new(want[0].zeros_like() + 9.0);
        f(&p);
        agree(name, &[p.get()], &want, 0.0, 0.0);
        name.to_string()
    };
    vec![
        one("eye_", &|p| eye_(p)),
        one("dirac_", &|p| dirac_(p, 1)),
        one("dirac_.groups", &|p| dirac_(p, 2)),
        one("ones_", &|p| ones_(p)),
        one("zeros_", &|p| zeros_(p)),
        one("constant_", &|p| constant_(p, 0.3)),
    ]
}

#[test]
fn every_case_agrees() {
    let mut tested = [layers(), random(), exact()].concat();
    tested.sort();
    assert_eq!(all().names().collect::<Vec<_>>(), tested);
}

#[test]
fn a_tall_orthogonal_matrix_has_orthogonal_columns() {
    let p = Param::new(Tensor::zeros((7, 3), F32));
    orthogonal_(&p, 1.0);
    let eye = Tensor::arange(3).unsqueeze(1).eq(Tensor::arange(3)).to_dtype(F32);
    agree("columns", &[p.transpose(0, 1).matmul(&p)], &[eye], 0.0, 1e-6);
}

#[test]
fn the_padding_row_is_zero() {
    let m = Embedding::new(4, 3).padding_idx(-2);
    let rows = m.weight.square().sum(&[1], false).to_vec();
    assert!(rows[2] == 0.0 && rows.iter().filter(|r| **r > 0.0).count() == 3, "{rows:?}");
    let e = catch(|| Embedding::new(4, 3).padding_idx(4)).err().unwrap().to_string();
    assert!(e.contains("E-NN-101"), "{e}");
}
