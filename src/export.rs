//! The way from a module to an ONNX file: written under another name, verified if asked for, then renamed. What must not be
//! here: what is written (`tgc_codegen::onnx`), and how ONNX Runtime is called (`onnxruntime`).

use crate::agree::{Rng, TRIES, draw_all, has_integers, tuples};
use crate::diff::{self, Tolerance};
use crate::onnxruntime::{self, Answer};
use std::fs;
use std::path::{Path, PathBuf};
use tgc_codegen::onnx::{self, ExportOptions};
use tgc_frontend::onnx::{ImportOptions, import};
use tgc_ir::diag::Diag;
use tgc_ir::graph::Graph;
use tgc_ir::interp;
use tgc_ir::module::Module;
use tgc_ir::tensor::Tensor;

/// How far results of the written file may be from the model's: what noise of roundings can be.
const TOLERANCE: Tolerance = Tolerance { absolute: None, relative: 0.0 };

/// Writes a module to `path` as ONNX; with `verify` only if the file, read back, computes the same. Gives what was written
/// and verified, a line each.
pub fn export(
    module: &Module,
    options: &ExportOptions,
    path: &Path,
    verify: bool,
) -> Result<Vec<String>, Vec<Diag>> {
    let faults = tgc_ir::verify::verify(module);
    if !faults.is_empty() {
        return Err(faults);
    }
    let exported = onnx::export(module, options)?;
    let place = Place::new(path).map_err(|d| vec![d])?;
    let files = exported.write(&place.temporary, &place.name).map_err(|d| vec![d])?;
    let mut lines = Vec::new();
    if verify {
        lines = verified(module, options, &place.temporary.join(&place.name))?;
    }
    let mut said = Vec::new();
    for f in &files {
        let (from, to) = (place.temporary.join(f), place.folder.join(f));
        fs::rename(&from, &to).map_err(|e| vec![unwritable(&to, &e)])?;
        let size = fs::metadata(&to).map_or(0, |m| m.len());
        said.push(format!("{}: {size} bytes", to.display()));
    }
    said.extend(lines);
    Ok(said)
}

/// Where a file goes, and the folder in which it is made: beside it, so that it can be renamed, and removed whatever happens.
struct Place {
    folder: PathBuf,
    name: String,
    temporary: PathBuf,
}

impl Place {
    fn new(path: &Path) -> Result<Place, Diag> {
        let name = path.file_name().and_then(|n| n.to_str()).map(str::to_string);
        let Some(name) = name.filter(|_| !path.is_dir()) else {
            let m = format!("`{}` names no file", path.display());
            return Err(Diag::error("E-EXP-006", m).help("give the file's name, such as -o model.onnx"));
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let temporary = folder.join(format!(".{name}.{}.part", std::process::id()));
        fs::create_dir(&temporary).map_err(|e| unwritable(path, &e))?;
        Ok(Place { folder: folder.to_path_buf(), name, temporary })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // it holds only what could not be finished; there is nobody to tell
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

fn unwritable(path: &Path, e: &std::io::Error) -> Diag {
    Diag::error("E-EXP-006", format!("{} cannot be written: {e}", path.display()))
}

/// One run: its sizes in words, its inputs, and what the model gives.
pub(crate) struct Run {
    pub(crate) label: String,
    pub(crate) inputs: Vec<Tensor>,
    want: Vec<Tensor>,
}

/// The model that is in the file, against the module, at a few sizes of each dynamic dim.
fn verified(module: &Module, options: &ExportOptions, file: &Path) -> Result<Vec<String>, Vec<Diag>> {
    let entry =
        options.entry.as_ref().map_or_else(|| module.entries.first(), |n| module.entries.get_key_value(n));
    let Some((entry, g)) = entry.map(|(n, e)| (n.as_str(), &e.body)) else { return Ok(Vec::new()) };
    let read = import(file, &ImportOptions::default())?.module;
    let runs = planned(module, entry, g);
    if runs.is_empty() {
        return Ok(vec!["not verified: the model refuses all random inputs".to_string()]);
    }
    let mut faults = Vec::new();
    for run in &runs {
        match interp::run(&read, "main", &run.inputs) {
            Ok(got) => faults.extend(differences(g, run, &got)),
            Err(d) => faults.push(format!("{}: {}", run.label, d.message)),
        }
    }
    if !faults.is_empty() {
        return Err(vec![differs("read back by tgc", faults)]);
    }
    let labels: Vec<&str> = runs.iter().map(|r| r.label.as_str()).collect();
    let mut lines =
        vec![format!("verified: read back, it computes what the model does: {}", labels.join("; "))];
    match onnxruntime::run(g, &runs, file) {
        Err(why) => lines.push(format!("not compared with ONNX Runtime: {why}")),
        Ok(Answer::Fault(fault)) => return Err(vec![differs("in ONNX Runtime", vec![fault])]),
        Ok(Answer::Ran(version, found)) => {
            for (run, found) in runs.iter().zip(found) {
                match found {
                    Ok(got) => faults.extend(differences(g, run, &got)),
                    Err(e) => faults.push(format!("{}: {e}", run.label)),
                }
            }
            if !faults.is_empty() {
                return Err(vec![differs("in ONNX Runtime", faults)]);
            }
            lines.push(format!("verified: ONNX Runtime {version} computes the same"));
        }
    }
    Ok(lines)
}

/// Random inputs that the model takes, with its results: at the first sizes also small integers, which may be indices.
fn planned(module: &Module, entry: &str, g: &Graph) -> Vec<Run> {
    let mut out = Vec::new();
    for (n, sizes) in tuples(g, 0).into_iter().take(TRIES).enumerate() {
        let dims: Vec<String> = sizes.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let label =
            if dims.is_empty() { entry.to_string() } else { format!("{entry} at {}", dims.join(", ")) };
        for small in [false, true] {
            // small ones where others are refused, too
            if small && (!has_integers(g) || (n > 0 && !out.is_empty())) {
                continue;
            }
            let Some(inputs) = draw_all(g, &sizes, small, &mut Rng(0)) else { continue };
            let Ok(want) = interp::run(module, entry, &inputs) else { continue };
            let how = if small { ", integers 0 and 1" } else { "" };
            out.push(Run { label: format!("{label}{how}"), inputs, want });
        }
    }
    out
}

/// Outputs of a run that are not what the model gives.
fn differences(g: &Graph, run: &Run, got: &[Tensor]) -> Vec<String> {
    if got.len() != run.want.len() {
        return vec![format!("{}: {} outputs, the model has {}", run.label, got.len(), run.want.len())];
    }
    let one = |((o, got), want): ((&tgc_ir::graph::Output, &Tensor), &Tensor)| {
        let worst = diff::compare(&run.label, &o.name, got, want, TOLERANCE).worst?;
        Some(format!("{}: output `{}`: {worst} (A: the file, B: the model)", run.label, o.name))
    };
    g.outputs().iter().zip(got).zip(&run.want).filter_map(one).collect()
}

fn differs(whose: &str, faults: Vec<String>) -> Diag {
    let m = format!("the file does not compute what the model does, {whose}: {}", faults[0]);
    let rest = faults[1..].iter().fold(Diag::error("E-EXP-007", m), |d, f| d.note(f.clone()));
    rest.help(
        "no file was written; without --verify one is, which may differ where ONNX leaves a result open",
    )
}
