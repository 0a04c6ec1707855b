//! Damaged models never panic: every truncation and many random changes of small models of all kinds are imported, and
//! what imports is run on small inputs.

use crate::model::*;
use bytes::Bytes;
use tgc_frontend::onnx::{ImportOptions, import_bytes};
use tgc_proto::GraphProto;

/// Models that between them use most importers.
fn samples() -> Vec<M> {
    let branch = |op: &str| GraphProto {
        node: vec![node(op, &["h"], &["b"], &[])],
        output: vec![tgc_proto::ValueInfoProto { name: Some("b".into()), ..Default::default() }],
        ..Default::default()
    };
    let cnn = model(13).input("x", F32, &["batch", "2", "n"]).init(floats("w", &[3, 2, 3], &[0.5; 18]));
    let cnn =
        cnn.node("Conv", &["x", "w"], &["c"], &[("auto_pad", A::S("SAME_UPPER")), ("strides", A::Is(&[2]))]);
    let cnn = cnn.node("MaxPool", &["c"], &["p"], &[("kernel_shape", A::Is(&[2])), ("ceil_mode", A::I(1))]);
    let cnn = cnn.node("Relu", &["p"], &["r"], &[]).node("GlobalAveragePool", &["r"], &["g"], &[]).node(
        "Flatten",
        &["g"],
        &["f"],
        &[],
    );
    let cnn = cnn.node("Softmax", &["f"], &["y"], &[("axis", A::I(-1))]).output("y");
    let shape = model(17)
        .input("x", F32, &["", "s", "4"])
        .ints("z", &[0])
        .ints("m", &[-1, 2])
        .ints("one", &[1])
        .ints("big", &[i64::MAX]);
    let shape = shape.node("Shape", &["x"], &["sh"], &[]).node("Slice", &["sh", "z", "one"], &["d"], &[]);
    let shape = shape.node("Concat", &["d", "m"], &["t"], &[("axis", A::I(0))]).node(
        "Reshape",
        &["x", "t"],
        &["r"],
        &[],
    );
    let shape =
        shape.node("Slice", &["r", "one", "big", "one"], &["q"], &[]).node("Transpose", &["q"], &["u"], &[]);
    let shape = shape
        .node("ReduceSum", &["u", "z"], &["v"], &[])
        .node("Tile", &["one", "one"], &["tt"], &[])
        .output("v")
        .output("tt");
    let attrs = [("then_branch", A::G(branch("Neg"))), ("else_branch", A::G(branch("Exp")))];
    let cond = model(16).input("x", F32, &["n"]).input("c", BOOL, &[]).node("Softplus", &["x"], &["h"], &[]);
    let cond = cond.node("If", &["c"], &["y"], &attrs).output("y");
    let mix = model(18).input("x", F32, &["3", "n"]).ints("k", &[1]).node(
        "TopK",
        &["x", "k"],
        &["v", "j"],
        &[("axis", A::I(0))],
    );
    let mix = mix.node("Gather", &["x", "j"], &["g"], &[]).node("NonZero", &["x"], &["nz"], &[]).node(
        "Split",
        &["x"],
        &["a", "b"],
        &[("num_outputs", A::I(2))],
    );
    let mix = mix
        .node("LpNormalization", &["a"], &["l"], &[])
        .node("Clip", &["l"], &["y"], &[])
        .output("y")
        .output("nz")
        .output("v");
    vec![cnn, shape, cond, mix]
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Imports; if that works, the module must verify.
fn feed(b: Vec<u8>) -> bool {
    match import_bytes(Bytes::from(b), None, &ImportOptions::default()) {
        Ok(m) => {
            let bad = tgc_ir::verify::verify(&m.module);
            assert!(bad.is_empty(), "{bad:?}");
            true
        }
        Err(v) => {
            assert!(!v.is_empty() && v.iter().all(|d| !d.message.is_empty()));
            false
        }
    }
}

#[test]
fn samples_are_valid() {
    for m in samples() {
        m.import();
    }
}

#[test]
fn truncations() {
    for m in samples() {
        let whole = m.bytes();
        (0..whole.len()).for_each(|n| _ = feed(whole[..n].to_vec()));
    }
}

#[test]
fn random_changes() {
    let mut rng = Rng(0x9e37_79b9_7f4a_7c15);
    let mut good = 0;
    for m in samples() {
        let whole = m.bytes().to_vec();
        for _ in 0..1500 {
            let mut b = whole.clone();
            for _ in 0..1 + rng.next() % 3 {
                let at = (rng.next() % b.len() as u64) as usize;
                match rng.next() % 4 {
                    0 => b[at] ^= 1 << (rng.next() % 8),
                    1 => b[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff][(rng.next() % 7) as usize],
                    2 => _ = b.remove(at),
                    _ => b.insert(at, rng.next() as u8),
                }
            }
            good += usize::from(feed(b));
        }
    }
    assert!(
        good > 50,
        "only {good} damaged models imported: the changes are too harsh to reach the importers"
    );
}
