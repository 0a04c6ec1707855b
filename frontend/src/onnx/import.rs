//! Imports a whole model: versions, the dims of its inputs, defaults and constants, outputs. Nodes are the work of
//! `graph`.

use super::bounds::Bounds;
use super::check::Res;
use super::graph::{Importer, Scope, Slot, default_opset, is_default_domain, used_names};
use super::node::stop;
use super::registry::OPSETS;
use super::weights::{Reader, dtype_of};
use super::{DimOption, ImportOptions, Imported};
use crate::limits::MAX_RANK;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::Graph;
use tgc_ir::module::Module;
use tgc_ir::ops::Input;
use tgc_ir::types::{Dim, SymInfo, Type};
use tgc_proto::tensor_shape_proto::dimension::Value as DimValue;
use tgc_proto::{GraphProto, ModelProto, TensorProto, ValueInfoProto, decode_model, type_proto};

/// Newest IR version (of the file format, not of the opset) that is understood.
const NEWEST_IR: i64 = 14;

/// From this IR version on, an initializer that is also an input is that input's default.
const DEFAULTS_SINCE: i64 = 4;

/// Imports after the first at most. What one learns rarely shows more to the next.
const REPEATS: usize = 3;

/// The model in `bytes`.
pub(crate) fn run(bytes: Bytes, folder: Option<&Path>, opts: &ImportOptions) -> Result<Imported, Vec<Diag>> {
    let mut opts = opts.clone();
    let model = super::fixed::apply(decode(bytes).map_err(|d| vec![*d])?, &mut opts)?;
    let opts = &opts;
    let Some(graph) = model.graph.as_ref() else { return Err(vec![no_graph("the file holds no graph")]) };
    let mut bounds = Bounds::default();
    let mut found = once(&model, graph, folder, opts, &bounds)?;
    for _ in 0..REPEATS {
        if !found.module.entries.values().any(|e| bounds.learn(&e.body)) {
            break;
        }
        found = once(&model, graph, folder, opts, &bounds)?;
    }
    Ok(found)
}

/// One import, with what earlier ones learned about symbols.
fn once(
    model: &ModelProto,
    graph: &GraphProto,
    folder: Option<&Path>,
    opts: &ImportOptions,
    bounds: &Bounds,
) -> Result<Imported, Vec<Diag>> {
    let mut im = Importer::new(Reader::new(folder), &model.functions);
    versions(&mut im, model);
    let mut g = Graph::new("main");
    // with an opset out of range the nearest one shows what else is wrong
    let opset = default_opset(&model.opset_import).map(|v| v.clamp(OPSETS.0, OPSETS.1));
    let mut scope = Scope::top(opset);
    let used = used_names(graph);
    inputs(&mut im, &mut g, &mut scope, model, graph, opts);
    bounds.apply(&mut g);
    im.initializers(&mut g, &mut scope, graph, &used);
    im.nodes(&mut g, &mut scope, &graph.node);
    outputs(&mut im, &mut g, &scope, graph);
    if !im.report.is_clean() {
        return Err(im.report.into_errors());
    }
    let mut module = Module::single(g);
    module.weights = im.weights;
    Ok(Imported { module, warnings: im.report.warnings })
}

fn no_graph(what: &str) -> Diag {
    Diag::error("E-ONNX-003", what).help("the file is damaged or is not an ONNX model; export it again")
}

fn decode(bytes: Bytes) -> Result<ModelProto, Box<Diag>> {
    let bad = |m: String| Diag::error("E-ONNX-002", m);
    if bytes.is_empty() {
        return Err(bad("the file is empty".to_string()).help("name an ONNX model file").into());
    }
    if let Some(kind) = other_format(&bytes) {
        return Err(bad(format!("this is {kind}, not an ONNX model"))
            .help("convert the model to ONNX first")
            .into());
    }
    let size = bytes.len();
    let model = decode_model(bytes).map_err(|e| {
        bad(format!("not an ONNX model, or a truncated one ({size} bytes): {e}"))
            .help("compare the file's size with the original; if it is whole, it is in another format")
    })?;
    if model.graph.is_none() && model.ir_version.is_none() && model.opset_import.is_empty() {
        return Err(bad("this is not an ONNX model: it has neither a version nor a graph".to_string())
            .help("name a model file, not a tensor file such as test_data_set_0/input_0.pb")
            .into());
    }
    Ok(model)
}

