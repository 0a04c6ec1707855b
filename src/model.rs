//! Loading a model from a file of any format tgc reads, told apart by content and name.

use std::path::Path;
use std::str::FromStr;
use tgc_frontend::onnx;
use tgc_ir::diag::Diag;
use tgc_ir::module::Module;

/// A `--dim` argument: a symbol with a value or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimArg {
    /// The symbol's name in the model.
    pub name: String,
    /// Smallest value.
    pub lo: i64,
    /// Greatest value, inclusive.
    pub hi: i64,
}

impl FromStr for DimArg {
    type Err = String;
    fn from_str(s: &str) -> Result<DimArg, String> {
        let shape = "expected NAME=VALUE or NAME=LO..HI (both inclusive), such as batch=1..64";
        let (name, range) = s.rsplit_once('=').ok_or(shape)?;
        let (lo, hi) = match range.split_once("..") {
            Some((lo, hi)) => (lo, hi.trim_start_matches('=')),
            None => (range, range),
        };
        let number = |t: &str| t.trim().parse::<i64>().map_err(|_| format!("`{t}` is not a number; {shape}"));
        let (lo, hi) = (number(lo)?, number(hi)?);
        if name.is_empty() || lo < 0 || lo > hi {
            return Err(format!("{shape}, 0 <= LO <= HI"));
        }
        Ok(DimArg { name: name.to_string(), lo, hi })
    }
}

/// How to read a model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Values and ranges of symbolic dims.
    pub dims: Vec<DimArg>,
}

/// Reads an ONNX file, or a `.tgir` text with its side file of weights. Gives the module and warnings.
pub fn load(path: &Path, options: &LoadOptions) -> Result<(Module, Vec<Diag>), Vec<Diag>> {
    let is_text = path.extension().is_some_and(|e| e == "tgir");
    if is_text {
        let mut module = tgc_ir::weights::load_module(path)?;
        narrow(&mut module, options)?;
        return Ok((module, Vec::new()));
    }
    let dims = options.dims.iter().map(|d| (d.name.clone(), d.lo, d.hi)).collect();
    let imported = onnx::import(path, &onnx::ImportOptions { dims })?;
    Ok((imported.module, imported.warnings))
}

/// Applies `--dim` to a module read from text: ranges are intersected; a single value is a range of one.
fn narrow(module: &mut Module, options: &LoadOptions) -> Result<(), Vec<Diag>> {
    for d in &options.dims {
        let mut found = false;
        let mut names = Vec::new();
        for g in module.graphs_mut() {
            names.extend(g.symbols.iter().map(|(n, _)| n.to_string()));
            if let Some(info) = g.symbols.get_mut(&d.name) {
                (info.lo, info.hi) = (d.lo, d.hi);
                found = true;
            }
        }
        if !found {
            names.dedup();
            return Err(vec![
                Diag::error("E-CLI-001", format!("--dim {}: the model has no dim of that name", d.name))
                    .help(format!("its dims: {}", if names.is_empty() { "none".into() } else { names.join(", ") })),
            ]);
        }
    }
    Ok(())
}
