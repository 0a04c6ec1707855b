//! An opened artifact with its descriptions. What must not be here: pointers of callers.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use tgc_runtime::Loader;

use crate::describe::{Descriptions, Entry};
use crate::status::Failure;

/// `tgc_model`.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) runtime: Arc<tgc_runtime::Model>,
    pub(crate) described: Arc<Descriptions>,
}

impl Model {
    fn new(runtime: Arc<tgc_runtime::Model>) -> Model {
        let described = Arc::new(Descriptions::new(runtime.manifest()));
        Model { runtime, described }
    }

    pub(crate) fn open(path: &CStr) -> Result<Model, Failure> {
        let path = Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        Ok(Model::new(Loader::default().open(path)?))
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Model, Failure> {
        Ok(Model::new(Loader::default().from_bytes(bytes)?))
    }

    pub(crate) fn entry(&self, index: usize) -> Result<&Entry, Failure> {
        let entries = &self.described.entries;
        entries.get(index).ok_or_else(|| {
            let text = format!("there is no entry {index}; the model has {}", entries.len());
            Failure::usage(text, "count from 0 to below tgc_model_entry_count")
        })
    }

    /// The place of the entry of this name, or of the only one.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<usize, Failure> {
        use tgc_runtime::Code;
        let names: Vec<&str> = self.runtime.manifest().entries.iter().map(|e| e.name.as_str()).collect();
        let found = match name {
            Some(name) => names.iter().position(|n| *n == name),
            None => (names.len() == 1).then_some(0),
        };
        found.ok_or_else(|| {
            let what = match name {
                Some(name) => format!("there is no entry `{name}`"),
                None => format!("no entry is named, and the model has {}", names.len()),
            };
            Failure::new(Code::EntryName, what, format!("the artifact has: {}", names.join(", ")))
        })
    }
}
