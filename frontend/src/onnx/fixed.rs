//! Inputs that the user fixes (`--const axes=[1]`): they become constants before anything is imported, so that operands which
//! must be known, such as axes, shapes and scales, follow from them. What must not be here: operators.

use super::weights::dtype_of;
use super::{DimOption, ImportOptions};
use bytes::Bytes;
use std::str::FromStr;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::DType;
use tgc_proto::tensor_shape_proto::dimension::Value as Size;
use tgc_proto::{ModelProto, TensorProto, ValueInfoProto, type_proto};

/// A value for an input of the model, which then is no input any more.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstOption {
    /// The input's name.
    pub name: String,
    /// A number, `true`, `false`, or a list of values, nested as deep as the input has axes.
    pub value: serde_json::Value,
}

impl FromStr for ConstOption {
    type Err = Diag;

    /// Reads `k=3` or `axes=[0, -1]`.
    fn from_str(s: &str) -> Result<ConstOption, Diag> {
        let bad = |why: &str| {
            fault(format!("`--const {s}`: {why}"))
                .help("write --const k=3, --const axes=[0, -1], --const roi=[]")
        };
        let (name, value) = s.split_once('=').ok_or_else(|| bad("there is no `=`"))?;
        if name.is_empty() {
            return Err(bad("there is no name"));
        }
        let value =
            serde_json::from_str(value).map_err(|e| bad(&format!("the value cannot be read: {e}")))?;
        let mut all = Vec::new();
        let shape = shape(&value).ok_or_else(|| bad("lists side by side differ in length"))?;
        flatten(&value, &mut all);
        if shape.contains(&0) && !all.is_empty() || all.iter().any(|v| !(v.is_number() || v.is_boolean())) {
            return Err(bad("it holds something that is neither a number, true nor false"));
        }
        Ok(ConstOption { name: name.to_string(), value })
    }
}

fn fault(m: String) -> Diag {
    Diag::error("E-ONNX-021", m)
}

/// Lengths of nested lists; None where they differ.
fn shape(v: &serde_json::Value) -> Option<Vec<usize>> {
    let Some(list) = v.as_array() else { return Some(Vec::new()) };
    let mut inner = Vec::new();
    for (i, x) in list.iter().enumerate() {
        let s = shape(x)?;
        if i > 0 && s != inner {
            return None;
        }
        inner = s;
    }
    Some(std::iter::once(list.len()).chain(inner).collect())
}

fn flatten<'v>(v: &'v serde_json::Value, out: &mut Vec<&'v serde_json::Value>) {
    match v.as_array() {
        Some(list) => list.iter().for_each(|x| flatten(x, out)),
        None => out.push(v),
    }
}

/// The model with the fixed inputs as initializers. Symbolic dims of theirs get their sizes, in `opts`.
pub(super) fn apply(mut model: ModelProto, opts: &mut ImportOptions) -> Result<ModelProto, Vec<Diag>> {
    let (mut faults, mut found) = (Vec::new(), Vec::new());
    for (n, c) in opts.constants.clone().into_iter().enumerate() {
        let Some(graph) = model.graph.as_mut() else { break };
        let named = |i: &ValueInfoProto| i.name.as_deref() == Some(&c.name);
        if opts.constants[..n].iter().any(|o| o.name == c.name) {
            faults.push(fault(format!("--const gives `{}` twice", c.name)).help("keep one of them"));
            continue;
        }
        let Some(at) = graph.input.iter().position(named) else {
            let names: Vec<&str> = graph.input.iter().filter_map(|i| i.name.as_deref()).collect();
            let m = format!("--const names `{}`, which is no input of the model", c.name);
            faults
                .push(fault(m).note(format!("inputs: {}", names.join(", "))).help("use one of these names"));
            continue;
        };
        let place = Loc::new(format!("input `{}`", c.name));
        match tensor(&graph.input[at], &c, opts, &mut found) {
            Ok(t) => {
                graph.input.remove(at);
                graph.initializer.retain(|i| i.name.as_deref() != Some(&c.name));
                graph.initializer.push(t);
            }
            Err(d) => faults.push(d.at(&place)),
        }
    }
    // A dim that no other input has is no dim of the model any more.
    let left = |name: &str| {
        let dims = model.graph.iter().flat_map(|g| &g.input).filter_map(super::import::tensor_type);
        let mut dims = dims.filter_map(|t| t.shape.as_ref()).flat_map(|s| &s.dim);
        dims.any(|d| matches!(&d.value, Some(Size::DimParam(p)) if p == name))
    };
    opts.dims.retain(|d| !found.contains(&d.name) || left(&d.name));
    if faults.is_empty() { Ok(model) } else { Err(faults) }
}

