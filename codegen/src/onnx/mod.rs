//! Export: one entry of a module as an ONNX model. What is written is the graph as it was read, composites whole; ops that ONNX
//! has no operator for, in the opset at hand, become their decomposition or scalar program. Nothing here runs a model or
//! edits the graph.
//!
//! - `forms` (and its files): the form of each op that needs one
//! - `scalar`: scalar programs as nodes
//! - `types`: which element types an operator takes at which opset
//! - `dims`: sizes as chains of Shape and arithmetic
//! - `graph`: the walk over graph and regions; `build`: nodes, names, constants; `write`: files
//!
//! Guards (conditions on sizes) have no place in an ONNX file and are left out; an importer that proves sizes finds them again.
//! Variants of an entry become nested `If`s on its sizes.
//! States are inputs and outputs under their names; the model's metadata says which belong together.
//!
//! Where ONNX leaves a result open, the plain operator is written, which may differ from the tensor IR's: the least integer
//! divided by -1, floats beyond the range of integers of 32 and 64 bits (the IR saturates; narrower ones are limited before the
//! cast) and NaN as an integer, which zero is
//! smaller in Min and Max, whether NaN wins in Max, reductions, pools and TopK, powers of integers beyond 2^53 (engines compute them in f64), and
//! what a reduction of no elements gives. In opset 13 a reshape to a computed shape
//! keeps an axis where a size is 0. `Quantize` and `Dequantize` stay nodes of their own.
//!
//! | code | meaning |
//! |---|---|
//! | E-EXP-001 | what the module says of inputs, outputs or weights cannot be written |
//! | E-EXP-002 | an operation without a form in the opset |
//! | E-EXP-003 | a size that cannot be computed from the inputs |
//! | E-EXP-004 | the entry that is to be written |
//! | E-EXP-005 | names of axes |
//! | E-EXP-006 | files: writing, and the size of one file |

mod build;
mod dims;
mod forms;
mod graph;
mod scalar;
#[cfg(test)]
mod tests;
mod types;
mod write;

pub use write::External;

use build::Cx;
use std::str::FromStr;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::module::{Entry, Module};
use tgc_ir::ops::Op;
use tgc_proto::{GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto};

/// Oldest and newest opset that is written, and the one that is written unless another is asked for.
pub const OPSETS: (i64, i64, i64) = (13, 28, 21);

/// The version of the file format that came with an opset: (first opset, version), ascending.
const FORMATS: &[(i64, i64)] = &[(13, 7), (15, 8), (19, 9), (21, 10), (23, 11), (24, 12), (25, 13), (28, 14)];

/// A name for the size of an input's axis: `x:0=batch`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisName {
    input: String,
    axis: i64,
    name: String,
}

impl FromStr for AxisName {
    type Err = Diag;

    fn from_str(s: &str) -> Result<AxisName, Diag> {
        let parts = || {
            let (place, name) = s.rsplit_once('=')?;
            let (input, axis) = place.rsplit_once(':')?;
            let axis = axis.trim().parse().ok()?;
            let some = !input.is_empty() && !name.is_empty();
            some.then(|| AxisName { input: input.to_string(), axis, name: name.to_string() })
        };
        parts().ok_or_else(|| {
            Diag::error("E-EXP-005", format!("`{s}` is not the name of an axis"))
                .help("write INPUT:AXIS=NAME, such as x:0=batch; several with commas between")
        })
    }
}

/// How to write a model.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// Opset of the default domain, within [`OPSETS`].
    pub opset: i64,
    /// The entry; none: the only one.
    pub entry: Option<String>,
    /// Names of symbolic sizes.
    pub axes: Vec<AxisName>,
    /// Where weights go.
    pub external: External,
}

impl Default for ExportOptions {
    fn default() -> Self {
        ExportOptions { opset: OPSETS.2, entry: None, axes: Vec::new(), external: External::Auto }
    }
}

/// A model that can be written to files.
#[derive(Debug)]
pub struct Exported {
    model: ModelProto,
    external: External,
}

/// One entry of a module as an ONNX model, or everything that is in the way.
pub fn export(module: &Module, options: &ExportOptions) -> Result<Exported, Vec<Diag>> {
    let (oldest, newest, _) = OPSETS;
    if !(oldest..=newest).contains(&options.opset) {
        let m = format!("opset {} is not written", options.opset);
        return Err(vec![Diag::error("E-EXP-004", m).help(format!("opsets {oldest} to {newest} are"))]);
    }
    let (name, entry) = chosen(module, options).map_err(|d| vec![d])?;
    let g = &entry.body;
    let mut cx = Cx::new(module, options.opset, g.symbols.clone());
    rename_axes(&mut cx, g, &options.axes);
    let (input, output) = graph::entry(&mut cx, entry);
    if !cx.blockers.is_empty() {
        return Err(cx.blockers);
    }
    let graph = GraphProto {
        name: Some(name.to_string()),
        node: cx.nodes,
        initializer: cx.initializers,
        input,
        output,
        ..GraphProto::default()
    };
    let format = FORMATS.iter().rfind(|f| f.0 <= options.opset).map(|f| f.1);
    let model = ModelProto {
        ir_version: format,
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(options.opset) }],
        producer_name: Some("tgc".to_string()),
        producer_version: Some(env!("CARGO_PKG_VERSION").to_string()),
        graph: Some(graph),
        metadata_props: states(g),
        ..ModelProto::default()
    };
    Ok(Exported { model, external: options.external })
}

