//! `tgc-run` as a program: results, diagnostics and exit codes, on artifacts with hand-assembled kernels.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

#[allow(dead_code)]
#[path = "../../tests/runtime/machine.rs"]
mod machine;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use machine::*;
use tgc_runtime::{DType, Expr, Guard, Manifest, Pred, WeightDecl};
use zip::write::SimpleFileOptions;

/// A folder of its own with the artifact `m.tgc`.
fn folder(name: &str, m: &Manifest) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("m.tgc"), build(m)).unwrap();
    dir
}

/// `TGC_EMULATOR` is the command (words separated by spaces) that runs programs of this architecture, if the machine itself
/// does not.
fn tgc_run(dir: &Path, args: &[&str]) -> Output {
    let emulator = std::env::var("TGC_EMULATOR").unwrap_or_default();
    let mut words = emulator.split_whitespace().chain([env!("CARGO_BIN_EXE_tgc-run")]);
    Command::new(words.next().unwrap()).args(words).args(args).current_dir(dir).output().unwrap()
}

fn prints(dir: &Path, args: &[&str]) -> String {
    let out = tgc_run(dir, args);
    assert_eq!(out.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// Runs what must fail with this code and say this.
fn fails(dir: &Path, args: &[&str], code: i32, texts: &[&str]) {
    let out = tgc_run(dir, args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(code), "{args:?}: {said}");
    for text in texts {
        assert!(said.contains(text), "{args:?} says {said}, without {text}");
    }
    assert!(!said.contains("panicked"), "{said}");
}

fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((dict.len() as u16).to_le_bytes());
    out.extend(dict.as_bytes());
    out.extend(data);
    out
}

fn npz(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (i, (name, bytes)) in entries.iter().enumerate() {
        let methods = [zip::CompressionMethod::Deflated, zip::CompressionMethod::Stored];
        let options = SimpleFileOptions::default().compression_method(methods[i % 2]).large_file(i % 2 == 0);
        archive.start_file(*name, options).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[test]
fn inputs_go_in_and_outputs_come_out_of_files() {
    let dir = folder("files", &simple());
    fs::write(dir.join("x.npy"), npy("<i8", "(2, 2)", &bytes_of(&[1, 2, 3, 4]))).unwrap();
    assert_eq!(prints(&dir, &["run", "m.tgc", "--input", "x=x.npy"]), "y i64[2, 2] = 4 6 8 10\n");
    let text = prints(&dir, &["run", "m.tgc", "--input", "x=x.npy", "-o", "out/", "--threads", "2"]);
    assert_eq!(text, "y i64[2, 2] -> out/y.npy\n");
    prints(&dir, &["run", "m.tgc", "--input", "x=x.npy", "-o", "out"]);
    assert_eq!(prints(&dir, &["run", "m.tgc", "--input", "x=out/y.npy"]), "y i64[2, 2] = 10 14 18 22\n");
    prints(&dir, &["run", "m.tgc", "--input", "x=x.npy", "-o", "out.npz"]);
    prints(&dir, &["run", "m.tgc", "--input", "x=x.npy", "-o", "again.npz", "--threads", "1"]);
    let written = fs::read(dir.join("out.npz")).unwrap();
    assert_eq!(written, fs::read(dir.join("again.npz")).unwrap());
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(written)).unwrap();
    let mut y = Vec::new();
    std::io::copy(&mut archive.by_name("y.npy").unwrap(), &mut y).unwrap();
    assert_eq!(y, fs::read(dir.join("out/y.npy")).unwrap());
    assert_eq!(y[y.len() - 32..], bytes_of(&[4, 6, 8, 10]));
    let mut left: Vec<_> = fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["again.npz", "m.tgc", "out", "out.npz", "x.npy"]);
}

#[test]
fn archives_give_inputs_by_name_and_damage_is_survived() {
    let dir = folder("archives", &simple());
    let x = npy("<i8", "(1, 2)", &bytes_of(&[7, 8]));
    let whole = npz(&[("x.npy", x.clone())]);
    fs::write(dir.join("in.npz"), &whole).unwrap();
    assert_eq!(prints(&dir, &["run", "m.tgc", "--inputs", "in.npz"]), "y i64[1, 2] = 16 18\n");
    fs::write(dir.join("two.npz"), npz(&[("x.npy", x.clone()), ("q.npy", x.clone())])).unwrap();
    fails(
        &dir,
        &["run", "m.tgc", "--inputs", "two.npz"],
        1,
        &["E-RUN-011", "no input `q`", "inputs are `x`"],
    );
    fs::write(dir.join("text.npz"), npz(&[("x.txt", x)])).unwrap();
    fails(&dir, &["run", "m.tgc", "--inputs", "text.npz"], 1, &["E-RUN-102", "x.txt"]);
    let mut random = Random(9);
    for _ in 0..60 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(if random.below(3) == 0 {
            random.below(bytes.len() as u64) as usize
        } else {
            usize::MAX
        });
        fs::write(dir.join("bad.npz"), bytes).unwrap();
        let out = tgc_run(&dir, &["run", "m.tgc", "--inputs", "bad.npz"]);
        assert!(matches!(out.status.code(), Some(0 | 1)), "{out:?}");
        assert!(!String::from_utf8_lossy(&out.stderr).contains("panicked"), "{out:?}");
    }
}

