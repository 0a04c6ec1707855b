//! Tensors of a model file: element types, the many places ONNX keeps elements in, external data. Big payloads stay
//! where they are (views into the file); declared lengths are believed only after comparing them with the data.

use super::check::Res;
use bytes::Bytes;
use sha1::{Digest, Sha1};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tgc_ir::diag::Diag;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::DType;
use tgc_proto::TensorProto;
use tgc_proto::tensor_proto::{DataLocation, DataType};

/// The element type of an ONNX type code, or its name when there is none here.
pub(crate) fn dtype(code: i32) -> Result<DType, String> {
    let Ok(t) = DataType::try_from(code) else { return Err(format!("unknown type code {code}")) };
    Ok(match t {
        DataType::Float => DType::F32,
        DataType::Double => DType::F64,
        DataType::Float16 => DType::F16,
        DataType::Bfloat16 => DType::BF16,
        DataType::Float8e4m3fn => DType::F8E4M3FN,
        DataType::Float8e4m3fnuz => DType::F8E4M3FNUZ,
        DataType::Float8e5m2 => DType::F8E5M2,
        DataType::Float8e5m2fnuz => DType::F8E5M2FNUZ,
        DataType::Float8e8m0 => DType::F8E8M0,
        DataType::Float4e2m1 => DType::F4E2M1,
        DataType::Int64 => DType::I64,
        DataType::Int32 => DType::I32,
        DataType::Int16 => DType::I16,
        DataType::Int8 => DType::I8,
        DataType::Int4 => DType::I4,
        DataType::Int2 => DType::I2,
        DataType::Uint64 => DType::U64,
        DataType::Uint32 => DType::U32,
        DataType::Uint16 => DType::U16,
        DataType::Uint8 => DType::U8,
        DataType::Uint4 => DType::U4,
        DataType::Uint2 => DType::U2,
        DataType::Bool => DType::Bool,
        other => return Err(other.as_str_name().to_string()),
    })
}

/// [`dtype`] with a diagnostic.
pub(crate) fn dtype_of(code: i32) -> Res<DType> {
    dtype(code).map_err(|name| {
        Diag::error("E-ONNX-008", format!("element type {name} is not supported"))
            .note(format!("supported: {}", DType::all().map(|d| d.name()).collect::<Vec<_>>().join(", ")))
            .help("convert the tensor to a supported type in the exporting program")
            .into()
    })
}

/// Reads tensors; keeps external files open between them.
pub(crate) struct Reader {
    folder: Option<PathBuf>,
    files: BTreeMap<PathBuf, Bytes>,
    /// SHA-1 of data files whose model says what it must be.
    digests: BTreeMap<String, [u8; 20]>,
}

impl Reader {
    /// External data is looked up in `folder`; without one there is none.
    pub(crate) fn new(folder: Option<&Path>) -> Reader {
        Reader { folder: folder.map(Path::to_path_buf), files: BTreeMap::new(), digests: BTreeMap::new() }
    }

    /// The tensor, with its elements checked against its type and dims.
    pub(crate) fn tensor(&mut self, t: &TensorProto) -> Res<Tensor> {
        let bad = |m: String| {
            Diag::error("E-ONNX-014", m).help("the file is damaged or was written by a faulty exporter")
        };
        let dtype = dtype_of(t.data_type.unwrap_or(0))?;
        let dims: Option<Vec<usize>> = t.dims.iter().map(|&d| usize::try_from(d).ok()).collect();
        let Some(dims) = dims else {
            return Err(bad(format!("dims {:?} hold a negative number", t.dims)).into());
        };
        if dims.len() > crate::limits::MAX_RANK {
            return Err(
                bad(format!("{} axes; at most {} are allowed", dims.len(), crate::limits::MAX_RANK)).into()
            );
        }
        let numel = dims.iter().try_fold(1usize, |a, &d| a.checked_mul(d)).filter(|n| *n < usize::MAX / 64);
        let Some(numel) = numel else { return Err(bad(format!("dims {dims:?} are too large")).into()) };
        if t.segment.is_some() {
            return Err(bad("tensors in segments are not supported".to_string()).into());
        }
        let raw = match t.data_location {
            Some(l) if l == DataLocation::External as i32 => Some(self.external(t)?),
            _ => t.raw_data.clone(),
        };
        let elements = match raw {
            Some(r) if !r.is_empty() || typed_len(t) == 0 => from_raw(dtype, numel, r),
            _ => from_fields(dtype, numel, t),
        };
        let (found, data) = match elements {
            Ok(d) => (numel * dtype.size(), Some(d)),
            Err(found) => (found, None),
        };
        match data.and_then(|d| Tensor::from_bytes(dtype, &dims, d)) {
            Some(t) => Ok(t),
            None => Err(bad(format!(
                "{dtype}{dims:?} has {numel} elements, but the data given ({found}) does not fit"
            ))
            .into()),
        }
    }