fn chosen<'m>(module: &'m Module, options: &ExportOptions) -> Result<(&'m str, &'m Entry), Diag> {
    let names = || module.entries.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    let found = match &options.entry {
        Some(name) => module.entries.get_key_value(name),
        None if module.entries.len() == 1 => module.entries.first(),
        None => None,
    };
    found.map(|(n, e)| (n.as_str(), e)).ok_or_else(|| {
        let m = match &options.entry {
            Some(name) => format!("the module has no entry `{name}`"),
            None => format!("the module has {} entries, an ONNX file has one", module.entries.len()),
        };
        Diag::error("E-EXP-004", m).help(format!("choose with --entry: {}", names()))
    })
}

/// Which input and output hold the old and the new value of a state.
fn states(g: &Graph) -> Vec<StringStringEntryProto> {
    let input = |state: &str| {
        g.inputs().iter().find_map(|id| match g.op_of(*id) {
            Some(Op::Input(i)) if i.state.as_deref() == Some(state) => Some(i.name.clone()),
            _ => None,
        })
    };
    let pair = |o: &tgc_ir::graph::Output| {
        let state = o.state.as_deref()?;
        let value = format!("{} -> {}", input(state).unwrap_or_default(), o.name);
        Some(StringStringEntryProto { key: Some(format!("tgc.state.{state}")), value: Some(value) })
    };
    g.outputs().iter().filter_map(pair).collect()
}

/// Takes the names that the sizes of axes are to have; what cannot be is a blocker.
fn rename_axes(cx: &mut Cx<'_>, g: &Graph, axes: &[AxisName]) {
    for a in axes {
        if let Err(d) = rename_axis(cx, g, a) {
            cx.blockers.push(d);
        }
    }
    let kept = g.symbols.iter().map(|(s, _)| s.to_string()).filter(|s| !cx.renamed.contains_key(s));
    let mut names: Vec<String> = kept.chain(cx.renamed.values().cloned()).collect();
    names.sort();
    let twice: Vec<String> = names.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0].clone()).collect();
    for n in twice {
        let m = format!("two different sizes would be called `{n}`");
        let help = "name one of them otherwise; sizes that are always equal must be one symbol in the model";
        cx.blockers.push(Diag::error("E-EXP-005", m).help(help));
    }
}

fn rename_axis(cx: &mut Cx<'_>, g: &Graph, a: &AxisName) -> Result<(), Diag> {
    let bad = |m: String| Diag::error("E-EXP-005", format!("{}:{}={}: {m}", a.input, a.axis, a.name));
    let input =
        |id: &&tgc_ir::graph::NodeId| matches!(g.op_of(**id), Some(Op::Input(i)) if i.name == a.input);
    let Some(ty) = g.inputs().iter().find(input).and_then(|id| g.ty(Value { node: *id, result: 0 })) else {
        let names = g.inputs().iter().filter_map(|id| match g.op_of(*id) {
            Some(Op::Input(i)) => Some(i.name.as_str()),
            _ => None,
        });
        let names: Vec<&str> = names.collect();
        return Err(bad("the model has no such input".into()).help(format!("inputs: {}", names.join(", "))));
    };
    let rank = ty.rank() as i64;
    let at = if a.axis < 0 { a.axis + rank } else { a.axis };
    let Some(size) = usize::try_from(at).ok().and_then(|i| ty.shape.get(i)) else {
        let help = format!("it has {rank} axes, 0 to {}", rank - 1);
        return Err(bad("the input has no such axis".into()).help(help));
    };
    if let Some(c) = size.as_const() {
        let help =
            "only a size that is a symbol in the model can vary; make the model with that axis dynamic";
        return Err(bad(format!("the size is always {c}")).help(help));
    }
    let Some(symbol) = size.as_sym() else {
        return Err(bad(format!("the size is `{size}`, not a symbol of its own"))
            .help("name the axes that its symbols are the sizes of"));
    };
    match cx.renamed.insert(symbol.to_string(), a.name.clone()) {
        Some(other) if other != a.name => {
            let m = format!("the size is the same as one that is to be called `{other}`");
            Err(bad(m).help("give both axes one name"))
        }
        _ => Ok(()),
    }
}
