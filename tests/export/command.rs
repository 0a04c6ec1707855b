//! `tgc export` as a command: what it writes, what it refuses, and that it leaves nothing half done.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn tgc(args: &[&str]) -> Output {
    let python = crate::prepared("venv/bin/python");
    Command::new(env!("CARGO_BIN_EXE_tgc")).args(args).env("TGC_PYTHON", python).output().unwrap()
}

fn said(o: &Output) -> String {
    String::from_utf8_lossy(&o.stderr).into_owned()
}

/// Names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap().flatten();
    let mut v: Vec<String> = all.map(|f| f.file_name().to_string_lossy().into_owned()).collect();
    v.sort();
    v
}

fn folder(name: &str) -> PathBuf {
    let folder = crate::root().join("target/tmp").join(format!("export-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn ensure(yes: bool, o: &Output) -> Result<(), String> {
    if yes { Ok(()) } else { Err(format!("exit {:?}\n{}", o.status.code(), said(o))) }
}

/// The command, in a folder of its own.
pub fn run() -> Result<(), String> {
    let dir = folder("command");
    let path = |name: &str| dir.join(name).display().to_string();
    let mlp = crate::prepared("models/made/mlp.onnx").display().to_string();

    let o = tgc(&[
        "export",
        &mlp,
        "-o",
        &path("m.onnx"),
        "--external-data",
        "always",
        "--dynamic-axes",
        "x:0=rows",
        "--verify",
    ]);
    ensure(o.status.success() && said(&o).contains("verified: ONNX Runtime"), &o)?;
    ensure(names(&dir) == ["m.onnx", "m.onnx.data"], &o)?;
    let file = std::fs::read(dir.join("m.onnx")).unwrap();
    let has = |word: &str| file.windows(word.len()).any(|w| w == word.as_bytes());
    ensure(file.len() < 4096 && has("rows") && !has("batch") && !has("target"), &o)?;

    // a text with its opset, as a graph that tgc itself wrote
    let text =
        "graph @main(%x: f32[n, 4]) -> (f32[n, 4] \"y\") {\n  %y = gelu %x : f32[n, 4]\n  return %y\n}\n";
    std::fs::write(dir.join("g.tgir"), text).unwrap();
    let o = tgc(&["export", &path("g.tgir"), "--opset", "17", "-o", &path("g.onnx"), "--verify"]);
    ensure(o.status.success() && said(&o).contains("verified: ONNX Runtime"), &o)?;
    std::fs::remove_file(dir.join("g.onnx")).unwrap();

    let o = tgc(&["export", &mlp, "-o", &path("n.onnx"), "--opset", "12"]);
    ensure(o.status.code() == Some(2) && said(&o).contains("13..=28"), &o)?;
    let o = tgc(&["export", &mlp, "-o", &path("n.onnx"), "--dynamic-axes", "x:1=c"]);
    ensure(o.status.code() == Some(1) && said(&o).contains("the size is always 784"), &o)?;
    let o = tgc(&["export", &mlp, "-o", &path("n.onnx"), "--dynamic-axes", "x=c"]);
    ensure(o.status.code() == Some(2) && said(&o).contains("INPUT:AXIS=NAME"), &o)?;
    let o = tgc(&["export", &mlp, "-o", &path("absent/n.onnx")]);
    ensure(o.status.code() == Some(1) && said(&o).contains("cannot be written"), &o)?;
    let o = tgc(&["export", &mlp, "-o", &dir.display().to_string()]);
    ensure(o.status.code() == Some(1) && said(&o).contains("names no file"), &o)?;
    ensure(names(&dir) == ["g.tgir", "m.onnx", "m.onnx.data"], &o)?;
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}
