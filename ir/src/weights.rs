//! The saved form of a module: its text (`.tgir`) and beside it, under the same name, the big weights (`.safetensors`),
//! mapped and never copied. The text names each weight in the side file by the hash of its bytes.
//!
//! Elements narrower than a byte and the float types that safetensors does not know are stored as U8, a byte each.
//!
//! | code | meaning |
//! |---|---|
//! | E-STORE-001 | a file that cannot be read or written |
//! | E-STORE-002 | a side file that is no valid safetensors file |
//! | E-STORE-003 | text that is not UTF-8 |

use crate::diag::Diag;
use crate::module::Module;
use crate::tensor::{Data, Tensor};
use crate::text::{self, HASHED_AT_ONCE, INLINE_WEIGHT};
use crate::types::DType;
use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, Metadata, TensorView, serialize_to_file};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the module to `path` and its big weights beside it. Each file is written under another name and then renamed,
/// the text last, so that a text always finds the weights it was saved with, or is refused.
pub fn save_module(m: &Module, path: &Path) -> Result<(), Diag> {
    let big: Vec<(&String, &Tensor)> = m.weights.iter().filter(|(_, t)| t.numel() > INLINE_WEIGHT).collect();
    if !big.is_empty() {
        let side = side_file(path);
        let mut views = Vec::with_capacity(big.len());
        for (name, t) in big {
            let view = TensorView::new(stored_as(t.dtype), t.shape.clone(), t.data.bytes())
                .map_err(|e| unwritable(&side, &format!("weight {name:?}: {e}")))?;
            views.push((name, view));
        }
        let temp = temporary(&side);
        serialize_to_file(views, None, &temp).map_err(|e| unwritable(&side, &e.to_string()))?;
        fs::rename(&temp, &side).map_err(|e| unwritable(&side, &e.to_string()))?;
    }
    let temp = temporary(path);
    fs::write(&temp, text::print_module(m)).map_err(|e| unwritable(path, &e.to_string()))?;
    fs::rename(&temp, path).map_err(|e| unwritable(path, &e.to_string()))
}

/// Reads a module. Types and sizes of weights are checked, hashes of those up to 64 MiB; [`check_module`] checks all.
pub fn load_module(path: &Path) -> Result<Module, Vec<Diag>> {
    load(path).map(|p| p.module)
}

/// Reads a module and checks the hash of every weight.
pub fn check_module(path: &Path) -> Result<Module, Vec<Diag>> {
    let p = load(path)?;
    let mut bad = Vec::new();
    for (name, hash) in &p.hashes {
        let Some(t) = p.module.weights.get(name).filter(|t| t.data.bytes().len() > HASHED_AT_ONCE) else {
            continue;
        };
        if !blake3::hash(t.data.bytes()).to_hex().eq_ignore_ascii_case(hash) {
            bad.push(Diag::error(
                "E-TXT-011",
                format!("the bytes of weight {name:?} are not those of the text"),
            ));
        }
    }
    if bad.is_empty() { Ok(p.module) } else { Err(bad) }
}

fn load(path: &Path) -> Result<text::Parsed, Vec<Diag>> {
    let regular = |m: fs::Metadata| match m.is_file() {
        true => Ok(()),
        false => Err(std::io::Error::other("it is not a regular file")),
    };
    let read = fs::metadata(path).and_then(regular).and_then(|()| fs::read(path));
    let bytes = read.map_err(|e| vec![unreadable(path, &e)])?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let m = format!("{}: byte {} is not UTF-8 text", path.display(), e.utf8_error().valid_up_to());
        vec![
            Diag::error("E-STORE-003", m)
                .help("a .tgir file is text; a model in another form has to be imported"),
        ]
    })?;
    let side = side_file(path);
    let store = if side.exists() { Some(Store::open(&side).map_err(|d| vec![d])?) } else { None };
    text::parse_stored(&text, &|name, dtype| store.as_ref().and_then(|s| s.get(name, dtype)))
}

/// Maps a file for reading: big weights of a model stay in it and are never copied.
pub fn map_file(path: &Path) -> std::io::Result<Arc<dyn AsRef<[u8]> + Send + Sync>> {
    Ok(Arc::new(map(path)?))
}

fn map(path: &Path) -> std::io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: the mapping is read-only and private to this process; a file that somebody else changes or shortens
    // while it is in use is outside what any reader of mapped files can guard against, and saving renames instead.
    #[allow(unsafe_code)]
    unsafe {
        Mmap::map(&file)
    }
}

/// A mapped side file.
struct Store {
    map: Arc<Mmap>,
    metadata: Metadata,
    /// Where data begins, after the header.
    base: usize,
}

