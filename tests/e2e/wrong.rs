//! Wrong inputs of each kind: one clear diagnostic, the right exit code, no panic.

use crate::support::{MAGIKA, artifact, fails, ok, prepared, scratch, tgc, tgc_run};
use std::process::Command;

fn npz(path: &std::path::Path, code: &str) {
    let script = format!("import numpy as np, sys\nnp.savez(sys.argv[1], {code})\n");
    ok(Command::new(prepared("venv/bin/python")).args(["-c", &script]).arg(path));
}

#[test]
fn model_files() {
    fails(tgc().args(["build", "no/such/model.onnx", "-o", "x.tgc"]), 1, &["no/such/model.onnx"]);
    for verb in ["check", "build"] {
        let c = |name: &str, words: &[&str]| {
            let mut c = tgc();
            c.arg(verb).arg(prepared("models/made/wrong").join(name));
            if verb == "build" {
                c.arg("-o").arg(scratch("wrong-build").join("x.tgc"));
            }
            fails(&mut c, 1, words)
        };
        c("not_a_model.onnx", &["error["]);
        c("truncated.onnx", &["error["]);
        c("empty.onnx", &["error["]);
        c("unsupported.onnx", &["Frobnicate", "Bernoulli", "Multinomial", "blocks/0/frob", "3 errors"]);
    }
}

#[test]
fn every_made_wrong_model_is_refused() {
    let dir = prepared("models/made/wrong");
    let mut names: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "onnx"));
    names.sort();
    assert!(names.len() >= 20);
    for p in names {
        fails(tgc().arg("check").arg(p), 1, &["error["]);
    }
}

#[test]
fn usage() {
    fails(tgc().args(["build"]), 2, &["Usage"]);
    fails(tgc().args(["frobnicate"]), 2, &["frobnicate"]);
    fails(tgc().args(["build", "m.onnx"]), 2, &["-o FILE"]);
    fails(tgc().args(["build", "m.onnx", "-o", "x", "--dim", "batch=9..3"]), 2, &["batch=9..3"]);
    let model = prepared("models/made/mlp.onnx");
    let out = scratch("usage").join("x.tgc");
    fails(
        tgc().arg("build").arg(&model).arg("-o").arg(&out).args(["--target", "z80"]),
        1,
        &["z80", "x86-64-v3"],
    );
    fails(
        tgc().arg("build").arg(&model).arg("-o").arg(&out).args(["--dim", "bach=3"]),
        1,
        &["bach", "batch"],
    );
    fails(tgc_run().args(["run"]), 2, &["Usage"]);
}

#[test]
fn differences_end_with_exit_code_1() {
    let (mlp, other) = (prepared("models/made/mlp.onnx"), prepared("models/made/guards.onnx"));
    let said = ok(tgc().arg("diff").arg(&mlp).arg(artifact("models/made/mlp.onnx")));
    assert!(said.ends_with("no difference\n"), "{said}");
    fails(tgc().arg("diff").arg(&mlp).arg(&other), 1, &[]);
    fails(tgc().arg("diff").arg(&mlp).arg("no/such/file.tgc"), 1, &["no/such/file.tgc"]);
    fails(tgc().arg("diff").arg(&mlp).arg(&other).arg("--atol=-1"), 2, &["--atol"]);
}

#[test]
fn inputs_of_a_run() {
    let dir = scratch("inputs");
    let m = artifact("models/made/mlp.onnx");
    let run = |code: &str, words: &[&str]| {
        let f = dir.join("in.npz");
        npz(&f, code);
        fails(
            tgc_run().arg("run").arg(&m).arg("--inputs").arg(&f).arg("-o").arg(dir.join("o.npz")),
            1,
            words,
        );
    };
    run("y=np.zeros((2, 784), np.float32)", &["`y`", "`x`"]);
    run("x=np.zeros((2, 784), np.float64)", &["`x`", "f64", "f32"]);
    run("x=np.zeros((784,), np.float32)", &["`x`", "rank"]);
    run("x=np.zeros((2, 783), np.float32)", &["`x`", "783", "784"]);
}