#[test]
fn wrong_inputs_are_told_with_code_1() {
    let mut m = simple();
    m.entries[0]
        .guards
        .push(Guard { pred: Pred::Le(sym(0), Expr::Const(40)), message: "Reshape `r1`".into() });
    let dir = folder("wrong", &m);
    let file = |name: &str, bytes: Vec<u8>| fs::write(dir.join(name), bytes).unwrap();
    file("f.npy", npy("<f4", "(1, 2)", &[0; 8]));
    file("rank.npy", npy("<i8", "(2,)", &[0; 16]));
    file("axis.npy", npy("<i8", "(1, 3)", &[0; 24]));
    file("many.npy", npy("<i8", "(65, 2)", &[0; 65 * 16]));
    file("guard.npy", npy("<i8", "(41, 2)", &[0; 41 * 16]));
    file("neg.npy", npy("<i8", "(1, 2)", &bytes_of(&[1, -1])));
    file("short.npy", npy("<i8", "(1, 2)", &[0; 15]));
    file("complex.npy", npy("<c8", "(1, 2)", &[0; 16]));
    file("ok.npy", npy("<i8", "(1, 2)", &[0; 16]));
    file("other", vec![1; 100]);
    let whole = build(&m);
    file("cut.tgc", whole[..whole.len() / 2].to_vec());
    let mut bent = whole.clone();
    *bent.last_mut().unwrap() ^= 1;
    file("bent.tgc", bent);
    let mut foreign = m.clone();
    foreign.images[0].features.push("no-such-feature".into());
    file("foreign.tgc", build(&foreign));
    let x = |f: &str| format!("x={f}");
    let cases: [(&str, &str, &[&str]); 13] = [
        ("m.tgc", "f.npy", &["E-RUN-012", "input `x` is f32, allowed i64", "help: convert it to i64"]),
        ("m.tgc", "rank.npy", &["E-RUN-013", "rank 1, allowed 2", "[batch, 2]"]),
        ("m.tgc", "axis.npy", &["E-RUN-014", "input `x`: axis 1 is 3, allowed 2"]),
        ("m.tgc", "many.npy", &["E-RUN-014", "axis 0 is 65, allowed 0..=64 (dim `batch`)", "--dim"]),
        ("m.tgc", "guard.npy", &["E-RUN-015", "batch <= 40", "Reshape `r1`"]),
        ("m.tgc", "neg.npy", &["E-RUN-020", "node `n1` (AddOne) at model.rs:3"]),
        ("m.tgc", "short.npy", &["E-RUN-102", "short.npy"]),
        ("m.tgc", "complex.npy", &["E-RUN-103", "<c8"]),
        ("m.tgc", "none.npy", &["E-RUN-101", "none.npy"]),
        ("none.tgc", "ok.npy", &["E-RUN-006", "none.tgc"]),
        ("other", "ok.npy", &["E-RUN-001", "other is not a tgc artifact"]),
        ("cut.tgc", "ok.npy", &["E-RUN-003", "its header says"]),
        ("bent.tgc", "ok.npy", &["E-RUN-003", "manifest does not match its checksum"]),
    ];
    for (model, input, texts) in cases {
        fails(&dir, &["run", model, "--input", &x(input)], 1, texts);
    }
    fails(&dir, &["run", "foreign.tgc"], 1, &["E-RUN-004", &format!("{} needs no-such-feature", TARGET.0)]);
    fails(&dir, &["run", "m.tgc"], 1, &["E-RUN-011", "input `x` is missing"]);
    fails(&dir, &["run", "m.tgc", "--entry", "main"], 1, &["E-RUN-010", "forward"]);
    let twice = ["run", "m.tgc", "--input", "x=none.npy", "--input", "x=complex.npy"];
    fails(&dir, &twice, 1, &["E-RUN-101", "E-RUN-103"]);
    fails(
        &dir,
        &["run", "m.tgc", "--input", "x=ok.npy", "--mem-limit", "100"],
        1,
        &["E-RUN-018", "allowed 100"],
    );
    fails(&dir, &["run", "m.tgc", "--input", "x=ok.npy", "-o", "ok.npy/"], 1, &["E-RUN-104", "ok.npy/"]);
}

