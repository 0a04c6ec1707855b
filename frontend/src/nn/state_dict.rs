//! Reading, writing and matching of state dicts. Files are safetensors.

use super::error::Errors;
use super::module::{Cell, Found, Kind, Module, walk};
use super::tensor::{Repr, Tensor};
use indexmap::IndexMap;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use std::path::Path;
use std::sync::Arc;
use tgc_ir::diag::Diag;
use tgc_ir::tensor::{Data as Bytes, Tensor as Data};
use tgc_ir::text::near;
use tgc_ir::types::DType;

struct Wanted {
    path: String,
    cell: Arc<Cell>,
    optional: bool,
}

pub(super) fn load<M: Module + ?Sized>(
    m: &M,
    dict: &IndexMap<String, Tensor>,
    strict: bool,
) -> Result<(), Errors> {
    let (mut wanted, mut ignored): (Vec<Wanted>, Vec<String>) = (Vec::new(), Vec::new());
    walk(m, &mut |f| match f {
        Found::Cell { path, cell, kind: kind @ (Kind::Param | Kind::Buffer { persistent: true, .. }) } => {
            let optional = matches!(kind, Kind::Buffer { optional: true, .. });
            wanted.push(Wanted { path: path.to_string(), cell: cell.clone(), optional });
        }
        Found::Ignored { path } => ignored.push(path.to_string()),
        _ => {}
    });
    let prefix = "module.";
    let strip = !dict.is_empty()
        && dict.keys().all(|k| k.starts_with(prefix))
        && !wanted.iter().any(|w| w.path.starts_with(prefix));
    let key = |k: &str| k[if strip { prefix.len() } else { 0 }..].to_string();
    let given: IndexMap<String, &Tensor> = dict.iter().map(|(k, v)| (key(k), v)).collect();
    let mut errors = Vec::new();
    let mut puts: Vec<(Arc<Cell>, Data)> = Vec::new();
    for w in &wanted {
        let Some(t) = given.get(&w.path) else {
            let tied = wanted.iter().any(|o| Arc::ptr_eq(&o.cell, &w.cell) && given.contains_key(&o.path));
            if strict && !w.optional && !tied {
                errors.push(missing(w, &given, &wanted));
            }
            continue;
        };
        match fit(&w.path, t, &w.cell.value()) {
            Ok(data) => puts.push((w.cell.clone(), data)),
            Err(d) => errors.push(d),
        }
    }
    let known = |k: &String| wanted.iter().any(|w| w.path == *k) || ignored.contains(k);
    for k in given.keys().filter(|k| strict && !known(k)) {
        let names: Vec<&str> =
            wanted.iter().filter(|w| !given.contains_key(&w.path)).map(|w| &*w.path).collect();
        let d = Diag::error("E-NN-051", format!("unexpected key `{k}`: the model has no such tensor"));
        errors.push(nearest(d, k, names, "to pass over it, load with strict = false"));
    }
    if !errors.is_empty() {
        return Err(Errors::new(errors));
    }
    for (cell, data) in puts {
        cell.put(data);
    }
    Ok(())
}

fn nearest(d: Diag, key: &str, names: Vec<&str>, otherwise: &str) -> Diag {
    match near(key, names).first() {
        Some(n) => d.help(format!("is it `{n}`? If not: {otherwise}")),
        None => d.help(otherwise),
    }
}

fn missing(w: &Wanted, given: &IndexMap<String, &Tensor>, wanted: &[Wanted]) -> Diag {
    let d = Diag::error("E-NN-050", format!("missing key `{}` ({})", w.path, w.cell.value().ty()));
    let spare: Vec<&str> =
        given.keys().filter(|k| !wanted.iter().any(|w| w.path == **k)).map(|k| k.as_str()).collect();
    nearest(d, &w.path, spare, "to keep its present value, load with strict = false")
}

