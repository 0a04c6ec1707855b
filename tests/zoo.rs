//! Models written in Rust, compiled and exported: the zoo's models, small, at three sizes of each dynamic dim, with one and two
//! threads against the interpreter (which `zoo/tests` compares with eager runs), and as ONNX files in ONNX Runtime.

use std::process::Command;
use tgc::agree;
use tgc::frontend::nn::*;
use tgc::zoo::{bert, gpt2, llama, mobilenet, perceptron, resnet, vit};

fn compiled(what: &str, program: Result<Program, Errors>) {
    let module = program.unwrap_or_else(|e| panic!("{what}: {e}")).into_module();
    agree(&module, 3).unwrap_or_else(|f| panic!("{what}: {}", f.text));
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("zoo");
    std::fs::create_dir_all(&dir).unwrap();
    let model = dir.join(format!("{what}.tgir"));
    tgc::ir::weights::save_module(&module, &model).unwrap();
    // The oldest opset that is written, two in between, and the newest.
    for opset in ["13", "17", "21", "28"] {
        let mut c = Command::new(env!("CARGO_BIN_EXE_tgc"));
        c.arg("export").arg(&model).arg("-o").arg(dir.join(format!("{what}.{opset}.onnx")));
        c.args(["--verify", "--opset", opset]).env("TGC_PYTHON", python());
        let out = c.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{what}, opset {opset}: {said}");
        assert!(
            said.contains("ONNX Runtime") && said.contains("computes the same"),
            "{what}, {opset}: {said}"
        );
    }
}

/// The Python of the tests, which has ONNX Runtime.
fn python() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python")
}

fn image(channels: i64, side: i64) -> [Spec; 1] {
    [spec("x", F32, [dim("batch").range(1..=4), channels.into(), side.into(), side.into()])]
}

fn ids(name: &str) -> Spec {
    spec(name, I64, [dim("batch").range(1..=4), dim("seq").range(1..=12)])
}

#[test]
fn perceptrons() {
    let m = perceptron::mlp(&[12, 8, 8, 4]);
    compiled("mlp", trace(&m, [spec("x", F32, ("batch", 12))], |m, [x]| m.forward(&x)));
    let m = perceptron::LeNet::new();
    compiled("lenet", trace(&m, image(1, 28), |m, [x]| m.forward(&x)));
}

#[test]
fn vision() {
    manual_seed(1);
    let m = resnet::ResNet::small(10);
    m.eval();
    compiled("resnet", trace(&m, image(3, 33), |m, [x]| m.forward(&x)));
    let m = mobilenet::MobileNetV2::new(0.25, 10);
    m.eval();
    compiled("mobilenet", trace(&m, image(3, 32), |m, [x]| m.forward(&x)));
    let c = vit::Config { image: 16, patch: 8, layers: 2, heads: 2, hidden: 16, mlp: 24, classes: 5 };
    let m = vit::VisionTransformer::new(&c);
    m.eval();
    compiled("vit", trace(&m, image(3, 16), |m, [x]| m.forward(&x)));
}

#[test]
fn language() {
    manual_seed(1);
    let c = bert::Config { vocab: 50, hidden: 16, layers: 2, heads: 2, intermediate: 24, positions: 12 };
    let m = bert::BertModel::new(&c);
    m.eval();
    compiled("bert", trace(&m, [ids("ids"), ids("mask")], |m, [i, mask]| m.forward(&i, Some(&mask), None)));
    let c = gpt2::Config { vocab: 50, positions: 12, width: 16, layers: 2, heads: 2 };
    let m = gpt2::Gpt2::new(&c);
    m.eval();
    compiled("gpt2", trace(&m, [ids("ids")], |m, [i]| m.forward(&i)));
    let c = llama::Config {
        vocab: 50,
        hidden: 16,
        intermediate: 24,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        positions: 12,
        theta: 10000.0,
    };
    let m = llama::Llama::new(&c);
    compiled("llama", trace(&m, [ids("ids")], |m, [i]| m.forward(&i)));
}

/// The named models are captured whole and save; the smallest builds.
#[test]
fn named() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("zoo");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("lenet.tgir");
    tgc::zoo::program("lenet", 1).unwrap().unwrap().save(&path).unwrap();
    let first = std::fs::read(&path).unwrap();
    tgc::zoo::program("lenet", 1).unwrap().unwrap().save(&path).unwrap();
    assert!(std::fs::read(&path).unwrap() == first, "one seed, one file");
    assert!(tgc::zoo::program("lenot", 1).is_none());
    let (module, _) = tgc::load(&path, &tgc::LoadOptions::default()).unwrap();
    agree(&module, 0).unwrap_or_else(|f| panic!("{}", f.text));
}
