//! Loading a model from a file of any format tgc reads, told apart by content and name.

use std::path::Path;
use tgc_frontend::onnx::{self, ConstOption, DimOption};
use tgc_ir::diag::Diag;
use tgc_ir::module::Module;

/// How to read a model.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Values and ranges of symbolic dims.
    pub dims: Vec<DimOption>,
    /// Inputs of an ONNX model that become constants.
    pub constants: Vec<ConstOption>,
}

/// Reads an ONNX file, or a `.tgir` text with its side file of weights. Gives the module and warnings.
pub fn load(path: &Path, options: &LoadOptions) -> Result<(Module, Vec<Diag>), Vec<Diag>> {
    for (i, d) in options.dims.iter().enumerate() {
        if options.dims[..i].iter().any(|o| o.name == d.name) {
            return Err(vec![
                Diag::error("E-CLI-005", format!("--dim {} is given twice", d.name)).help("keep one of them"),
            ]);
        }
    }
    let is_text = path.extension().is_some_and(|e| e == "tgir");
    if is_text {
        if let Some(c) = options.constants.first() {
            let m = format!("--const {}: a .tgir text has its inputs fixed in the text", c.name);
            let help = "use --const with ONNX files; in the text, put a constant in place of the input";
            return Err(vec![Diag::error("E-CLI-009", m).help(help)]);
        }
        let mut module = tgc_ir::weights::load_module(path)?;
        narrow(&mut module, options)?;
        return Ok((module, Vec::new()));
    }
    let imported = onnx::import(
        path,
        &onnx::ImportOptions { dims: options.dims.clone(), constants: options.constants.clone() },
    )?;
    Ok((imported.module, imported.warnings))
}

/// Applies `--dim` to a module read from text: a range within the text's own takes its place.
fn narrow(module: &mut Module, options: &LoadOptions) -> Result<(), Vec<Diag>> {
    for d in &options.dims {
        let mut found = false;
        let mut names = Vec::new();
        for g in module.graphs_mut() {
            names.extend(g.symbols.iter().map(|(n, _)| n.to_string()));
            if let Some(info) = g.symbols.get_mut(&d.name) {
                if d.lo < info.lo || d.hi > info.hi {
                    return Err(vec![
                        Diag::error(
                            "E-CLI-004",
                            format!(
                                "--dim {0}: {1}..{2} is not within the text's own {3}..{4}",
                                d.name, d.lo, d.hi, info.lo, info.hi
                            ),
                        )
                        .help("give a part of that range, or widen the `dim` line of the text"),
                    ]);
                }
                (info.lo, info.hi) = (d.lo, d.hi);
                found = true;
            }
        }
        if !found {
            names.dedup();
            return Err(vec![
                Diag::error("E-CLI-001", format!("--dim {}: the model has no dim of that name", d.name))
                    .help(format!(
                        "its dims: {}",
                        if names.is_empty() { "none".into() } else { names.join(", ") }
                    )),
            ]);
        }
    }
    Ok(())
}
