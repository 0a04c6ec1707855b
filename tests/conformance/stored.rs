//! What lies in a case's folder, and how results are judged by it.

use std::path::{Path, PathBuf};
use tgc::frontend::onnx::tensor_file;
use tgc::ir::diag::Diag;
use tgc::ir::tensor::Tensor;
use tgc::ir::types::DType;

/// How sizes of inputs become symbols.
#[derive(Clone, Copy)]
pub enum Symbols {
    Fixed,
    /// Each axis has its own.
    Own,
    /// Equal sizes are one.
    Same,
    /// Only the first axis of each input.
    First,
}

/// `input_0.pb` and so on of the stored data.
pub fn tensors(folder: &Path, kind: &str) -> Result<Vec<Tensor>, Diag> {
    let path = |i: usize| folder.join("test_data_set_0").join(format!("{kind}_{i}.pb"));
    let files: Vec<PathBuf> = (0..).map(path).take_while(|p| p.exists()).collect();
    files.iter().map(|p| Ok(tensor_file(p)?.1)).collect()
}

/// The operand that a diagnostic says must be known.
pub fn must_be_known(d: &[Diag]) -> Option<String> {
    let d = d.iter().find(|d| d.code == "E-ONNX-016")?;
    let (_, rest) = d.message.split_once("(operand ")?;
    let (_, rest) = rest.split_once('`')?;
    Some(rest.split_once('`')?.0.to_string())
}

/// Names of the inputs that are fed, in order.
pub fn input_names(file: &[u8]) -> Vec<String> {
    let Some(graph) = tgc_proto::decode_model(file.to_vec().into()).ok().and_then(|m| m.graph) else {
        return Vec::new();
    };
    let held: Vec<Option<String>> = graph.initializer.iter().map(|t| t.name.clone()).collect();
    graph.input.into_iter().filter(|i| !held.contains(&i.name)).filter_map(|i| i.name).collect()
}

/// A small tensor as `--const` takes it.
pub fn value(t: &Tensor) -> Option<serde_json::Value> {
    fn nest(shape: &[usize], elems: &mut impl Iterator<Item = serde_json::Value>) -> serde_json::Value {
        match shape.split_first() {
            None => elems.next().unwrap_or_default(),
            Some((n, rest)) => (0..*n).map(|_| nest(rest, elems)).collect(),
        }
    }
    let number = |s: tgc::ir::scalar::Scalar| match s.as_int() {
        Some(i) if !t.dtype.is_float() => i64::try_from(i).ok().map(serde_json::Value::from),
        _ => Some(serde_json::Value::from(s.as_f64())).filter(|v| v.is_number()),
    };
    let elems: Option<Vec<serde_json::Value>> = t.scalars().map(number).collect();
    elems.filter(|e| e.len() <= 1000).map(|e| nest(&t.shape, &mut e.into_iter()))
}

/// Cases whose stored data was written with four digits.
pub const ROUNDED: [&str; 1] = ["test_averagepool_2d_ceil_last_window_starts_on_pad"];

/// How far a result may be from the stored one, relative and absolute. The suite's own runner allows 1e-3 and 1e-7 for all
/// types; the data was computed in the type itself, by numpy.
fn tolerance(d: DType) -> (f64, f64) {
    match d {
        DType::F64 => (1e-7, 1e-9),
        DType::F32 => (1e-4, 1e-6),
        DType::F16 => (5e-3, 1e-4),
        DType::BF16 => (2e-2, 1e-3),
        _ => (0.0, 0.0),
    }
}

/// Results against the stored ones.
pub fn compare<'t>(
    got: impl ExactSizeIterator<Item = &'t Tensor>,
    stored: &[Tensor],
    rounded: bool,
) -> Result<(), String> {
    if got.len() != stored.len() {
        return Err(format!("{} outputs, {} are stored", got.len(), stored.len()));
    }
    for (n, (g, s)) in got.zip(stored).enumerate() {
        if g.dtype != s.dtype || g.shape != s.shape {
            return Err(format!(
                "output {n} is {}{:?}, stored is {}{:?}",
                g.dtype, g.shape, s.dtype, s.shape
            ));
        }
        let (rtol, atol) = if rounded { (1e-3, 1e-4) } else { tolerance(s.dtype) };
        for (i, (a, b)) in g.scalars().zip(s.scalars()).enumerate() {
            let (x, y) = (a.as_f64(), b.as_f64());
            let equal = if s.dtype.is_float() {
                x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= atol + rtol * y.abs()
            } else {
                a == b
            };
            if !equal {
                return Err(format!("element {i} of output {n} is {x:e}, stored is {y:e}"));
            }
        }
    }
    Ok(())
}

/// The file with the sizes of its inputs as symbols; None where no size can be one.
pub fn with_symbols(file: Vec<u8>, how: Symbols) -> Option<Vec<u8>> {
    use tgc_proto::Message;
    use tgc_proto::tensor_shape_proto::dimension::Value as Size;
    use tgc_proto::type_proto::Value as Kind;
    if matches!(how, Symbols::Fixed) {
        return Some(file);
    }
    let mut model = tgc_proto::decode_model(file.into()).ok()?;
    let graph = model.graph.as_mut()?;
    let held: Vec<Option<String>> = graph.initializer.iter().map(|t| t.name.clone()).collect();
    let mut some = false;
    for (n, input) in graph.input.iter_mut().enumerate().filter(|(_, i)| !held.contains(&i.name)) {
        let Some(Kind::TensorType(t)) = input.r#type.as_mut().and_then(|t| t.value.as_mut()) else {
            continue;
        };
        let dims = t.shape.iter_mut().flat_map(|s| &mut s.dim);
        for (axis, d) in dims.enumerate() {
            let Some(Size::DimValue(size)) = d.value else { continue };
            let name = match how {
                Symbols::Own => format!("d{n}_{axis}"),
                Symbols::Same => format!("s{size}"),
                Symbols::First if axis == 0 => format!("s{size}"),
                _ => continue,
            };
            d.value = Some(Size::DimParam(name));
            some = true;
        }
    }
    for v in graph.output.iter_mut() {
        if let Some(Kind::TensorType(t)) = v.r#type.as_mut().and_then(|t| t.value.as_mut()) {
            t.shape = None;
        }
    }
    graph.value_info.clear();
    some.then(|| model.encode_to_vec())
}

/// The folder of a case in the unpacked suite.
pub fn folder(suite: &Path, kind: &str, name: &str) -> PathBuf {
    suite.join(kind).join(name)
}
