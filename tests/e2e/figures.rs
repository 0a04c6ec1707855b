//! What the commands say about artifacts: memory, work, times. Values that hold on any machine, not speeds.

use crate::models::{BRAINMAZE, CLS, DEEPCUT, MINILM, SWIFT_F0};
use crate::support::{MAGIKA, artifact, fails, ok, scratch, tgc, tgc_run};
use serde_json::Value;

const ROMANIZER: &str = "models/arabic-name-romanizer-0.2.0/arabic_name_romanizer/resources/decoder.onnx";

fn json(c: &mut std::process::Command) -> Value {
    serde_json::from_str(&ok(c)).unwrap()
}

fn inspect(model: &str, dims: &[&str]) -> Value {
    let mut c = tgc();
    c.arg("inspect").arg(artifact(model)).arg("--json");
    for d in dims {
        c.args(["--dim", d]);
    }
    json(&mut c)
}

fn number(v: &Value, name: &str) -> u64 {
    v[name].as_u64().unwrap_or_else(|| panic!("{name} in {v}"))
}

/// The arena is at most 1.15 times the greatest sum of live bytes, at small and at large sizes.
#[test]
fn temporaries_are_placed_tightly() {
    let models: [(&str, &[&[&str]]); 8] = [
        (MAGIKA, &[&["bytes_0=1"], &["bytes_0=5"], &["bytes_0=64"]]),
        ("models/made/mlp.onnx", &[&["batch=1"], &["batch=333"]]),
        (DEEPCUT, &[&["input_1_0=1", "input_2_0=1"], &["input_1_0=100", "input_2_0=100"]]),
        (MINILM, &[&["batch=1", "sequence=7"], &["batch=5", "sequence=128"]]),
        (SWIFT_F0, &[&["samples=400"], &["samples=16000"]]),
        (CLS, &[&["x_0=1", "x_2=48", "x_3=192"], &["x_0=6", "x_2=35", "x_3=40"]]),
        (BRAINMAZE, &[&["batch_size=1"], &["batch_size=3"]]),
        (ROMANIZER, &[&["batch=1", "tgt_len=3", "src_len=20"], &["batch=16", "tgt_len=20", "src_len=33"]]),
    ];
    let mut some = 0;
    for (model, sizes) in models {
        for dims in sizes {
            let found = inspect(model, dims);
            let program = &found["entries"][0]["variants"][0]["program"];
            let (arena, live) = (number(program, "arena_bytes"), number(program, "peak_live_bytes"));
            assert!(live <= arena && arena * 100 <= live * 115, "{model} {dims:?}: {arena} bytes for {live}");
            some += live;
        }
    }
    assert!(some > 0);
}

#[test]
fn magika_is_all_generated_code_and_its_work_is_known() {
    let found = inspect(MAGIKA, &["bytes_0=2"]);
    let program = &found["entries"][0]["variants"][0]["program"];
    assert_eq!((number(program, "copies"), number(program, "others")), (0, 0), "{program}");
    assert_eq!(program["generated_percent"].as_f64(), Some(100.0));
    let steps = program["steps"].as_array().unwrap();
    assert_eq!(steps.len() as u64, number(program, "launches"));
    assert!(steps.iter().all(|s| s["label"].as_str().is_some_and(|l| l.contains("node `"))), "{program}");
    let sum: u64 = steps.iter().map(|s| number(s, "flops")).sum();
    assert_eq!(sum, number(program, "flops"));
    // What the profile counts in one run is what the artifact says.
    let mut c = tgc_run();
    c.arg("profile").arg(artifact(MAGIKA)).args([
        "--runs",
        "2",
        "--min-time",
        "0",
        "--dim",
        "bytes_0=2",
        "--json",
    ]);
    let profile = json(&mut c);
    let rows = profile["rows"].as_array().unwrap();
    assert_eq!(rows.len(), steps.len());
    for (row, step) in rows.iter().zip(steps) {
        assert_eq!(row["kernel"], step["kernel"]);
        assert_eq!(row["flops_per_call"].as_f64(), step["flops"].as_f64(), "{row} {step}");
        assert_eq!(row["calls"], 2);
    }
    let text = ok(tgc().arg("inspect").arg(artifact(MAGIKA)));
    for part in
        ["entry main", "dim     bytes_0: ", "arena   ", "100.0 % in generated code", "image         native"]
    {
        assert!(text.contains(part), "{text} lacks {part}");
    }
}

#[test]
fn wrong_dims_and_files_are_told() {
    let dim = |d: &str| {
        let mut c = tgc();
        c.arg("inspect").arg(artifact("models/made/mlp.onnx")).args(["--dim", d]);
        c
    };
    fails(&mut dim("n=3"), 1, &["E-CLI-001", "its dims: batch"]);
    fails(&mut dim("batch"), 2, &["NAME=SIZE"]);
    let dir = scratch("inspect-wrong");
    std::fs::write(dir.join("x.tgc"), vec![7; 100]).unwrap();
    fails(tgc().arg("inspect").arg(dir.join("x.tgc")), 1, &["not a tgc artifact"]);
}
