//! Tensor files: .npy and .npz in, .npz or a folder of .npy out. What must not be here: the .npy format (npy.rs), or what
//! the tensors are for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use tgc_runtime::Tensor;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::fault::{self, ELEMENTS, MALFORMED, NAMES, Result, UNREADABLE, UNWRITABLE, of_file};
use crate::npy::{self, NpyError};

fn explain(path: &Path, e: NpyError) -> Vec<fault::Fault> {
    match e {
        NpyError::Io(e) => of_file(UNREADABLE, path, e, "check the path and its permissions"),
        NpyError::Malformed(what) => {
            of_file(MALFORMED, path, what, "write it again with numpy.save or numpy.savez")
        }
        NpyError::Elements(what) => {
            of_file(ELEMENTS, path, what, "convert the array to a type of the model with .astype(...)")
        }
        NpyError::Runtime(e) => fault::of_runtime(e).into_iter().map(|f| f.of(path)).collect(),
    }
}

fn open(path: &Path) -> Result<(File, Option<u64>)> {
    let opened = File::open(path).and_then(|f| {
        let meta = f.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        Ok((f, meta.is_file().then_some(meta.len())))
    });
    opened.map_err(|e| explain(path, NpyError::Io(e)))
}

/// The tensor in an .npy file.
pub(crate) fn read_npy(path: &Path) -> Result<Tensor> {
    let (file, len) = open(path)?;
    npy::read(&mut BufReader::new(file), len).map_err(|e| explain(path, e))
}

/// The tensors in an .npz file, with their names.
pub(crate) fn read_npz(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let (file, _) = open(path)?;
    let malformed = |e: &dyn std::fmt::Display| {
        of_file(MALFORMED, path, format!("not an .npz file: {e}"), "write it again with numpy.savez")
    };
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|e| malformed(&e))?;
    let mut found = Vec::new();
    for i in 0..archive.len() {
        let mut entry = archive.by_index(i).map_err(|e| malformed(&e))?;
        let file = entry.name().map_err(|e| malformed(&e))?.into_owned();
        let Some(name) = file.strip_suffix(".npy").map(String::from) else {
            return Err(malformed(&format!("`{file}` in it is not an .npy file")));
        };
        let len = entry.size();
        let t = npy::read(&mut entry, Some(len)).map_err(|e| explain(&path.join(&name), e))?;
        found.push((name, t));
    }
    Ok(found)
}

/// Writes one .npz file; entries are stored uncompressed and carry no time, so equal tensors give equal bytes.
pub(crate) fn write_npz(path: &Path, tensors: &[(String, Tensor)]) -> Result<()> {
    replace(path, |out| {
        let mut archive = ZipWriter::new(out);
        for (name, t) in tensors {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Stored)
                .last_modified_time(zip::DateTime::default())
                .large_file(t.bytes().len() >= (u32::MAX - 4096) as usize);
            archive.start_file(format!("{name}.npy"), options)?;
            npy::write(t, &mut archive)?;
        }
        archive.finish()?.flush()
    })
}

/// Writes one .npy file for each tensor into a folder, which is made if need be; returns the files' names.
pub(crate) fn write_folder(path: &Path, tensors: &[(String, Tensor)]) -> Result<Vec<String>> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    let mut files = Vec::new();
    for (name, _) in tensors {
        let file = file_name(name);
        if let Some(other) = taken.insert(file.clone(), name) {
            let text = format!("outputs `{other}` and `{name}` would both be written to {file}");
            return Err(fault::fault(NAMES, text, "write them to an .npz file instead"));
        }
        files.push(file);
    }
    fs::create_dir_all(path)
        .map_err(|e| of_file(UNWRITABLE, path, e, "give a folder that exists or can be made"))?;
    for ((_, t), file) in tensors.iter().zip(&files) {
        replace(&path.join(file), |out| npy::write(t, out).and_then(|()| out.flush()))?;
    }
    Ok(files)
}

/// The file of an output in a folder: no folders in its name, not hidden, no control characters.
pub(crate) fn file_name(name: &str) -> String {
    let clean = |c: char| if c == '/' || c == '\\' || c.is_control() { '_' } else { c };
    let text: String = name.chars().map(clean).collect();
    let hidden = text.is_empty() || text.starts_with('.');
    format!("{}{text}.npy", if hidden { "_" } else { "" })
}

/// Writes a temporary file next to the path and puts it there when it is whole.
fn replace(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let refuse =
        |e: io::Error| of_file(UNWRITABLE, path, e, "check the folder, its permissions and its space");
    let name = path.file_name().ok_or_else(|| refuse(io::Error::from(io::ErrorKind::InvalidInput)))?;
    let mut temporary = name.to_os_string();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary: PathBuf = path.with_file_name(temporary);
    let mut out = BufWriter::new(File::create(&temporary).map_err(refuse)?);
    let done = write(&mut out).and_then(|()| fs::rename(&temporary, path));
    done.map_err(|e| {
        // The file is ours and incomplete; the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        refuse(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_the_folder() {
        assert_eq!(file_name("a/b:0"), "a_b:0.npy");
        assert_eq!(file_name(".."), "_...npy");
        assert_eq!(file_name(""), "_.npy");
        assert_eq!(file_name("x.y-1"), "x.y-1.npy");
    }
}
