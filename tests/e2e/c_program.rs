//! Real models from C: the program of `examples/c`, built as its comment says, gives the bits that the runtime gives in Rust,
//! and the golden outputs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tgc_runtime::{DType, Model, Session, SessionOptions, Tensor};

use crate::models::{CLS, MINILM};
use crate::support::{MAGIKA, artifact, compare, fails, ok, prepared, python, root, scratch};
use crate::tolerance::{self as tol, Tolerance};

const PROGRAM: &str = "examples/c/run.c";

/// The programs that the commands in the example's comment make, here in another folder.
fn programs() -> &'static [PathBuf] {
    static MADE: OnceLock<Vec<PathBuf>> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = scratch("c");
        let text = std::fs::read_to_string(root().join(PROGRAM)).unwrap();
        let commands = text.lines().filter_map(|l| l.strip_prefix(" *   "));
        let commands: Vec<&str> =
            commands.filter(|c| c.starts_with("runtime/") || c.starts_with("cc ")).collect();
        assert_eq!(commands.len(), 3, "{commands:?}");
        let mut made = Vec::new();
        for c in commands {
            let to = dir.to_str().unwrap();
            let c = c.replace("$PWD/target/c", to).replace("target/c", to);
            ok(Command::new("sh").args(["-ec", &c]).current_dir(root()));
            let words: Vec<&str> = c.split_whitespace().collect();
            made.extend(words.iter().position(|w| *w == "-o").map(|at| PathBuf::from(words[at + 1])));
        }
        made
    })
}

/// What the program prints: for each output its shape and the elements' texts.
fn printed(text: &str) -> BTreeMap<String, (Vec<usize>, Vec<String>)> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let (name, shape) =
            line.strip_suffix(']').and_then(|l| l.split_once(" [")).unwrap_or_else(|| panic!("{line}"));
        let shape = shape.split(", ").filter(|d| !d.is_empty()).map(|d| d.parse().unwrap()).collect();
        let mut elements = Vec::new();
        while let Some(row) = lines.next_if(|l| !l.ends_with(']')) {
            elements.extend(row.split(' ').map(str::to_string));
        }
        found.insert(name.to_string(), (shape, elements));
    }
    found
}

fn bits(t: &Tensor) -> Vec<u64> {
    let size = t.dtype().size();
    let word = |b: &[u8]| b.iter().rev().fold(0u64, |v, b| v << 8 | u64::from(*b));
    t.bytes().chunks(size).map(word).collect()
}

fn bits_of(dtype: DType, text: &str) -> u64 {
    match dtype {
        DType::F32 => text.parse::<f32>().unwrap().to_bits().into(),
        DType::I64 => text.parse::<i64>().unwrap() as u64,
        other => panic!("no test has {other} outputs"),
    }
}

/// A tensor of repeatable values: floats in -1..1, integers below `bound`.
fn tensor(dtype: DType, shape: &[usize], bound: u64) -> Tensor {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    };
    let mut bytes = Vec::new();
    for _ in 0..shape.iter().product() {
        match dtype {
            DType::F32 => bytes.extend((next() as f32 / (1u64 << 30) as f32 - 1.0).to_le_bytes()),
            DType::I32 => bytes.extend(((next() % bound) as i32).to_le_bytes()),
            DType::I64 => bytes.extend(((next() % bound) as i64).to_le_bytes()),
            other => panic!("no test has {other} inputs"),
        }
    }
    Tensor::new(dtype, shape, &bytes).unwrap()
}

/// Runs the example on inputs (`None`: left out), linked both ways, and the runtime in Rust; the bits must be the same.
fn same_bits(model: &str, dims: &[&str], inputs: &[Option<Tensor>]) {
    let path = artifact(model);
    let opened = Model::open(&path).unwrap();
    let entry = &opened.manifest().entries[0];
    let mut session = Session::new(&opened, &entry.name, &SessionOptions::default()).unwrap();
    let named = entry.inputs.iter().zip(inputs).filter_map(|(p, t)| Some((p.name.as_str(), t.as_ref()?)));
    let want = session.run_owned(&named.collect::<Vec<_>>()).unwrap();

    let dir = scratch(&format!("c-{}-{}", model.replace('/', "-"), dims.join("-")));
    for program in programs() {
        let mut c = Command::new(program);
        c.arg(&path).args(dims.iter().flat_map(|d| ["--dim", d]));
        for (i, t) in inputs.iter().enumerate() {
            let Some(t) = t else {
                c.arg("-");
                continue;
            };
            let file = dir.join(format!("{i}.raw"));
            std::fs::write(&file, t.bytes()).unwrap();
            c.arg(file);
        }
        let got = printed(&ok(&mut c));
        assert_eq!(got.len(), want.len());
        for (name, t) in &want {
            let (shape, elements) = &got[name];
            assert_eq!(shape, t.shape(), "{name}");
            let elements: Vec<u64> = elements.iter().map(|e| bits_of(t.dtype(), e)).collect();
            assert!(elements == bits(t), "{model}: output `{name}` differs from Rust's");
        }
    }
}

