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

#[test]
fn a_file_that_is_read_is_never_the_output() {
    let dir = scratch("keep");
    let at = |n: &str| dir.join(n);
    std::fs::copy(prepared("models/made/mlp.onnx"), at("m.onnx")).unwrap();
    let before = std::fs::read(at("m.onnx")).unwrap();
    let words = ["the place of a file that is read"];
    fails(tgc().current_dir(&dir).args(["build", "m.onnx", "-o", "./m.onnx"]), 2, &words);
    fails(tgc().current_dir(&dir).args(["build", "m.onnx", "--emit", "ir", "-o", "m.onnx"]), 2, &words);
    assert!(std::fs::read(at("m.onnx")).unwrap() == before);
    ok(tgc().current_dir(&dir).args(["build", "m.onnx", "--verify=never", "-o", "m.tgc"]));
    let before = std::fs::read(at("m.tgc")).unwrap();
    let trace = ["profile", "m.tgc", "--trace", "m.tgc"];
    fails(tgc_run().current_dir(&dir).args(trace), 1, &["E-RUN-104", "is read by this run"]);
    assert!(std::fs::read(at("m.tgc")).unwrap() == before);
    npz(&at("in.npz"), "x=np.zeros((2, 784), np.float32)");
    let run = ["run", "m.tgc", "--inputs", "in.npz", "-o", "in.npz"];
    fails(tgc_run().current_dir(&dir).args(run), 1, &["E-RUN-104", "in.npz is read"]);
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    for path in ["/dev/zero", "/dev/null"] {
        fails(tgc().args(["build", path, "-o", "x.tgc"]), 1, &["not a regular file"]);
    }
}

#[test]
fn a_fixed_dim_builds_and_one_out_of_range_is_said() {
    let out = scratch("fixed-dim").join("m.tgc");
    let model = prepared("models/made/mlp.onnx");
    ok(tgc().arg("build").arg(&model).args(["--dim", "batch=5", "--verify=never", "-o"]).arg(&out));
    let said = ok(tgc_run().arg("info").arg(&out));
    assert!(said.contains("[5, "), "{said}");
    let dim = ["--dim", "batch=1000000000000"];
    fails(tgc_run().arg("bench").arg(artifact("models/made/mlp.onnx")).args(dim), 1, &["the dim is from"]);
}

/// Sizes that data decides, a kind of code that is not built, and a node without a lowering: all in one list.
#[test]
fn every_blocker_at_once() {
    let dir = scratch("blockers");
    let text = "graph @main(%x: f32[a, b], %y: f64[2]) -> (i64[2, a*b], f32[a, 3000], f64[2])\n  dim a in 1..9\n  \
                dim b in 3000..9000\n{\n  %i, %n = non_zero %x : i64[2, a*b], i64[] loc \"first\"\n  \
                %v, %k = top_k %x {axis = -1, k = 3000} : f32[a, 3000], i64[a, 3000] loc \"second\"\n  \
                %r = rem %y, %y : f64[2] loc \"third\"\n  return %i, %v, %r\n}\n";
    std::fs::write(dir.join("m.tgir"), text).unwrap();
    let mut c = tgc();
    c.arg("check").arg(dir.join("m.tgir"));
    fails(&mut c, 1, &["first", "second", "third", "rem on f64"]);
}
