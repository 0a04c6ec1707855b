//! Paths, commands and the Python oracles.

use crate::tolerance::Tolerance;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file under target/, which `./test` has put there.
pub fn prepared(path: &str) -> PathBuf {
    let p = root().join("target").join(path);
    assert!(p.exists(), "{} is missing: run ./test, which prepares it", p.display());
    p
}

/// A folder for one test's files, empty at first.
pub fn scratch(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// The `tgc` command.
pub fn tgc() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tgc"))
}

/// The `tgc-run` command of the same build.
pub fn tgc_run() -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_tgc")).with_file_name("tgc-run");
    assert!(
        bin.exists(),
        "{} is missing: cargo build -p tgc-run (cargo test --workspace does)",
        bin.display()
    );
    Command::new(bin)
}

/// The `tgc-run` of another machine, in an emulator, and the targets of its artifacts: `TGC_RUN` is its command (words
/// separated by spaces), `TGC_RUN_TARGET` the target (aarch64 unless told).
pub fn other_run() -> Option<(Command, [String; 2])> {
    let command = std::env::var("TGC_RUN").ok()?;
    let mut words = command.split_whitespace();
    let mut c = Command::new(words.next()?);
    c.args(words);
    let target = std::env::var("TGC_RUN_TARGET").unwrap_or_else(|_| "aarch64".to_string());
    Some((c, ["x86-64-v3".to_string(), target]))
}

/// A Python tool of the project in the prepared environment.
pub fn python(tool: &str) -> Command {
    let mut c = Command::new(prepared("venv/bin/python"));
    c.arg(root().join("tools").join(tool));
    c
}

/// Runs a command that must succeed; gives its stdout.
pub fn ok(c: &mut Command) -> String {
    let out = c.output().unwrap_or_else(|e| panic!("{c:?}: {e}"));
    assert!(out.status.success(), "{c:?} failed ({}):\n{}", out.status, text(&out));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Runs a command that must fail with `code` and say each of `words`; gives its stderr.
pub fn fails(c: &mut Command, code: i32, words: &[&str]) -> String {
    let out = c.output().unwrap_or_else(|e| panic!("{c:?}: {e}"));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(code), "{c:?}:\n{}", text(&out));
    for w in words {
        assert!(said.contains(w), "{c:?} does not say `{w}`:\n{said}");
    }
    assert!(!said.contains("panicked"), "{c:?} panicked:\n{said}");
    said
}

fn text(out: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

/// The artifact of a model, built once for all tests.
pub fn artifact(model: &str) -> PathBuf {
    static BUILT: OnceLock<std::sync::Mutex<std::collections::BTreeMap<String, PathBuf>>> = OnceLock::new();
    let mut built = BUILT.get_or_init(Default::default).lock().unwrap_or_else(|e| e.into_inner());
    if let Some(p) = built.get(model) {
        return p.clone();
    }
    let stem = Path::new(model).parent().unwrap().join(Path::new(model).file_stem().unwrap());
    let path = scratch(&format!("artifact-{}", stem.to_string_lossy().replace('/', "-"))).join("m.tgc");
    let mut build = tgc();
    build.arg("build").arg(prepared(model)).arg("-o").arg(&path);
    for t in other_run().into_iter().flat_map(|o| o.1) {
        build.args(["--target", &t]);
    }
    ok(&mut build);
    built.insert(model.to_string(), path.clone());
    path
}

/// Path of magika's model under target/.
pub const MAGIKA: &str = "models/magika-1.0.3/magika/models/standard_v3_3/model.onnx";

/// Compares two .npz files under a model's tolerance.
pub fn compare(got: &Path, want: &Path, tolerance: Tolerance) {
    let mut c = python("npz_compare.py");
    c.arg(got).arg(want);
    for (output, rtol, atol) in tolerance {
        c.arg("--tolerance").arg(format!("{output}={rtol}:{atol}"));
    }
    ok(&mut c);
}

/// Runs the artifact of a model and compares. What another machine's code gives is the same to the bit.
fn run_and_compare(model: &str, input: &Path, got: &Path, want: &Path, tolerance: Tolerance) {
    let run = |mut c: Command, out: &Path| {
        ok(c.arg("run").arg(artifact(model)).arg("--inputs").arg(input).arg("-o").arg(out))
    };
    run(tgc_run(), got);
    compare(got, want, tolerance);
    if let Some((other, _)) = other_run() {
        let there = got.with_file_name("there.npz");
        run(other, &there);
        compare(&there, want, tolerance);
        ok(python("npz_compare.py").arg(&there).arg(got).arg("--bits"));
    }
}

/// Runs the artifact on the inputs of a golden data set under tests/data/golden and compares.
pub fn same_as_golden(model: &str, golden: &str, tolerance: Tolerance) {
    let dir = scratch(&format!("golden-{}", golden.replace('/', "-")));
    let (input, want, got) = (dir.join("in.npz"), dir.join("want.npz"), dir.join("got.npz"));
    let data = root().join("tests/data/golden").join(golden).join("test_data_set_0");
    ok(python("pb2npz.py").arg(prepared(model)).arg(data).arg(&input).arg(&want));
    run_and_compare(model, &input, &got, &want, tolerance);
}

/// Runs the artifact on random inputs and compares with ONNX Runtime on the same. `dims` are ONNX's own dim names, `ranges`
/// those of `ort_run.py`.
pub fn same_as_onnx_runtime(model: &str, dims: &[(&str, usize)], ranges: &[&str], tolerance: Tolerance) {
    let label: Vec<String> = dims.iter().map(|d| d.1.to_string()).collect();
    let dir = scratch(&format!("ort-{}-{}", model.replace(['/', '.'], "-"), label.join("-")));
    let (input, want, got) = (dir.join("in.npz"), dir.join("want.npz"), dir.join("got.npz"));
    let mut ort = python("ort_run.py");
    ort.arg(prepared(model)).args(["--random", "7"]);
    ort.args(ranges.iter().flat_map(|r| ["--range", r]));
    for (name, n) in dims {
        ort.arg("--dim").arg(format!("{name}={n}"));
    }
    ok(ort.arg("--save-inputs").arg(&input).arg("-o").arg(&want));
    run_and_compare(model, &input, &got, &want, tolerance);
}
