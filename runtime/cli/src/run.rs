//! `tgc-run run`: inputs from files, one run, outputs to files. What must not be here: file formats.

use std::fmt::Write;

use half::bf16;
use tgc_runtime::{DType, Entry, Model, Session, SessionOptions, Tensor};

use crate::args::{Output, Run};
use crate::fault::{Result, of_runtime};
use crate::npz;

/// Runs the model; returns what goes to stdout.
pub(crate) fn run(args: &Run) -> Result<String> {
    let model = Model::open(&args.model).map_err(of_runtime)?;
    let entries = &model.manifest().entries;
    let only = || entries.first().filter(|_| entries.len() == 1).map_or("forward", |e| e.name.as_str());
    let name = args.entry.as_deref().unwrap_or_else(only);
    let options =
        SessionOptions { threads: args.threads.map(usize::from), pool: None, mem_limit: args.mem_limit };
    let mut session = Session::new(&model, name, &options).map_err(of_runtime)?;
    let inputs = inputs(args, session.entry())?;
    let given: Vec<(&str, &Tensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t)).collect();
    let outputs = session.run_owned(&given).map_err(of_runtime)?;
    let outputs = outputs.into_iter().map(widen).collect::<Result<Vec<_>>>()?;
    let mut text = String::new();
    let target = match &args.output {
        None => None,
        Some(Output::Npz(path)) => {
            npz::write_npz(path, &outputs)?;
            Some(vec![path.display().to_string(); outputs.len()])
        }
        Some(Output::Folder(path)) => {
            let files = npz::write_folder(path, &outputs)?;
            Some(files.iter().map(|f| path.join(f).display().to_string()).collect())
        }
    };
    for (i, (name, t)) in outputs.iter().enumerate() {
        let what = match &target {
            Some(files) => format!("-> {}", files[i]),
            None => preview(t),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name} {}{:?} {what}", t.dtype(), t.shape());
    }
    Ok(text)
}

/// Reads all input files; faults of several files are told together.
fn inputs(args: &Run, entry: &Entry) -> Result<Vec<(String, Tensor)>> {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    if let Some(path) = &args.inputs {
        match npz::read_npz(path) {
            Ok(tensors) => found.extend(tensors),
            Err(f) => faults.extend(f),
        }
    }
    for (name, path) in &args.input {
        match npz::read_npy(path) {
            Ok(t) => found.push((name.clone(), t)),
            Err(f) => faults.extend(f),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    found.into_iter().map(|(name, t)| Ok((name.clone(), fit(entry, &name, t)?))).collect()
}

/// .npy has no bf16: f32 values are rounded where the model takes it.
fn fit(entry: &Entry, name: &str, t: Tensor) -> Result<Tensor> {
    let wanted = entry.inputs.iter().find(|p| p.name == name).map(|p| p.dtype);
    if wanted != Some(DType::BF16) || t.dtype() != DType::F32 {
        return Ok(t);
    }
    eprint_note(&format!("input `{name}` is rounded from f32 to bf16"));
    let narrow = |v: &f64| bf16::from_f64(*v).to_le_bytes();
    let bytes: Vec<u8> = t.to_f64().iter().flat_map(narrow).collect();
    Tensor::new(DType::BF16, t.shape(), &bytes).map_err(of_runtime)
}

/// The same the other way, which loses nothing.
fn widen((name, t): (String, Tensor)) -> Result<(String, Tensor)> {
    if t.dtype() != DType::BF16 {
        return Ok((name, t));
    }
    eprint_note(&format!("output `{name}` is bf16, which .npy files do not have: it is written as f32"));
    let bytes: Vec<u8> = t.to_f64().iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    Ok((name, Tensor::new(DType::F32, t.shape(), &bytes).map_err(of_runtime)?))
}

fn eprint_note(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("note: {text}\n").as_bytes());
}

/// The first few elements.
fn preview(t: &Tensor) -> String {
    const SHOWN: usize = 8;
    let size = t.dtype().size();
    let n = t.bytes().len() / size;
    let shown = Tensor::new(t.dtype(), &[n.min(SHOWN)], &t.bytes()[..n.min(SHOWN) * size]);
    let values = shown.map(|s| s.to_f64()).unwrap_or_default();
    let text: Vec<String> = values
        .iter()
        .map(|v| if t.dtype() == DType::F32 { (*v as f32).to_string() } else { v.to_string() })
        .collect();
    format!("= {}{}", text.join(" "), if n > SHOWN { " ..." } else { "" })
}