/// Formats that people take for ONNX models.
fn other_format(b: &[u8]) -> Option<&'static str> {
    let starts = |s: &[u8]| b.starts_with(s);
    match b {
        _ if starts(b"PK\x03\x04") => Some("a zip archive (a PyTorch checkpoint or a package?)"),
        _ if starts(b"\x89HDF") => Some("an HDF5 file (Keras?)"),
        _ if starts(b"GGUF") => Some("a GGUF file"),
        _ if starts(b"\x7fELF") => Some("an executable"),
        _ if starts(b"\x93NUMPY") => Some("a numpy array"),
        _ if starts(b"version https://git-lfs") => {
            Some("a Git LFS pointer (the model itself was not fetched)")
        }
        _ if b.get(4..8) == Some(b"TFL3") => Some("a TensorFlow Lite model"),
        _ if b.get(4..8) == Some(b"ORTM") => Some("an ORT-format model"),
        _ if b.get(8..10) == Some(b"{\"") => Some("a safetensors file (weights without a graph)"),
        _ => None,
    }
}

fn versions(im: &mut Importer<'_>, model: &ModelProto) {
    match model.ir_version {
        Some(v) if (1..=NEWEST_IR).contains(&v) => {}
        v => {
            let found = v.map_or("none".to_string(), |v| v.to_string());
            let m = format!("the file's IR version is {found}; allowed are 1 to {NEWEST_IR}");
            im.report
                .error(Diag::error("E-ONNX-004", m).help("export the model with a current ONNX release"));
        }
    }
    let (oldest, newest) = OPSETS;
    match default_opset(&model.opset_import) {
        Some(v) if (oldest..=newest).contains(&v) => {}
        Some(v) => {
            let m = format!("the model uses opset {v}; supported are {oldest} to {newest}");
            let help = format!(
                "export it with an opset of {oldest} to {newest}, or convert it with onnx.version_converter"
            );
            im.report.error(Diag::error("E-ONNX-005", m).help(help));
        }
        // each of its operators says so, if there are any
        None if !model.opset_import.is_empty() => {}
        None => {
            let d =
                Diag::error("E-ONNX-005", "the model declares no opset, so its operators have no meaning");
            im.report.error(d.help("the file is damaged or not an ONNX model; export it again"));
        }
    }
    let twice = model.opset_import.iter().filter(|o| is_default_domain(o.domain.as_deref())).count() > 1;
    if twice {
        im.report.error(Diag::error("E-ONNX-005", "the default domain's opset is declared twice"));
    }
}

fn inputs<'m>(
    im: &mut Importer<'m>,
    g: &mut Graph,
    scope: &mut Scope<'_, 'm>,
    model: &'m ModelProto,
    graph: &'m GraphProto,
    opts: &ImportOptions,
) {
    let name_of = |t: &'m TensorProto| t.name.as_deref().unwrap_or("");
    let initial: BTreeMap<&str, &TensorProto> = graph.initializer.iter().map(|t| (name_of(t), t)).collect();
    let defaults = model.ir_version.unwrap_or(0) >= DEFAULTS_SINCE;
    // below that version, every initializer had to be listed as an input too
    let real = |i: &&'m ValueInfoProto| defaults || !initial.contains_key(i.name.as_deref().unwrap_or(""));
    let list: Vec<&'m ValueInfoProto> = graph.input.iter().filter(real).collect();
    let symbols = declare_dims(im, g, &list, opts);
    for (at, i) in list.into_iter().enumerate() {
        let name = i.name.as_deref().unwrap_or("");
        let loc = Loc::new(format!("input `{name}`"));
        let slot = match input(im, &symbols, at, i, initial.get(name).copied(), opts) {
            Ok(op) => Slot::Val(g.input_op(op, loc.clone())),
            Err(s) => {
                im.report.stop(s.map(|d| d.at(&loc)));
                Slot::Poison
            }
        };
        if !scope.define(name, slot) {
            let d = Diag::error("E-ONNX-010", format!("`{name}` is listed as an input twice")).at(&loc);
            im.report.error(d.help("every name may be defined once; the file is damaged"));
        }
    }
}

