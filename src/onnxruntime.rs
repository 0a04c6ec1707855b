//! An ONNX file in ONNX Runtime, if there is a Python that has it: the checker's opinion, and results on given inputs. What
//! must not be here: how the file is made, and how results are judged.

use crate::export::Run;
use serde_json::{Value as Json, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use tgc_ir::graph::Graph;
use tgc_ir::ops::Op;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::DType;

/// Runs a model on inputs in files and writes the outputs to files.
const SCRIPT: &str = include_str!("onnxruntime.py");

/// What came of the runs.
pub(crate) enum Answer {
    /// The file is refused.
    Fault(String),
    /// The version, and for each run its results or an error in words.
    Ran(String, Vec<Result<Vec<Tensor>, String>>),
}

/// Runs the file; an error in words where that is not possible here.
pub(crate) fn run(g: &Graph, runs: &[Run], file: &Path) -> Result<Answer, String> {
    let folder = file.with_extension("runs");
    fs::create_dir_all(&folder).map_err(unwritable)?;
    let plan = plan(g, runs, file, &folder)?;
    let path = folder.join("plan.json");
    fs::write(&path, plan.to_string()).map_err(unwritable)?;
    let said = asked(&path)?;
    if let Some(why) = said["missing"].as_str() {
        return Err(why.to_string());
    }
    if let Some(fault) = said["fault"].as_str() {
        return Ok(Answer::Fault(fault.to_string()));
    }
    let found = (0..runs.len()).map(|i| {
        let one = &said["runs"][i];
        match one["error"].as_str() {
            Some(e) => Err(e.to_string()),
            None => {
                (0..g.outputs().len()).map(|k| output(one, k, &folder.join(format!("{i}.out{k}")))).collect()
            }
        }
    });
    Ok(Answer::Ran(said["version"].as_str().unwrap_or("?").to_string(), found.collect()))
}

fn unwritable(e: std::io::Error) -> String {
    format!("files for it cannot be written: {e}")
}

fn output(run: &Json, k: usize, path: &Path) -> Result<Tensor, String> {
    let dims = run["shapes"][k].as_array().map(Vec::as_slice).unwrap_or_default();
    let shape: Vec<usize> = dims.iter().filter_map(|d| usize::try_from(d.as_u64()?).ok()).collect();
    let name = run["dtypes"][k].as_str().unwrap_or_default();
    let dtype = NUMPY.iter().find(|n| n.1 == name).ok_or_else(|| format!("output {k} is of type {name}"))?.0;
    let bytes = fs::read(path).map_err(|e| format!("output {k} cannot be read: {e}"))?;
    Tensor::from_bytes(dtype, &shape, Data::new(bytes)).ok_or_else(|| format!("output {k} has another size"))
}

/// What the script is to do, with the inputs in files.
fn plan(g: &Graph, runs: &[Run], file: &Path, folder: &Path) -> Result<Json, String> {
    let name = |id: &tgc_ir::graph::NodeId| match g.op_of(*id) {
        Some(Op::Input(i)) => Some(i.name.as_str()),
        _ => None,
    };
    let names: Vec<&str> = g.inputs().iter().filter_map(name).collect();
    let mut list = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let mut inputs = Vec::new();
        for (k, (t, name)) in run.inputs.iter().zip(&names).enumerate() {
            let Some((_, dtype)) = NUMPY.iter().find(|n| n.0 == t.dtype) else {
                return Err(format!("numpy has no {}", t.dtype));
            };
            let path = folder.join(format!("{i}.in{k}"));
            fs::write(&path, t.data.bytes()).map_err(unwritable)?;
            inputs.push(json!({ "name": name, "dtype": dtype, "shape": t.shape, "path": path }));
        }
        list.push(json!(inputs));
    }
    let outputs: Vec<String> = g.outputs().iter().map(|o| o.name.to_string()).collect();
    Ok(json!({ "model": file, "runs": list, "outputs": outputs, "folder": folder }))
}

/// The last line that the script prints.
fn asked(plan: &Path) -> Result<Json, String> {
    let python = std::env::var("TGC_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let done = Command::new(&python).args(["-c", SCRIPT]).arg(plan).output();
    let done = done.map_err(|e| format!("`{python}` cannot be run: {e}"))?;
    let said = String::from_utf8_lossy(&done.stdout);
    serde_json::from_str(said.lines().last().unwrap_or_default()).map_err(|_| {
        let why = String::from_utf8_lossy(&done.stderr);
        format!("`{python}` ended with {}: {}", done.status, why.lines().last().unwrap_or_default())
    })
}

/// Element types under numpy's names.
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
