//! A written ONNX file in ONNX Runtime, if there is a Python that has it: the checker's opinion, and results on random inputs
//! against the interpreter's. What must not be here: how the file is made.

use crate::agree::{Rng, TRIES};
use crate::agree::{draw_all, has_integers, tuples};
use crate::diff::compare as compare_tensors;
use crate::export::TOLERANCE;
use std::fs;
use std::path::Path;
use std::process::Command;
use tgc_ir::graph::Graph;
use tgc_ir::interp;
use tgc_ir::module::Module;
use tgc_ir::ops::Op;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::DType;

/// Runs a model on inputs in files and writes the outputs to files.
const SCRIPT: &str = include_str!("onnxruntime.py");

/// One run: its sizes in words, its inputs, and what is right.
struct Run {
    label: String,
    inputs: Vec<Tensor>,
    want: Vec<Tensor>,
}

/// Compares the file with the module, which has one entry. What was compared, or why nothing was; or what differs.
pub(crate) fn compare(module: &Module, file: &Path) -> Result<String, Vec<String>> {
    let Some((entry, g)) = module.entries.first().map(|(n, e)| (n, &e.body)) else {
        return Ok("not compared with ONNX Runtime: no entry".to_string());
    };
    let runs = planned(module, entry, g);
    let skipped = |why: String| Ok(format!("not compared with ONNX Runtime: {why}"));
    if runs.is_empty() {
        return skipped("the model refuses all random inputs".to_string());
    }
    let folder = file.with_extension("runs");
    let answer = match asked(g, &runs, file, &folder) {
        Ok(a) => a,
        Err(why) => return skipped(why),
    };
    if let Some(why) = answer["missing"].as_str() {
        return skipped(why.to_string());
    }
    if let Some(fault) = answer["fault"].as_str() {
        return Err(vec![fault.to_string()]);
    }
    let mut faults = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let said = &answer["runs"][i];
        if let Some(e) = said["error"].as_str() {
            faults.push(format!("{}: {e}", run.label));
            continue;
        }
        for (k, (want, o)) in run.want.iter().zip(g.outputs()).enumerate() {
            let path = folder.join(format!("{i}.out{k}"));
            let shape: Option<Vec<usize>> = said["shapes"][k]
                .as_array()
                .map(|v| v.iter().filter_map(|d| d.as_u64().map(|d| d as usize)).collect());
            let dtype = said["dtypes"][k].as_str().and_then(dtype_of);
            let got = shape
                .zip(dtype)
                .and_then(|(s, d)| Tensor::from_bytes(d, &s, Data::new(fs::read(path).ok()?)));
            match got {
                None => faults.push(format!("{}: output `{}` cannot be read", run.label, o.name)),
                Some(got) => {
                    let d = compare_tensors(&run.label, &o.name, &got, want, TOLERANCE);
                    faults.extend(d.worst.map(|w| {
                        format!("{}: output `{}`: {w} (A: ONNX Runtime, B: the model)", run.label, o.name)
                    }));
                }
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let labels: Vec<&str> = runs.iter().map(|r| r.label.as_str()).collect();
    Ok(format!(
        "verified: ONNX Runtime {} agrees: {}",
        answer["version"].as_str().unwrap_or("?"),
        labels.join("; ")
    ))
}

/// Random inputs at a few sizes that the interpreter takes, with its results.
fn planned(module: &Module, entry: &str, g: &Graph) -> Vec<Run> {
    let mut out = Vec::new();
    for sizes in tuples(g, 0).into_iter().take(TRIES) {
        for small in [false, true] {
            if small && !has_integers(g) {
                continue;
            }
            let Some(inputs) = draw_all(g, &sizes, small, &mut Rng(0)) else { continue };
            let Ok(want) = interp::run(module, entry, &inputs) else { continue };
            let dims: Vec<String> = sizes.iter().map(|(n, v)| format!("{n} = {v}")).collect();
            let mut label =
                if dims.is_empty() { entry.to_string() } else { format!("{entry} at {}", dims.join(", ")) };
            if small {
                label += ", integers 0 and 1";
            }
            out.push(Run { label, inputs, want });
        }
    }
    out
}

/// What the script says of the runs.
fn asked(g: &Graph, runs: &[Run], file: &Path, folder: &Path) -> Result<serde_json::Value, String> {
    let io = |e: std::io::Error| format!("files for it cannot be written: {e}");
    fs::create_dir_all(folder).map_err(io)?;
    let names: Vec<&str> = g
        .inputs()
        .iter()
        .filter_map(|id| if let Some(Op::Input(i)) = g.op_of(*id) { Some(i.name.as_str()) } else { None })
        .collect();
    let mut list = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let mut inputs = Vec::new();
        for (k, (t, name)) in run.inputs.iter().zip(&names).enumerate() {
            let Some(dtype) = numpy(t.dtype) else { return Err(format!("numpy has no {}", t.dtype)) };
            let path = folder.join(format!("{i}.in{k}"));
            fs::write(&path, t.data.bytes()).map_err(io)?;
            inputs.push(serde_json::json!({ "name": name, "dtype": dtype, "shape": t.shape, "path": path }));
        }
        list.push(serde_json::json!(inputs));
    }
    let outputs: Vec<String> = g.outputs().iter().map(|o| o.name.to_string()).collect();
    let plan = serde_json::json!({ "model": file, "runs": list, "outputs": outputs, "folder": folder });
    let path = folder.join("plan.json");
    fs::write(&path, plan.to_string()).map_err(io)?;
    let python = std::env::var("TGC_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let done = Command::new(&python).args(["-c", SCRIPT]).arg(&path).output();
    let done = done.map_err(|e| format!("`{python}` cannot be run: {e}"))?;
    let said = String::from_utf8_lossy(&done.stdout);
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|_| {
        let why = String::from_utf8_lossy(&done.stderr);
        format!("`{python}` ended with {}: {}", done.status, why.lines().last().unwrap_or_default())
    })
}

const NUMPY: &[(DType, &str)] = &[
    (DType::F64, "float64"),
    (DType::F32, "float32"),
    (DType::F16, "float16"),
    (DType::I64, "int64"),
    (DType::I32, "int32"),
    (DType::I16, "int16"),
    (DType::I8, "int8"),
    (DType::U64, "uint64"),
    (DType::U32, "uint32"),
    (DType::U16, "uint16"),
    (DType::U8, "uint8"),
    (DType::Bool, "bool"),
];

fn numpy(d: DType) -> Option<&'static str> {
    NUMPY.iter().find(|n| n.0 == d).map(|n| n.1)
}

fn dtype_of(name: &str) -> Option<DType> {
    NUMPY.iter().find(|n| n.1 == name).map(|n| n.0)
}