/// The value in the input's type and shape.
fn tensor(
    input: &ValueInfoProto,
    c: &ConstOption,
    opts: &mut ImportOptions,
    found: &mut Vec<String>,
) -> Result<TensorProto, Diag> {
    let Some(type_proto::Value::TensorType(t)) = input.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Err(fault("--const gives a value to an input that is no tensor".into()));
    };
    let code = t.elem_type.unwrap_or(0);
    let dtype = dtype_of(code).map_err(|s| s.into_diag())?;
    if dtype.bits() < 8 && dtype != DType::Bool {
        return Err(fault(format!("--const cannot write elements of type {dtype}")));
    }
    let mut values = Vec::new();
    flatten(&c.value, &mut values);
    let shape = shape(&c.value).unwrap_or_default();
    let mut raw = Vec::new();
    for v in values {
        let s = scalar(dtype, v).ok_or_else(|| {
            fault(format!("--const gives {v}, which type {dtype} of the input cannot hold"))
        })?;
        raw.extend_from_slice(&s.bits.to_le_bytes()[..dtype.size()]);
    }
    if let Some(declared) = &t.shape {
        let gives = format!("--const gives a value of shape {shape:?}");
        if declared.dim.len() != shape.len() {
            let m = format!("{gives} to an input with {} axes", declared.dim.len());
            return Err(fault(m).help("nest the lists as deep as the input has axes"));
        }
        for (d, n) in declared.dim.iter().zip(&shape) {
            let n = *n as i64;
            match &d.value {
                Some(Size::DimValue(v)) if *v > 0 && *v != n => {
                    return Err(fault(format!("{gives}, but the input declares {v} in place of {n}")));
                }
                Some(Size::DimParam(p)) if !p.is_empty() => {
                    fix(opts, p, n)?;
                    found.push(p.clone());
                }
                _ => {}
            }
        }
    }
    Ok(TensorProto {
        dims: shape.iter().map(|n| *n as i64).collect(),
        data_type: Some(code),
        name: Some(c.name.clone()),
        raw_data: Some(Bytes::from(raw)),
        ..TensorProto::default()
    })
}

/// A named dim of a fixed input has its size from it.
fn fix(opts: &mut ImportOptions, name: &str, n: i64) -> Result<(), Diag> {
    match opts.dims.iter_mut().find(|d| d.name == name) {
        Some(d) if n < d.lo || n > d.hi => {
            Err(fault(format!("--const makes dim `{name}` {n}, --dim allows {}..{}", d.lo, d.hi)))
        }
        Some(d) => {
            (d.lo, d.hi) = (n, n);
            Ok(())
        }
        None => {
            opts.dims.push(DimOption { name: name.to_string(), lo: n, hi: n });
            Ok(())
        }
    }
}

/// A number in a type; None where it does not fit.
fn scalar(dtype: DType, v: &serde_json::Value) -> Option<Scalar> {
    if let Some(b) = v.as_bool() {
        return (dtype == DType::Bool).then(|| Scalar::bool(b));
    }
    if dtype.is_float() {
        return v.as_f64().map(|v| Scalar::from_f64(dtype, v));
    }
    let n = v.as_i64().map(i128::from).or(v.as_u64().map(i128::from))?;
    if dtype == DType::Bool {
        return matches!(n, 0 | 1).then(|| Scalar::bool(n == 1));
    }
    let s = Scalar::from_int(dtype, n);
    (s.as_int() == Some(n)).then_some(s)
}
