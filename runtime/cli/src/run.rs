//! `tgc-run run`: inputs from files, one run, outputs to files. What must not be here: file formats.

use std::fmt::Write;
use std::sync::Arc;

use tgc_runtime::{DType, Model, Session, SessionOptions, Tensor};

use crate::args::{Call, Output, Run};
use crate::fault::{Result, note, of_runtime};
use crate::{inputs, npz};

/// Runs the model; returns what goes to stdout.
pub(crate) fn run(args: &Run) -> Result<String> {
    let model = Model::open(&args.call.model).map_err(of_runtime)?;
    let mut session = session(&model, &args.call)?;
    match &args.output {
        Some(Output::Npz(path)) => inputs::keep(&args.call, path)?,
        Some(Output::Folder(path)) => {
            for o in &session.entry().outputs {
                inputs::keep(&args.call, &path.join(npz::file_name(&o.name)))?;
            }
        }
        None => {}
    }
    let inputs = inputs::read(&args.call, session.entry())?;
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

/// A session for the entry asked for.
pub(crate) fn session(model: &Arc<Model>, call: &Call) -> Result<Session> {
    let entries = &model.manifest().entries;
    let only = || entries.first().filter(|_| entries.len() == 1).map_or("forward", |e| e.name.as_str());
    let name = call.entry.as_deref().unwrap_or_else(only);
    let options =
        SessionOptions { threads: call.threads.map(usize::from), pool: None, mem_limit: call.mem_limit };
    Session::new(model, name, &options).map_err(of_runtime)
}

/// .npy has no bf16: it is written as f32, which loses nothing.
fn widen((name, t): (String, Tensor)) -> Result<(String, Tensor)> {
    if t.dtype() != DType::BF16 {
        return Ok((name, t));
    }
    note(&format!("output `{name}` is bf16, which .npy files do not have: it is written as f32"));
    let bytes: Vec<u8> = t.to_f64().iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    Ok((name, Tensor::new(DType::F32, t.shape(), &bytes).map_err(of_runtime)?))
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