    fn external(&mut self, t: &TensorProto) -> Res<Bytes> {
        let bad = |m: String| Diag::error("E-ONNX-015", m);
        let key = |k: &str| {
            let entry = t.external_data.iter().find(|e| e.key.as_deref() == Some(k));
            entry.and_then(|e| e.value.as_deref())
        };
        let Some(location) = key("location") else {
            return Err(bad("external data without a location".to_string()).into());
        };
        let number = |k: &str| -> Res<Option<usize>> {
            let Some(v) = key(k) else { return Ok(None) };
            Ok(Some(v.trim().parse().map_err(|_| bad(format!("external data: {k} `{v}` is no size")))?))
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let file = self.open(location)?;
        if let Some(want) = key("checksum") {
            let digest =
                *self.digests.entry(location.to_string()).or_insert_with(|| Sha1::digest(&file).into());
            let found: String = digest.iter().map(|b| format!("{b:02x}")).collect();
            if !found.eq_ignore_ascii_case(want.trim()) {
                let m = format!("external data `{location}` has the SHA-1 {found}, the model says {want}");
                return Err(bad(m).help("the data file is damaged or belongs to another model").into());
            }
        }
        let end = length.map_or(Some(file.len()), |l| offset.checked_add(l));
        match end {
            Some(end) if offset <= end && end <= file.len() => Ok(file.slice(offset..end)),
            _ => {
                let len = length.map_or("to the end".to_string(), |l| format!("{l} bytes"));
                let m = format!(
                    "external data `{location}`: {len} from offset {offset} wanted, the file has {} bytes",
                    file.len()
                );
                Err(bad(m).help("the data file is truncated or belongs to another model").into())
            }
        }
    }

    /// Opens a data file, which must lie in the model's folder.
    fn open(&mut self, location: &str) -> Res<Bytes> {
        let bad = |m: String| {
            Diag::error("E-ONNX-015", format!("external data `{location}`: {m}"))
                .help("external data must lie in the model's own folder, named by a relative path")
        };
        let Some(folder) = &self.folder else {
            return Err(bad("this model was not read from a file, so it has no folder".to_string()).into());
        };
        let plain =
            Path::new(location).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if !plain || location.is_empty() || location.contains('\0') {
            return Err(bad("the path leaves the model's folder".to_string()).into());
        }
        let io = |e: std::io::Error| bad(format!("cannot be read: {e}"));
        let root = fs::canonicalize(folder).map_err(io)?;
        let path = fs::canonicalize(root.join(location)).map_err(io)?;
        if !path.starts_with(&root) {
            return Err(bad("a link leads out of the model's folder".to_string()).into());
        }
        if let Some(b) = self.files.get(&path) {
            return Ok(b.clone());
        }
        let bytes = map_file(&path).map_err(io)?;
        self.files.insert(path, bytes.clone());
        Ok(bytes)
    }
}

/// The bytes of a file, mapped.
pub(crate) fn map_file(path: &Path) -> std::io::Result<Bytes> {
    struct Owner(Arc<dyn AsRef<[u8]> + Send + Sync>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            (*self.0).as_ref()
        }
    }
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    Ok(Bytes::from_owner(Owner(tgc_ir::weights::map_file(path)?)))
}

fn typed_len(t: &TensorProto) -> usize {
    t.float_data.len() + t.int32_data.len() + t.int64_data.len() + t.double_data.len() + t.uint64_data.len()
}

/// Elements from raw bytes; the number of bytes when it does not fit.
fn from_raw(dtype: DType, numel: usize, raw: Bytes) -> Result<Data, usize> {
    let bits = dtype.bits() as usize;
    if raw.len() != (numel * bits).div_ceil(8) {
        return Err(raw.len());
    }
    if bits < 8 {
        return Ok(Data::new(unpack(bits, numel, raw.iter().copied())));
    }
    if dtype == DType::Bool && raw.iter().any(|b| *b > 1) {
        return Ok(Data::new(raw.iter().map(|b| u8::from(*b != 0)).collect::<Vec<u8>>()));
    }
    Ok(Data::new(raw))
}

/// One element a byte, from bytes that hold several, lowest bits first.
fn unpack(bits: usize, numel: usize, bytes: impl Iterator<Item = u8>) -> Vec<u8> {
    let mask = ((1u16 << bits) - 1) as u8;
    bytes.flat_map(|b| (0..8 / bits).map(move |i| (b >> (i * bits)) & mask)).take(numel).collect()
}

/// Elements from the field that belongs to the type; the number of entries when it does not fit.
fn from_fields(dtype: DType, numel: usize, t: &TensorProto) -> Result<Data, usize> {
    fn all<T: Copy, const N: usize>(v: &[T], numel: usize, f: impl Fn(T) -> [u8; N]) -> Result<Data, usize> {
        if v.len() != numel {
            return Err(v.len());
        }
        Ok(Data::new(v.iter().flat_map(|&x| f(x)).collect::<Vec<u8>>()))
    }
    match dtype {
        DType::F32 => all(&t.float_data, numel, f32::to_le_bytes),
        DType::F64 => all(&t.double_data, numel, f64::to_le_bytes),
        DType::I64 => all(&t.int64_data, numel, i64::to_le_bytes),
        DType::U64 => all(&t.uint64_data, numel, u64::to_le_bytes),
        DType::U32 => all(&t.uint64_data, numel, |x| (x as u32).to_le_bytes()),
        DType::I32 => all(&t.int32_data, numel, i32::to_le_bytes),
        DType::Bool => all(&t.int32_data, numel, |x| [u8::from(x != 0)]),
        d if d.size() == 2 => all(&t.int32_data, numel, |x| (x as u16).to_le_bytes()),
        d if d.bits() == 8 => all(&t.int32_data, numel, |x| [x as u8]),
        d => {
            let bits = d.bits() as usize;
            if t.int32_data.len() != (numel * bits).div_ceil(8) {
                return Err(t.int32_data.len());
            }
            Ok(Data::new(unpack(bits, numel, t.int32_data.iter().map(|&x| x as u8))))
        }
    }
}