/// A range of a mapped file.
struct Slice {
    map: Arc<Mmap>,
    start: usize,
    end: usize,
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self.map.get(self.start..self.end).unwrap_or(&[])
    }
}

impl Store {
    fn open(path: &Path) -> Result<Store, Diag> {
        let map = map(path).map_err(|e| unreadable(path, &e))?;
        let (header, metadata) = SafeTensors::read_metadata(&map).map_err(|e| {
            Diag::error("E-STORE-002", format!("{}: {e}", path.display()))
                .help("the side file is damaged or incomplete; save the module again")
        })?;
        Ok(Store { map: Arc::new(map), metadata, base: header + 8 })
    }

    /// The tensor, of type `want` if that is stored in the way this one is.
    fn get(&self, name: &str, want: DType) -> Option<Tensor> {
        let info = self.metadata.info(name)?;
        let dtype = if stored_as(want) == info.dtype {
            want
        } else {
            DType::all().find(|d| stored_as(*d) == info.dtype)?
        };
        let (start, end) = info.data_offsets;
        let (start, end) = (self.base.checked_add(start)?, self.base.checked_add(end)?);
        Tensor::from_bytes(dtype, &info.shape, Data::new(Slice { map: self.map.clone(), start, end }))
    }
}

fn stored_as(d: DType) -> Dtype {
    match d {
        DType::F64 => Dtype::F64,
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F8E4M3FN => Dtype::F8_E4M3,
        DType::F8E5M2 => Dtype::F8_E5M2,
        DType::F8E8M0 => Dtype::F8_E8M0,
        DType::I64 => Dtype::I64,
        DType::I32 => Dtype::I32,
        DType::I16 => Dtype::I16,
        DType::I8 => Dtype::I8,
        DType::U64 => Dtype::U64,
        DType::U32 => Dtype::U32,
        DType::U16 => Dtype::U16,
        DType::Bool => Dtype::BOOL,
        DType::U8 | DType::I4 | DType::I2 | DType::U4 | DType::U2 => Dtype::U8,
        DType::F8E4M3FNUZ | DType::F8E5M2FNUZ | DType::F4E2M1 => Dtype::U8,
    }
}

fn side_file(path: &Path) -> PathBuf {
    path.with_extension("safetensors")
}

fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

fn unreadable(path: &Path, e: &std::io::Error) -> Diag {
    Diag::error("E-STORE-001", format!("{} cannot be read: {e}", path.display()))
}

fn unwritable(path: &Path, why: &str) -> Diag {
    Diag::error("E-STORE-001", format!("{} cannot be written: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::DType;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let dir = std::env::temp_dir().join(format!("tgc-weights-{name}-{}", std::process::id()));
            fs::create_dir_all(&dir).unwrap();
            Folder(dir)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn module() -> Module {
        let mut m = Module::default();
        let ints: Vec<i64> = (0..40).map(|i| i % 8).collect();
        m.weights.insert("small".into(), Tensor::from_f64(DType::F32, &[2], &[1.5, -0.0]));
        m.weights.insert("big".into(), Tensor::from_ints(DType::I64, &[4, 10], &ints));
        m.weights.insert("narrow".into(), Tensor::from_ints(DType::I4, &[40], &ints));
        m
    }

    #[test]
    fn saved_modules_read_back() {
        let dir = Folder::new("back");
        let path = dir.0.join("m.tgir");
        save_module(&module(), &path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("weight \"small\" : f32[2] = dense<[1.5, -0.0]>"), "{text}");
        assert_eq!(fs::read_dir(&dir.0).unwrap().count(), 2);
        assert_eq!(check_module(&path).unwrap().weights, module().weights);
        save_module(&load_module(&path).unwrap(), &path).unwrap();
        assert_eq!(load_module(&path).unwrap().weights, module().weights);
    }

    #[test]
    fn damage_is_found() {
        let dir = Folder::new("damage");
        let path = dir.0.join("m.tgir");
        let side = path.with_extension("safetensors");
        let code = || load_module(&path).unwrap_err()[0].code;
        assert_eq!(code(), "E-STORE-001");
        save_module(&module(), &path).unwrap();
        let good = fs::read(&side).unwrap();
        let mut flipped = good.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(&side, &flipped).unwrap();
        assert_eq!(code(), "E-TXT-011");
        fs::write(&side, &good[..good.len() - 1]).unwrap();
        assert_eq!(code(), "E-STORE-002");
        fs::write(&side, []).unwrap();
        assert!(matches!(code(), "E-STORE-001" | "E-STORE-002"));
        fs::remove_file(&side).unwrap();
        assert_eq!(code(), "E-TXT-011");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(code(), "E-STORE-003");
    }
}