#[test]
fn a_dim_out_of_its_range() {
    let dir = scratch("range");
    let (m, f) = (dir.join("m.tgc"), dir.join("in.npz"));
    ok(tgc().arg("build").arg(prepared("models/made/mlp.onnx")).args(["--dim", "batch=1..64", "-o"]).arg(&m));
    npz(&f, "x=np.zeros((64, 784), np.float32)");
    ok(tgc_run().arg("run").arg(&m).arg("--inputs").arg(&f).arg("-o").arg(dir.join("o.npz")));
    npz(&f, "x=np.zeros((65, 784), np.float32)");
    let words = ["65", "1", "64", "batch"];
    fails(tgc_run().arg("run").arg(&m).arg("--inputs").arg(&f).arg("-o").arg(dir.join("o.npz")), 1, &words);
}

#[test]
fn a_guard_that_does_not_hold() {
    let dir = scratch("guard");
    let f = dir.join("in.npz");
    npz(&f, "x=np.zeros((2, 4), np.float32), y=np.zeros((3, 4), np.float32)");
    let m = artifact("models/made/guards.onnx");
    fails(
        tgc_run().arg("run").arg(&m).arg("--inputs").arg(&f).arg("-o").arg(dir.join("o.npz")),
        1,
        &["broadcast", "sum"],
    );
}

#[test]
fn an_index_out_of_range() {
    let dir = scratch("index");
    let f = dir.join("in.npz");
    npz(&f, "index=np.array([0, 5], np.int64)");
    let m = artifact("models/made/gather.onnx");
    fails(
        tgc_run().arg("run").arg(&m).arg("--inputs").arg(&f).arg("-o").arg(dir.join("o.npz")),
        1,
        &["lookup", "out of range"],
    );
}

#[test]
fn damaged_artifacts() {
    let dir = scratch("damaged");
    let whole = std::fs::read(artifact(MAGIKA)).unwrap();
    let try_it = |bytes: &[u8]| {
        let p = dir.join("m.tgc");
        std::fs::write(&p, bytes).unwrap();
        fails(tgc_run().arg("info").arg(&p), 1, &["error["]);
    };
    try_it(b"");
    try_it(&whole[..whole.len() / 2]);
    let mut flipped = whole.clone();
    flipped[70_000] ^= 1;
    try_it(&flipped);
    let mut magic = whole.clone();
    magic[0] ^= 1;
    try_it(&magic);
    fails(tgc_run().args(["info", "no/such/file.tgc"]), 1, &["no/such/file.tgc"]);
}

#[test]
fn dims_given_twice_or_beyond_the_text() {
    let dir = scratch("dims");
    let g = dir.join("g.tgir");
    let text = "graph @main(%x: f32[n] \"x\") -> (f32[n] \"y\")\n  dim n in 10..20\n{\n  %0 = neg %x : f32[n]\n  return %0\n}\n";
    std::fs::write(&g, text).unwrap();
    ok(tgc().arg("check").arg(&g).args(["--dim", "n=12..15"]));
    fails(tgc().arg("check").arg(&g).args(["--dim", "n=100"]), 1, &["100", "10..20"]);
    fails(tgc().arg("check").arg(&g).args(["--dim", "n=12", "--dim", "n=13"]), 1, &["twice"]);
}

#[test]
fn a_reader_that_goes_away_and_a_device_as_output() {
    let model = prepared("models/made/mlp.onnx");
    let mut child = tgc()
        .arg("build")
        .arg(&model)
        .args(["--emit", "kernels"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let link = scratch("device").join("null");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    ok(tgc().arg("build").arg(&model).args(["--emit", "kernels", "-o"]).arg(&link));
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    fails(tgc().arg("build").arg(&model).arg("-o").arg(&link), 1, &["no regular file"]);
}
