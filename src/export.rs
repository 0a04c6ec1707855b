//! The way from a module to an ONNX file: written under another name, verified if asked for, then renamed. What must not be
//! here: what is written (`tgc_codegen::onnx`), and how ONNX Runtime is called (`onnxruntime`).

use crate::diff::{Side, Tolerance, diff};
use crate::onnxruntime;
use std::fs;
use std::path::{Path, PathBuf};
use tgc_codegen::onnx::{self, ExportOptions};
use tgc_frontend::onnx::{ImportOptions, import};
use tgc_ir::diag::Diag;
use tgc_ir::module::Module;

/// How far results of the written file may be from the model's: what noise of roundings can be.
pub(crate) const TOLERANCE: Tolerance = Tolerance { absolute: None, relative: 0.0 };

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
        let Some(name) = path.file_name().and_then(|n| n.to_str()).map(str::to_string) else {
            let m = format!("`{}` names no file", path.display());
            return Err(Diag::error("E-EXP-006", m).help("give the file's name, such as -o model.onnx"));
        };
        if path.is_dir() {
            let m = format!("`{}` is a folder", path.display());
            return Err(Diag::error("E-EXP-006", m).help("give the file's name, such as -o model.onnx"));
        }
        let folder =
            path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
        let temporary = folder.join(format!(".{name}.{}.part", std::process::id()));
        fs::create_dir(&temporary).map_err(|e| unwritable(path, &e))?;
        Ok(Place { folder, name, temporary })
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

/// The model that is in the file, against the module.
fn verified(module: &Module, options: &ExportOptions, file: &Path) -> Result<Vec<String>, Vec<Diag>> {
    let given = alone(module, options);
    let read = import(file, &ImportOptions::default())?.module;
    // under other names of sizes, tuples that fit both are hard to find: the same model without them is run
    let read = if options.axes.is_empty() { read } else { unnamed(module, options)? };
    let (a, b) = (Side::Model(Box::new(given.clone())), Side::Model(Box::new(read)));
    let found = match diff(&a, &b, 0, TOLERANCE) {
        Ok(found) => found,
        Err(d) => return Ok(vec![format!("not verified: {}", d[0].message)]),
    };
    let bad = found.outputs.iter().filter_map(|o| Some((o, o.worst.as_ref()?)));
    let mut faults: Vec<String> = bad
        .map(|(o, w)| format!("{}: output `{}`: {w} (A: the model, B: the file)", o.run, o.output))
        .chain(found.refused.iter().cloned())
        .collect();
    faults.extend(found.first.map(|f| format!("first difference in {f}")));
    if !faults.is_empty() {
        return Err(vec![differs("the interpreter", faults)]);
    }
    let mut runs: Vec<&str> = found.outputs.iter().map(|o| o.run.as_str()).collect();
    runs.dedup();
    let mut lines =
        vec![format!("verified: the file, read back, computes what the model does: {}", runs.join("; "))];
    lines.push(match onnxruntime::compare(&given, file) {
        Ok(said) => said,
        Err(faults) => return Err(vec![differs("ONNX Runtime", faults)]),
    });
    Ok(lines)
}

fn differs(whose: &str, faults: Vec<String>) -> Diag {
    let m = format!("the written file does not compute what the model does, by {whose}: {}", faults[0]);
    let rest = faults[1..].iter().fold(Diag::error("E-EXP-007", m), |d, f| d.note(f.clone()));
    rest.help("this is a fault of the export (or of the engine, where integers overflow or a result is open in ONNX); please report it with the model")
}

/// The entry that is written, alone.
fn alone(module: &Module, options: &ExportOptions) -> Module {
    let mut m = module.clone();
    if let Some(name) = &options.entry {
        m.entries.retain(|n, _| n == name);
    }
    m
}

fn unnamed(module: &Module, options: &ExportOptions) -> Result<Module, Vec<Diag>> {
    let options = ExportOptions { axes: Vec::new(), ..options.clone() };
    let bytes = onnx::export(module, &options)?.to_bytes().map_err(|d| vec![d])?;
    Ok(tgc_frontend::onnx::import_bytes(bytes.into(), None, &ImportOptions::default())?.module)
}