/// What a dim of an input says.
enum Declared<'m> {
    Fixed(i64),
    Named(&'m str),
    Anonymous,
}

fn declared(d: &tgc_proto::tensor_shape_proto::Dimension) -> Declared<'_> {
    match &d.value {
        Some(DimValue::DimValue(v)) if *v > 0 => Declared::Fixed(*v),
        Some(DimValue::DimParam(p)) if !p.is_empty() && p != "?" && !p.starts_with("unk__") => {
            Declared::Named(p)
        }
        _ => Declared::Anonymous,
    }
}

pub(super) fn tensor_type(i: &ValueInfoProto) -> Option<&type_proto::Tensor> {
    match i.r#type.as_ref()?.value.as_ref()? {
        type_proto::Value::TensorType(t) => Some(t),
        _ => None,
    }
}

/// Symbols of axes without a name, by input and axis.
type Own = BTreeMap<(usize, usize), String>;

/// Declares every symbol of the inputs: named dims first, so that names made for others stay clear of them.
fn declare_dims(im: &mut Importer<'_>, g: &mut Graph, list: &[&ValueInfoProto], opts: &ImportOptions) -> Own {
    let mut symbols = Own::new();
    let dims = |i: &'_ ValueInfoProto| {
        tensor_type(i).and_then(|t| t.shape.as_ref()).map(|s| s.dim.clone()).unwrap_or_default()
    };
    let mut known: BTreeSet<String> = BTreeSet::new();
    for i in list {
        for d in dims(i) {
            if let Declared::Named(p) = declared(&d) {
                known.insert(p.to_string());
                declare(g, p, true, opts);
            }
        }
    }
    for (at, i) in list.iter().enumerate() {
        let name = i.name.as_deref().unwrap_or("");
        for (axis, d) in dims(i).iter().enumerate() {
            if matches!(declared(d), Declared::Anonymous) {
                let own = g.symbols.fresh(&format!("{name}_{axis}"));
                declare(g, &own, false, opts);
                known.insert(own.clone());
                symbols.insert((at, axis), own);
            }
        }
    }
    let mut seen = BTreeSet::new();
    for o in &opts.dims {
        if !seen.insert(&o.name) {
            let m = format!("--dim gives `{}` twice", o.name);
            im.report.error(Diag::error("E-ONNX-013", m).help("give each dim once"));
        }
        if !known.contains(&o.name) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let have =
                if names.is_empty() { "none: all its sizes are fixed".to_string() } else { names.join(", ") };
            let m = format!("--dim names `{}`, which is no symbolic dim of the model's inputs", o.name);
            im.report.error(
                Diag::error("E-ONNX-013", m)
                    .note(format!("symbolic dims: {have}"))
                    .help("use one of these names"),
            );
        }
    }
    symbols
}

fn option<'a>(opts: &'a ImportOptions, name: &str) -> Option<&'a DimOption> {
    opts.dims.iter().find(|o| o.name == name)
}

fn declare(g: &mut Graph, name: &str, named: bool, opts: &ImportOptions) {
    let mut info = SymInfo { named, ..SymInfo::default() };
    if let Some(o) = option(opts, name) {
        // a fixed size is a number wherever it stands
        if o.lo == o.hi {
            return;
        }
        (info.lo, info.hi) = (o.lo, o.hi);
    }
    g.symbols.insert(name, info);
}

/// The symbol or its fixed value.
fn symbol(opts: &ImportOptions, name: &str) -> Dim {
    match option(opts, name) {
        Some(o) if o.lo == o.hi => Dim::from(o.lo),
        _ => Dim::sym(name),
    }
}