#[test]
fn c_and_rust_give_the_same_bits() {
    for batch in [1, 3] {
        same_bits("models/made/mlp.onnx", &[], &[Some(tensor(DType::F32, &[batch, 784], 0))]);
    }
    same_bits(MAGIKA, &[], &[Some(tensor(DType::I32, &[2, 2048], 257))]);
    let ids = || Some(tensor(DType::I64, &[2, 9], 2));
    same_bits(MINILM, &["batch=2"], &[ids(), ids(), ids()]);
    let x = || Some(tensor(DType::F32, &[4, 3], 0));
    same_bits("models/made/default_input.onnx", &[], &[x(), None]);
    same_bits("models/made/default_input.onnx", &[], &[x(), Some(tensor(DType::F32, &[3], 0))]);
}

/// The example on the golden inputs of a model with one input.
fn golden(model: &str, data: &str, dims: &[&str], tolerance: Tolerance) {
    let dir = scratch(&format!("c-golden-{}", data.replace('/', "-")));
    let at = |name: &str| dir.join(name);
    let data = root().join("tests/data/golden").join(data).join("test_data_set_0");
    ok(python("pb2npz.py").arg(prepared(model)).arg(data).arg(at("in.npz")).arg(at("want.npz")));
    let numpy = |script: &str| ok(Command::new(prepared("venv/bin/python")).args(["-c", script]).arg(&dir));
    numpy(
        "import numpy as np, sys\nx, = np.load(sys.argv[1] + '/in.npz').values()\nx.tofile(sys.argv[1] + '/in.raw')\n",
    );
    for program in programs() {
        let text = ok(Command::new(program)
            .arg(artifact(model))
            .args(dims.iter().flat_map(|d| ["--dim", d]))
            .arg(at("in.raw")));
        let mut script = "import numpy as np, sys\nnp.savez(sys.argv[1] + '/got.npz', **{".to_string();
        for (name, (shape, elements)) in printed(&text) {
            script +=
                &format!("{name:?}: np.array([{}], np.float32).reshape({shape:?}),", elements.join(","));
        }
        numpy(&(script + "})\n"));
        compare(&at("got.npz"), &at("want.npz"), tolerance);
    }
}

#[test]
fn golden_outputs_from_c() {
    golden(MAGIKA, "magika-1.0.3/model_standard_v3_3", &[], tol::MAGIKA);
    let data = "rapidocr_onnxruntime-1.4.4/ch_ppocr_mobile_v2.0_cls_infer";
    golden(CLS, data, &["x_2=48", "x_3=192"], tol::RAPIDOCR_CLS);
}

#[test]
fn what_is_wrong_with_real_models_is_said_in_c() {
    let dir = scratch("c-wrong");
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let zeros = file("zeros.raw", &[0; 48]);
    let index = file("index.raw", &tensor(DType::I64, &[4], 100).bytes()[..32]);
    for program in programs() {
        let run = |model: &Path, args: &[&Path], code: i32, words: &[&str]| {
            fails(Command::new(program).arg(model).args(args), code, words);
        };
        let mlp = artifact("models/made/mlp.onnx");
        run(&dir.join("missing.tgc"), &[], 1, &["error[E-RUN-006]", "missing.tgc"]);
        run(&prepared("models/made/mlp.onnx"), &[], 1, &["error[E-RUN-001]"]);
        run(&mlp, &[&zeros], 1, &["no multiple of 3136", "--dim batch=SIZE"]);
        let dim = Path::new("--dim");
        run(&mlp, &[dim, Path::new("batch=1"), &zeros], 1, &["error[E-RUN-019]", "48 bytes, allowed 3136"]);
        run(&mlp, &[Path::new("-")], 1, &["error[E-RUN-011]", "`x` is missing"]);
        run(&mlp, &[], 1, &["0 inputs given; the model has 1: x"]);
        for given in ["batch=one", "batch", "=1", "batch=", "batch=-1"] {
            run(&mlp, &[dim, Path::new(given), &zeros], 2, &[given, "is not NAME=SIZE"]);
        }
        run(Path::new("--help"), &[], 2, &["usage"]);
        run(&artifact("models/made/gather.onnx"), &[&index], 1, &["error[E-RUN-020]", "lookup"]);
        let guards = ["n=3", "m=2"].map(Path::new);
        let args = [dim, guards[0], dim, guards[1], &zeros, &zeros];
        run(&artifact("models/made/guards.onnx"), &args, 1, &["error[E-RUN-015]", "sum"]);
    }
}
