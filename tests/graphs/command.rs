//! `tgc reduce` on files.

use std::path::Path;
use std::process::{Command, Output};

fn reduce(dir: &Path, text: &str, more: &[&str]) -> Output {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir).unwrap();
    std::fs::write(dir.join("g.tgir"), text).unwrap();
    let mut c = Command::new(env!("CARGO_BIN_EXE_tgc"));
    c.current_dir(dir).args(["reduce", "g.tgir"]).args(more);
    c.output().unwrap()
}

fn said(out: &Output) -> (String, String) {
    (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// What code generation refuses stands for a fault.
const REFUSED: &str = "graph @main(%x: f64[n, 17], %w: f64[17, 8]) -> (f64[n, 8], f64[n, 17]) {
  %0 = matmul %x, %w : f64[n, 8]
  %1 = tanh %0 : f64[n, 8]
  %2 = modulo %1, %0 : f64[n, 8]
  %3 = exp %2 : f64[n, 8]
  %4 = neg %x : f64[n, 17]
  return %3, %4
}
";

#[test]
fn a_graph_that_fails_becomes_small() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reduce");
    let out = reduce(&dir, REFUSED, &["-o", "small.tgir"]);
    let (_, err) = said(&out);
    assert!(out.status.success(), "{err}");
    assert!(err.starts_with("fault: E-CG-010\n"), "{err}");
    let small = std::fs::read_to_string(dir.join("small.tgir")).unwrap();
    let ops: Vec<&str> = small.lines().filter(|l| l.starts_with("  %")).collect();
    assert_eq!(ops.len(), 1, "{small}");
    assert!(ops[0].contains(" = modulo ") && ops[0].ends_with(": f64[1, 1]"), "{small}");
    let mut files: Vec<String> =
        std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["g.tgir", "small.tgir"]);
}

#[test]
fn a_graph_that_does_not_fail_is_an_error() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reduce-nothing");
    let fine = "graph @main(%x: f32[n]) -> f32[n] {\n  %0 = exp %x : f32[n]\n  return %0\n}\n";
    let (_, err) = said(&reduce(&dir, fine, &["-o", "small.tgir"]));
    assert!(err.contains("E-CLI-007") && !dir.join("small.tgir").exists(), "{err}");
    let out = reduce(&dir, fine, &["--check"]);
    assert!(out.status.success() && said(&out).0.starts_with("no fault"), "{}", said(&out).0);
}
