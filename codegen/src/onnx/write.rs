//! An exported model as bytes and files: where weights go, and what one protobuf message can hold.

use super::Exported;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use tgc_ir::diag::Diag;
use tgc_proto::tensor_proto::DataLocation;
use tgc_proto::{Message, ModelProto, StringStringEntryProto, TensorProto};

/// Where the weights of a model go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum External {
    /// Into the model's file, or beside it where they are more than a file can hold.
    #[default]
    Auto,
    /// Into a file beside the model's: `model.onnx.data`.
    Always,
    /// Into the model's file.
    Never,
}

/// A protobuf message is shorter than this.
const MOST: usize = (1 << 31) - 1;

/// Tensors below this size stay in the model's file: they are read for shapes, and cost more as a reference.
const SMALL: usize = 1024;

/// Offsets of tensors in the file beside the model's: pages, for those that fill one, so that they can be mapped.
const PAGE: u64 = 4096;
const LINE: u64 = 64;

impl Exported {
    /// The model as one message, whatever its options say of weights.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Diag> {
        let size = self.model.encoded_len();
        if size > MOST {
            let m = format!("the model has {size} bytes, one file holds less than 2^31");
            return Err(Diag::error("E-EXP-006", m).help("put the weights beside it: --external-data=auto"));
        }
        Ok(self.model.encode_to_vec())
    }

    /// Writes the model as `name` into `folder`, its weights beside it where they go there. Gives the names of the files, the
    /// model's last. Nothing is left if it fails.
    pub fn write(&self, folder: &Path, name: &str) -> Result<Vec<String>, Diag> {
        let beside = match self.external {
            External::Always => true,
            External::Never => false,
            External::Auto => self.model.encoded_len() > MOST,
        };
        let mut files = Vec::new();
        let bytes = if beside {
            let data = format!("{name}.data");
            files.push(data.clone());
            self.split(folder, &data).and_then(|m| Exported { model: m, external: self.external }.to_bytes())
        } else {
            self.to_bytes()
        };
        files.push(name.to_string());
        let done = bytes.and_then(|b| {
            let path = folder.join(name);
            fs::write(&path, b).map_err(|e| unwritable(&path, &e))
        });
        done.map(|()| files.clone()).inspect_err(|_| {
            for f in &files {
                // what is left of a file that could not be written; the error that matters is the first one
                let _ = fs::remove_file(folder.join(f));
            }
        })
    }

    /// Writes the tensors that are not small to `data`; the model that refers to them. None, and so no file, is fine.
    fn split(&self, folder: &Path, data: &str) -> Result<ModelProto, Diag> {
        let path = folder.join(data);
        let io = |e: std::io::Error| unwritable(&path, &e);
        let mut out = BufWriter::new(File::create(&path).map_err(io)?);
        let mut model = self.model.clone();
        let mut at = 0u64;
        for t in model.graph.iter_mut().flat_map(|g| &mut g.initializer) {
            let Some(raw) = t.raw_data.take_if(|r| r.len() >= SMALL) else { continue };
            let step = if raw.len() as u64 >= PAGE { PAGE } else { LINE };
            let start = at.next_multiple_of(step);
            out.write_all(&vec![0; (start - at) as usize]).and_then(|()| out.write_all(&raw)).map_err(io)?;
            refer(t, data, start, &raw);
            at = start + raw.len() as u64;
        }
        out.flush().map_err(io)?;
        Ok(model)
    }
}

fn refer(t: &mut TensorProto, data: &str, offset: u64, raw: &Bytes) {
    let pair = |k: &str, v: String| StringStringEntryProto { key: Some(k.to_string()), value: Some(v) };
    t.data_location = Some(DataLocation::External as i32);
    t.external_data = vec![
        pair("location", data.to_string()),
        pair("offset", offset.to_string()),
        pair("length", raw.len().to_string()),
    ];
}

fn unwritable(path: &Path, e: &std::io::Error) -> Diag {
    Diag::error("E-EXP-006", format!("{} cannot be written: {e}", path.display()))
}