fn input(
    im: &mut Importer<'_>,
    symbols: &Own,
    at: usize,
    i: &ValueInfoProto,
    initial: Option<&TensorProto>,
    opts: &ImportOptions,
) -> Res<Input> {
    let name = i.name.as_deref().unwrap_or("");
    if name.is_empty() {
        return Err(stop("E-ONNX-012", "an input has no name"));
    }
    let Some(t) = tensor_type(i) else {
        let help = "export the model with tensors as inputs";
        return Err(Diag::error(
            "E-ONNX-012",
            "the input is no tensor (sequences, maps and optionals are not supported)",
        )
        .help(help)
        .into());
    };
    let dtype = dtype_of(t.elem_type.unwrap_or(0))?;
    let Some(shape) = t.shape.as_ref() else {
        let m = "the input's number of axes is not declared";
        return Err(Diag::error("E-ONNX-012", m)
            .help("give the input a shape; its sizes may stay symbolic")
            .into());
    };
    if shape.dim.len() > MAX_RANK {
        let m = format!("the input has {} axes; at most {MAX_RANK} are allowed", shape.dim.len());
        return Err(stop("E-ONNX-017", m));
    }
    let mut dims = Vec::with_capacity(shape.dim.len());
    for (axis, d) in shape.dim.iter().enumerate() {
        dims.push(match declared(d) {
            Declared::Fixed(v) => Dim::from(v),
            Declared::Named(p) => symbol(opts, p),
            Declared::Anonymous => symbol(opts, symbols.get(&(at, axis)).map_or("", String::as_str)),
        });
    }
    let mut default = None;
    if let Some(t) = initial {
        let value = im.reader.tensor(t)?;
        let fits = value.dtype == dtype && value.shape.len() == dims.len();
        if !fits || dims.iter().zip(&value.shape).any(|(d, s)| d.as_const().is_some_and(|c| c as usize != *s))
        {
            let ty = Type::new(dtype, dims);
            let m = format!("the input is declared as {ty}, but its default value is {}", value.ty());
            return Err(stop("E-ONNX-012", m));
        }
        default = Some(im.add_weight(name, value));
    }
    Ok(Input { name: name.to_string(), dtype, shape: dims, state: None, default })
}

fn outputs<'m>(im: &mut Importer<'m>, g: &mut Graph, scope: &Scope<'_, 'm>, graph: &'m GraphProto) {
    if graph.output.is_empty() {
        im.report.error(no_graph("the model has no outputs"));
    }
    let mut seen = BTreeSet::new();
    for o in &graph.output {
        let name = o.name.as_deref().unwrap_or("");
        let loc = Loc::new(format!("output `{name}`"));
        if !seen.insert(name) {
            im.report
                .error(Diag::error("E-ONNX-010", format!("`{name}` is listed as an output twice")).at(&loc));
            continue;
        }
        match scope.get(name) {
            Some(Slot::Val(v)) => {
                g.output(name, v);
                if let Some(ty) = g.ty(v).cloned() {
                    compare(im, o, &ty, &loc);
                }
            }
            Some(Slot::Poison) => {}
            Some(Slot::Absent) | None => {
                let d = Diag::error("E-ONNX-009", "the output is produced by nothing").at(&loc);
                im.report.error(d.help("the file is damaged or was cut out of a bigger model"));
            }
        }
    }
}

/// Declared output types are labels: a contradiction is worth a warning, no more.
fn compare(im: &mut Importer<'_>, o: &ValueInfoProto, ty: &Type, loc: &Loc) {
    let Some(t) = tensor_type(o) else { return };
    let mut wrong = dtype_of(t.elem_type.unwrap_or(0)).is_ok_and(|d| d != ty.dtype);
    if let Some(s) = &t.shape {
        let differs = |(d, found): (&tgc_proto::tensor_shape_proto::Dimension, &Dim)| match (
            declared(d),
            found.as_const(),
        ) {
            (Declared::Fixed(v), Some(c)) => v != c,
            _ => false,
        };
        wrong |= s.dim.len() != ty.rank() || s.dim.iter().zip(&ty.shape).any(differs);
    }
    if wrong {
        let m = format!("the output is declared otherwise than what its operators give: {ty}");
        im.report.warn(
            Diag::warning("E-ONNX-030", m)
                .at(loc)
                .help("the declaration is ignored; the exporter may be wrong"),
        );
    }
}