/// The value as the cell holds it: the same shape, floats converted to its type.
fn fit(path: &str, t: &Tensor, old: &Data) -> Result<Data, Diag> {
    let Repr::Held(new) = &t.0 else {
        return Err(Diag::error("E-NN-053", format!("key `{path}` has no known value")));
    };
    let floats = old.dtype.is_float() && new.dtype.is_float();
    if new.shape != old.shape || (new.dtype != old.dtype && !floats) {
        let m = format!("key `{path}` is {}, the model's is {}", new.ty(), old.ty());
        return Err(
            Diag::error("E-NN-052", m).help("build the model with the sizes that the file was saved with")
        );
    }
    match new.dtype == old.dtype {
        true => Ok(new.clone()),
        false => Ok(Data::from_scalars(
            old.dtype,
            &new.shape,
            new.scalars().map(|s| tgc_ir::scalar::cast(old.dtype, s)),
        )),
    }
}

const TYPES: [(Dtype, DType); 13] = [
    (Dtype::F64, DType::F64),
    (Dtype::F32, DType::F32),
    (Dtype::F16, DType::F16),
    (Dtype::BF16, DType::BF16),
    (Dtype::I64, DType::I64),
    (Dtype::I32, DType::I32),
    (Dtype::I16, DType::I16),
    (Dtype::I8, DType::I8),
    (Dtype::U64, DType::U64),
    (Dtype::U32, DType::U32),
    (Dtype::U16, DType::U16),
    (Dtype::U8, DType::U8),
    (Dtype::BOOL, DType::Bool),
];

/// A part of a mapped file.
struct Part(Arc<dyn AsRef<[u8]> + Send + Sync>, std::ops::Range<usize>);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref().get(self.1.clone()).unwrap_or(&[])
    }
}

/// The tensors of a safetensors file, mapped and not copied.
pub fn read(path: &Path) -> Result<IndexMap<String, Tensor>, Errors> {
    let fault = |what: String| Diag::error("E-NN-054", format!("{}: {what}", path.display()));
    let file = tgc_ir::weights::map_file(path).map_err(|e| fault(e.to_string()))?;
    let all = (*file).as_ref();
    let parsed = SafeTensors::deserialize(all).map_err(|e| {
        fault(format!("no valid safetensors file: {e}"))
            .help("convert checkpoints with safetensors.torch.save_file")
    })?;
    let mut out = IndexMap::new();
    let mut names = parsed.names();
    names.sort();
    for name in names {
        let view = parsed.tensor(name).map_err(|e| fault(e.to_string()))?;
        let Some((_, dtype)) = TYPES.iter().find(|t| t.0 == view.dtype()) else {
            return Err(fault(format!("`{name}` has the type {:?}, which is not read", view.dtype())).into());
        };
        let start = view.data().as_ptr() as usize - all.as_ptr() as usize;
        let part = Part(file.clone(), start..start + view.data().len());
        let data = Data::from_bytes(*dtype, view.shape(), Bytes::new(part))
            .ok_or_else(|| fault(format!("`{name}` has another number of bytes than its shape")))?;
        out.insert(name.to_string(), Tensor(Repr::Held(data)));
    }
    Ok(out)
}

/// Writes tensors to a safetensors file, under another name first.
pub(super) fn write(dict: &IndexMap<String, Tensor>, path: &Path) -> Result<(), Errors> {
    let fault = |what: String| Diag::error("E-NN-054", format!("{}: {what}", path.display()));
    let mut views = Vec::new();
    for (name, t) in dict {
        let Repr::Held(data) = &t.0 else { continue };
        let Some((stored, _)) = TYPES.iter().find(|t| t.1 == data.dtype) else {
            return Err(
                fault(format!("`{name}` has the type {}, which safetensors has not", data.dtype)).into()
            );
        };
        let view = TensorView::new(*stored, data.shape.clone(), data.data.bytes());
        views.push((name.clone(), view.map_err(|e| fault(e.to_string()))?));
    }
    let mut temp = path.as_os_str().to_owned();
    temp.push(format!(".{}.part", std::process::id()));
    let temp = Path::new(&temp);
    serialize_to_file(views, None, temp).map_err(|e| fault(e.to_string()))?;
    std::fs::rename(temp, path).map_err(|e| fault(e.to_string()).into())
}
