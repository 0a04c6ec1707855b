//! The Python process: jobs are exported here, checked and run there, and judged here.

use crate::made::{Job, Want};
use crate::outcome::Outcome;
use std::io::{BufRead, BufReader, Lines, Write};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use tgc::codegen::onnx::{self, ExportOptions};
use tgc::ir::graph::Value;
use tgc::ir::tensor::{Data, Tensor};
use tgc::ir::types::DType;

const NUMPY: &[(DType, &str)] = &[
    (DType::F64, "float64"),
    (DType::F32, "float32"),
    (DType::F16, "float16"),
    (DType::BF16, "bfloat16"),
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

/// A job's file is written and waits for the process.
struct Asked {
    job: Job,
    opset: i64,
    line: Result<(String, Want), (&'static str, String)>,
    stem: String,
}

/// The Python process, which is started anew where a file ends it.
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start() -> Result<Process, String> {
        let mut child = Command::new(crate::prepared("venv/bin/python"))
            .arg(crate::root().join("tests/export/worker.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let stdin = child.stdin.take().ok_or("no stdin")?;
        let stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        Ok(Process { child, stdin, stdout })
    }

    /// What it says of a job; none if it has ended.
    fn ask(&mut self, line: &str) -> Option<String> {
        writeln!(self.stdin, "{line}").ok()?;
        self.stdout.next().and_then(Result::ok)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // it has nothing more to do, or has ended
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exports all jobs on one thread while the process works on what is there.
pub fn run_all(jobs: Vec<Job>) -> Result<Vec<Outcome>, String> {
    let scratch =
        crate::root().join("target/tmp").join(format!("export-{}-{}", std::process::id(), jobs.len()));
    std::fs::create_dir_all(&scratch).map_err(|e| e.to_string())?;
    let mut process = Process::start()?;
    let (send, asked) = std::sync::mpsc::sync_channel::<Asked>(8);
    let found = std::thread::scope(|s| {
        let folder = &scratch;
        s.spawn(move || {
            let all =
                jobs.into_iter().flat_map(|j| j.opsets.clone().into_iter().map(move |o| (j.clone(), o)));
            for (n, (job, opset)) in all.enumerate() {
                let stem = folder.join(n.to_string()).display().to_string();
                let line = written(&job, opset, &stem);
                if send.send(Asked { job, opset, line, stem }).is_err() {
                    return;
                }
            }
        });
        let mut found = Vec::new();
        for a in asked {
            let (status, why) = match &a.line {
                Err((status, why)) => (*status, why.clone()),
                Ok((line, want)) => match process.ask(line) {
                    Some(said) => judged(&a.stem, want, &said),
                    None => {
                        process = Process::start()?;
                        ("crash", "the Python process ended".to_string())
                    }
                },
            };
            for f in std::fs::read_dir(&scratch).into_iter().flatten().flatten() {
                let name = f.file_name().to_string_lossy().into_owned();
                if Path::new(&a.stem).file_name().is_some_and(|s| name.split('.').next() == s.to_str()) {
                    let _ = std::fs::remove_file(f.path());
                }
            }
            let Job { group, kind, name, core, .. } = a.job;
            found.push(Outcome { group, kind, name, opset: a.opset, status, why, core: core == a.opset });
        }
        Ok(found)
    });
    let _ = std::fs::remove_dir_all(&scratch);
    found
}

/// Imports, exports and writes a job; the line for the process, or why there is none.
fn written(job: &Job, opset: i64, stem: &str) -> Result<(String, Want), (&'static str, String)> {
    let text = |d: Vec<tgc::ir::diag::Diag>| d.iter().map(|d| d.render(None)).collect::<Vec<_>>().join("\n");
    let ready = (job.load)().map_err(|e| ("unread", e))?;
    let options = ExportOptions { opset, entry: Some(ready.entry.clone()), ..ExportOptions::default() };
    let exported = std::panic::catch_unwind(AssertUnwindSafe(|| onnx::export(&ready.module, &options)))
        .map_err(|_| ("panic", "the exporter panicked".to_string()))?
        .map_err(|d| ("refused", text(d)))?;
    let bytes = exported.to_bytes().map_err(|d| ("refused", d.render(None)))?;
    let (model, large) = (format!("{stem}.onnx"), bytes.len() > 1 << 27);
    let io = |e: std::io::Error| ("io", e.to_string());
    std::fs::write(&model, bytes).map_err(io)?;
    let mut inputs = Vec::new();
    for (k, (name, t)) in ready.inputs.iter().enumerate() {
        let Some((_, dtype)) = NUMPY.iter().find(|n| n.0 == t.dtype) else {
            return Err(("type", format!("numpy has no {}", t.dtype)));
        };
        let path = format!("{stem}.in{k}");
        std::fs::write(&path, t.data.bytes()).map_err(io)?;
        inputs.push(serde_json::json!({ "name": name, "dtype": dtype, "shape": t.shape, "path": path }));
    }
    let types = |g: &tgc::ir::graph::Graph, v| g.ty(v).is_some_and(|t| t.dtype == DType::BF16);
    let body = &ready.module.entries[&ready.entry].body;
    let bf16 = body.inputs().iter().any(|&node| types(body, Value { node, result: 0 }))
        || body.outputs().iter().any(|o| types(body, o.value));
    let line = serde_json::json!({
        "model": model, "large": large, "bf16": bf16, "plain": job.group == "graphs", "inputs": inputs, "outputs": ready.outputs, "stem": stem,
    });
    Ok((line.to_string(), ready.want))
}

/// The outputs that the process found against those that are right.
fn judged(stem: &str, want: &Want, said: &str) -> (&'static str, String) {
    let Ok(said) = serde_json::from_str::<serde_json::Value>(said) else {
        return ("answer", said.to_string());
    };
    let status = said["status"].as_str().unwrap_or_default();
    if status != "ran" {
        let known = ["checker", "kernel", "load", "run", "inputs"];
        let status = known.into_iter().find(|k| *k == status).unwrap_or("answer");
        return (status, said["why"].as_str().unwrap_or_default().to_string());
    }
    let mut got = Vec::new();
    for k in 0..said["shapes"].as_array().map_or(0, Vec::len) {
        let shape: Vec<usize> = said["shapes"][k]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|d| d.as_u64())
            .map(|d| d as usize)
            .collect();
        let dtype = NUMPY.iter().find(|n| Some(n.1) == said["dtypes"][k].as_str()).map(|n| n.0);
        let bytes = std::fs::read(format!("{stem}.out{k}")).unwrap_or_default();
        let t = dtype.and_then(|d| Tensor::from_bytes(d, &shape, Data::new(bytes)));
        let Some(t) = t else { return ("type", format!("output {k} is {}", said["dtypes"][k])) };
        got.push(t);
    }
    match want.judge(&got) {
        Ok(()) => ("pass", String::new()),
        Err(e) => ("differs", e),
    }
}
