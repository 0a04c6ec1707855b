//! Import of ONNX models: `import` is what `tgc build` and `tgc check` call. It gives a module, or every reason why there
//! is none: an unsupported operator stops nothing else from being looked at.
//!
//! - `import`: versions, inputs and their dims, initializers, outputs
//! - `graph`, `node`, `function`: lists of nodes, what one node's importer works with, the model's own functions
//! - `fixed`: inputs that become constants
//! - `bounds`: ranges of symbols that follow from guards
//! - `composite`: operators that are not simply an IR op; `registry` finds these and the simple ones
//! - `attrs`, `weights`, `check`: attributes, tensors, collected diagnostics
//!
//! Codes: E-ONNX-001 the file cannot be read, 002 it is no model, 003 the graph is missing or empty, 004 IR version,
//! 005 opset, 006 unsupported operator, 007 attribute, 008 element type, 009 a name nothing produces, 010 a name defined
//! twice, 011 a cycle, 012 an input's type, 013 `--dim`, 014 a tensor's data, 015 external data, 016 a size that depends
//! on data, 017 a limit, 018 an output that is not supported, 020 operands, 021 `--const`, 022 shapes and sizes, 023 training mode,
//! 030 (warning) an output is declared otherwise.

mod attrs;
mod bounds;
mod check;
mod composite;
mod fixed;
mod function;
mod graph;
mod import;
mod node;
mod registry;
mod weights;

pub use fixed::ConstOption;

use std::path::Path;
use std::str::FromStr;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::module::Module;
use tgc_ir::tensor::Tensor;
use tgc_proto::Message;

/// A range, or a fixed value, for one symbolic dim of the model's inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimOption {
    /// The dim's name; for one without a name, `<input>_<axis>`.
    pub name: String,
    /// Smallest value.
    pub lo: i64,
    /// Greatest value, inclusive. Equal to `lo`: the dim is fixed.
    pub hi: i64,
}

impl FromStr for DimOption {
    type Err = Diag;

    /// Reads `name=8` or `name=1..64`.
    fn from_str(s: &str) -> Result<DimOption, Diag> {
        let bad = |why: &str| {
            Diag::error("E-ONNX-013", format!("`--dim {s}`: {why}")).help(
                "write --dim name=8 for a fixed size, --dim name=1..64 for a range with both ends included",
            )
        };
        let (name, value) = s.rsplit_once('=').ok_or_else(|| bad("there is no `=`"))?;
        let (lo, hi) = value.split_once("..").unwrap_or((value, value));
        let number = |v: &str| v.trim().trim_start_matches('=').parse::<i64>();
        let (Ok(lo), Ok(hi)) = (number(lo), number(hi)) else { return Err(bad("the size is no number")) };
        if name.is_empty() || lo < 0 || hi < lo {
            return Err(bad("a name and sizes 0 <= low <= high are wanted"));
        }
        Ok(DimOption { name: name.to_string(), lo, hi })
    }
}

/// What the user may say about an import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Ranges or values of symbolic dims.
    pub dims: Vec<DimOption>,
    /// Inputs that become constants.
    pub constants: Vec<ConstOption>,
}

/// An imported model.
#[derive(Debug)]
pub struct Imported {
    /// The program; its one entry is `main`.
    pub module: Module,
    /// Worth telling the user.
    pub warnings: Vec<Diag>,
}

/// Imports the model file at `path`; external data is read from its folder.
pub fn import(path: &Path, opts: &ImportOptions) -> Result<Imported, Vec<Diag>> {
    let bytes = weights::map_file(path).map_err(|e| {
        let help =
            if path.is_dir() { "name the .onnx file itself" } else { "check the path and its permissions" };
        vec![Diag::error("E-ONNX-001", format!("`{}` cannot be read: {e}", path.display())).help(help)]
    })?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = |d: Diag| d.at(&Loc::new(path.display().to_string()));
    import::run(bytes, Some(folder), opts).map_err(|v| v.into_iter().map(place).collect())
}

/// Imports a model from memory. `folder` is where external data may lie; without one there is none.
pub fn import_bytes(
    bytes: bytes::Bytes,
    folder: Option<&Path>,
    opts: &ImportOptions,
) -> Result<Imported, Vec<Diag>> {
    import::run(bytes, folder, opts)
}

/// Reads one tensor from a file that holds a `TensorProto` (such as the data sets beside test models): its name, which may
/// be empty, and its elements.
pub fn tensor_file(path: &Path) -> Result<(String, Tensor), Diag> {
    let bytes = weights::map_file(path)
        .map_err(|e| Diag::error("E-ONNX-001", format!("`{}` cannot be read: {e}", path.display())))?;
    let proto = tgc_proto::TensorProto::decode(bytes)
        .map_err(|e| Diag::error("E-ONNX-002", format!("`{}` holds no tensor: {e}", path.display())))?;
    let tensor = weights::Reader::new(path.parent()).tensor(&proto);
    Ok((proto.name.unwrap_or_default(), tensor.map_err(|e| e.into_diag())?))
}