#[test]
fn wrong_usage_has_code_2() {
    let dir = folder("usage", &simple());
    let cases: [&[&str]; 10] = [
        &[],
        &["bench"],
        &["bench", "m.tgc", "--dim", "batch"],
        &["bench", "m.tgc", "--runs", "0"],
        &["bench", "m.tgc", "--min-time", "nan"],
        &["run"],
        &["run", "m.tgc", "--input", "x"],
        &["run", "m.tgc", "-o", "out.txt"],
        &["run", "m.tgc", "--threads", "0"],
        &["info", "m.tgc", "--mem-limit", "1"],
    ];
    for args in cases {
        fails(&dir, args, 2, &["Usage"].map(|s| if args.len() > 3 { "error" } else { s }));
    }
}

/// The number that follows this name in JSON text.
fn number(json: &str, name: &str) -> f64 {
    let (_, rest) =
        json.split_once(&format!("\"{name}\": ")).unwrap_or_else(|| panic!("no {name} in {json}"));
    rest.split([',', '}', ']']).next().unwrap().parse().unwrap_or_else(|e| panic!("{name} in {json}: {e}"))
}

#[test]
fn bench_measures_made_and_given_inputs() {
    let dir = folder("bench", &simple());
    let short = ["bench", "m.tgc", "--min-time", "0.02", "--runs", "3"];
    let with = |more: &[&str]| prints(&dir, &[&short[..], more].concat());
    let json = with(&["--json", "--dim", "batch=8", "--threads", "2"]);
    assert!(json.contains(r#""dims": [{"name": "batch", "size": 8, "given": true}]"#), "{json}");
    assert!(
        json.contains(r#""random_inputs": ["x"]"#) && json.contains(&format!(r#""image": "{}""#, TARGET.0)),
        "{json}"
    );
    let [min, median, p90] = ["min_us", "median_us", "p90_us"].map(|n| number(&json, n));
    assert!(0.0 < min && min <= median && median <= p90, "{json}");
    assert!(number(&json, "timings") >= 3.0, "{json}");
    // A run far below a microsecond is timed with others; a busy machine may make one look long, not five.
    let one = |_| number(&with(&["--json", "--threads", "1"]), "runs_per_timing") > 1.0;
    assert!((0..5).any(one));
    assert_eq!(number(&json, "artifact_bytes"), fs::metadata(dir.join("m.tgc")).unwrap().len() as f64);
    assert!(number(&json, "first_result_ms") >= number(&json, "load_ms"), "{json}");
    // The temporary t, and 8 bytes of scratch a worker, two cache lines apart.
    assert_eq!(number(&json, "memory_bytes"), (8.0 * 16.0) + 2.0 * 128.0, "{json}");
    assert_eq!(number(&json, "arena_bytes"), 8.0 * 16.0, "{json}");
    assert!(number(&json, "peak_rss_bytes") > 1e6, "{json}");
    let text = with(&[]);
    for part in
        ["batch=1: the smallest allowed", "integers are uniform in 0..100", "random        x (seed 1)"]
    {
        assert!(text.contains(part), "{text} lacks {part}");
    }
    fs::write(dir.join("x.npy"), npy("<i8", "(2, 2)", &bytes_of(&[1, 2, 3, 4]))).unwrap();
    let text = with(&["--input", "x=x.npy"]);
    assert!(text.contains("batch=2") && !text.contains("random") && !text.contains("smallest"), "{text}");
    fs::write(dir.join("neg.npy"), npy("<i8", "(1, 2)", &bytes_of(&[1, -1]))).unwrap();
    let wrong: [(&[&str], &[&str]); 4] = [
        (&["--dim", "n=3"], &["E-RUN-106", "no dim of that name", "its dims: batch"]),
        (&["--input", "x=x.npy", "--dim", "batch=3"], &["E-RUN-106", "another size"]),
        (&["--dim", "batch=65"], &["E-RUN-106", "the dim is from 0 to 64"]),
        (&["--input", "x=neg.npy"], &["E-RUN-020", "node `n1`"]),
    ];
    for (more, texts) in wrong {
        fails(&dir, &[&short[..], more].concat(), 1, texts);
    }
}

#[test]
fn profile_tells_steps_and_limits() {
    let dir = folder("profile", &simple());
    let short = ["profile", "m.tgc", "--min-time", "0", "--runs", "5", "--dim", "batch=64", "--threads", "2"];
    let with = |more: &[&str]| prints(&dir, &[&short[..], more].concat());
    let json = with(&["--json", "--trace", "t.json"]);
    assert!(number(&json, "gflops_per_s") > 0.0 && number(&json, "gbytes_per_s") > 0.0, "{json}");
    let (_, rows) = json.split_once("\"rows\"").unwrap();
    let [add, double]: [&str; 2] = rows.split("},").collect::<Vec<_>>().try_into().unwrap();
    assert!(add.contains(r#""kernel": "add1", "label": "node `n1`""#) && double.contains("double"), "{json}");
    // 128 elements of 8 bytes in and out.
    for row in [add, double] {
        let found = ["calls", "flops_per_call", "bytes_per_call", "workers"].map(|n| number(row, n));
        assert_eq!(found, [5.0, 128.0, 2048.0, 2.0], "{row}");
        let rate = 5.0 * 2048.0 / number(row, "total_us") / 1e3;
        assert!((number(row, "gbytes_per_s") - rate).abs() <= 0.01 * rate + 0.001, "{row}");
    }
    let shares = number(add, "share_percent") + number(double, "share_percent");
    assert!((shares - 100.0).abs() < 0.1, "{json}");
    let steps = number(add, "total_us") + number(double, "total_us");
    assert!(steps <= 5.0 * number(&json, "run_us") + 1.0, "{json}");
    let trace = fs::read_to_string(dir.join("t.json")).unwrap();
    let events: Vec<&str> = trace.split(r#"{"name""#).skip(1).collect();
    assert!(trace.starts_with(r#"{"traceEvents": [{"name": "add1", "cat": "step", "ph": "X""#), "{trace}");
    let [first, second] = events[..] else { panic!("{trace}") };
    assert!(number(first, "ts") + number(first, "dur") <= number(second, "ts") + 0.002, "{trace}");
    let text = with(&[]);
    assert!(
        text.contains("add1  (node `n1`)") && text.contains("100.0%") == text.contains("  0.0%"),
        "{text}"
    );
    assert!(with(&["--top", "1"]).contains("1 more"));
    let mut twice = simple();
    let Ok(p) = &mut twice.entries[0].variants[0].body else { unreachable!() };
    let again = p.segments[0].steps[1].clone();
    p.segments[0].steps.push(again);
    p.buffers.iter_mut().for_each(|b| b.last = 2);
    fs::write(dir.join("m.tgc"), build(&twice)).unwrap();
    assert!(with(&["--by", "kernel"]).contains("double  (2 steps)"));
    fails(&dir, &[&short[..], &["--trace", "none/t.json"]].concat(), 1, &["E-RUN-104", "none/t.json"]);
}

#[test]
fn info_says_what_there_is() {
    let mut m = simple();
    m.images.insert(0, image("x86-64-v9", &["no-such-feature"]));
    m.entries[0].guards.push(Guard { pred: Pred::Le(sym(0), Expr::Const(40)), message: "r\"1".into() });
    let dir = folder("info", &m);
    let text = prints(&dir, &["info", "m.tgc", "--check"]);
    let (arch, size) = (std::env::consts::ARCH, CODE.len());
    for line in [
        "producer      test",
        "verification  not verified",
        "entry forward",
        "input   x: i64 [batch, 2]",
        "output  y: i64 [batch, 2]",
        "dim     batch: 0..=64",
        "guard   batch <= 40: r\"1",
        "variant: 1 segments, 2 launches, 0 copies, 0 others, 3 buffers",
        &format!("x86-64-v9 ({arch}): {size} bytes of code\n    needs no-such-feature"),
        &format!("{} ({arch}): {size} bytes of code  <- runs on this machine", TARGET.0),
        "add(in a: i64, in b: i64, out y: i64; 1 dims)",
        "weights: 0, 0 bytes, all match their checksums",
    ] {
        assert!(text.contains(line), "{text} lacks {line}");
    }
    let json = prints(&dir, &["info", "m.tgc", "--json"]);
    for part in [
        r#""verification": "not verified""#,
        r#""dims": [{"name": "batch", "lo": 0, "hi": 64, "named": true}]"#,
        r#""guards": [{"pred": "batch <= 40", "message": "r\"1"}]"#,
        r#""runs_here": true"#,
    ] {
        assert!(json.contains(part), "{json} lacks {part}");
    }
}

#[test]
fn check_finds_damaged_weights() {
    let mut m = simple();
    let (name, dtype) = ("w".to_string(), DType::I64);
    m.weights.push(WeightDecl { name, dtype, dims: vec![2], offset: 0, blocks: vec![] });
    let dir = folder("check", &simple());
    let mut bytes = build_with(&m, &[vec![0x1234_5678_9abc, 2]]);
    let at = bytes.windows(6).position(|w| w == [0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12]).unwrap();
    bytes[at] ^= 1;
    fs::write(dir.join("m.tgc"), bytes).unwrap();
    prints(&dir, &["info", "m.tgc"]);
    fails(&dir, &["info", "m.tgc", "--check"], 1, &["E-RUN-003", "weight `w`, MiB 0"]);
}
