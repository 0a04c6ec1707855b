//! A session as C calls it: one thread at a time, unusable once a panic passed through. What must not be here: pointers of
//! callers; what the runtime's session does.

use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, TryLockError};

use tgc_runtime::{Code, Fault, SessionOptions, Tensor};

use crate::describe::Entry;
use crate::model::Model;
use crate::pointers::Buffers;
use crate::status::Failure;

/// `TGC_LEFT_OUT`.
pub(crate) const LEFT_OUT: usize = usize::MAX;

/// `tgc_session_options`.
#[repr(C)]
pub struct Options {
    pub struct_size: usize,
    pub threads: usize,
    pub memory_limit: u64,
}

/// `tgc_shape`.
#[repr(C)]
pub struct Shape {
    pub rank: usize,
    pub dims: *const i64,
}

/// `tgc_input`.
#[repr(C)]
pub struct Input {
    pub data: *const c_void,
    pub bytes: usize,
}

/// `tgc_output`.
#[repr(C)]
pub struct Output {
    pub data: *mut c_void,
    pub bytes: usize,
}

/// `tgc_session`.
pub struct Session {
    model: Model,
    entry: usize,
    state: Mutex<State>,
}

/// What only one thread at a time may touch.
pub(crate) struct State {
    pub(crate) session: tgc_runtime::Session,
    pub(crate) buffers: Buffers,
    /// Inputs that were bound to their defaults.
    pub(crate) left_out: Vec<bool>,
    /// Outputs of the last run that made them.
    pub(crate) owned: Vec<(String, Tensor)>,
}

/// Choices as the runtime takes them.
pub(crate) fn options(given: Option<&Options>) -> Result<SessionOptions, Failure> {
    let Some(given) = given else { return Ok(SessionOptions::default()) };
    let size = size_of::<Options>();
    if given.struct_size != size {
        let text = format!("`options` is said to have {} bytes, allowed {size}", given.struct_size);
        return Err(Failure::usage(
            text,
            "start from TGC_SESSION_OPTIONS_INIT, and use the tgc.h of the library's release",
        ));
    }
    Ok(SessionOptions {
        threads: Some(given.threads).filter(|n| *n > 0),
        pool: None,
        mem_limit: Some(given.memory_limit).filter(|n| *n > 0),
    })
}

impl Session {
    pub(crate) fn open(
        model: &Model,
        entry: Option<&str>,
        options: &SessionOptions,
    ) -> Result<Session, Failure> {
        let entry = model.find(entry)?;
        let declared = &model.runtime.manifest().entries[entry];
        let session = tgc_runtime::Session::new(&model.runtime, &declared.name, options)?;
        let state = State {
            session,
            buffers: Buffers::new(declared.inputs.len(), declared.outputs.len()),
            left_out: vec![false; declared.inputs.len()],
            owned: Vec::new(),
        };
        Ok(Session { model: model.clone(), entry, state: Mutex::new(state) })
    }

    pub(crate) fn entry(&self) -> &Entry {
        &self.model.described.entries[self.entry]
    }

    pub(crate) fn declared(&self) -> &tgc_runtime::Entry {
        &self.model.runtime.manifest().entries[self.entry]
    }

    /// The session for one call.
    pub(crate) fn take(&self) -> Result<MutexGuard<'_, State>, Failure> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::WouldBlock) => Err(Failure::usage(
                "the session is in use by another thread",
                "give every thread a session of its own; the model can be shared",
            )),
            Err(TryLockError::Poisoned(_)) => {
                let text = "an earlier call of this session ended in a bug of the runtime";
                Err(Failure::bug(text, "close the session and open another"))
            }
        }
    }

    /// Checks that there is one of them for each port.
    pub(crate) fn counts(&self, what: &str, found: usize, of: &[tgc_runtime::Port]) -> Result<(), Failure> {
        if found == of.len() {
            return Ok(());
        }
        Err(miscounted(what, found, of))
    }

    /// Checks that there is an output at an index, and that it has this rank.
    pub(crate) fn output(&self, index: usize, rank: usize) -> Result<(), Failure> {
        let outputs = &self.declared().outputs;
        let Some(port) = outputs.get(index) else {
            let text = format!("there is no output {index}; the entry has {}", outputs.len());
            return Err(Failure::usage(text, "count from 0 to below `output_count`"));
        };
        if port.dims.len() != rank {
            let text =
                format!("output `{}` has rank {}, room is given for {rank} dims", port.name, port.dims.len());
            return Err(Failure::usage(text, "give room for as many dims as its description has"));
        }
        Ok(())
    }

    /// Writes the shape of an output that there is.
    pub(crate) fn output_shape(&self, index: usize, dims: &mut [i64]) -> Result<(), Failure> {
        let state = self.take()?;
        if state.session.program().is_none() {
            return Err(unbound());
        }
        let Some(shape) = state.session.output_shape(index) else {
            let text =
                format!("the shape of output `{}` depends on data", self.declared().outputs[index].name);
            return Err(Failure::new(Code::CallerBuffer, text, "run it with tgc_session_run_owned"));
        };
        write(shape, dims);
        Ok(())
    }

    /// Writes the shape of an output of the last run that made them, and gives its bytes.
    pub(crate) fn owned_output(&self, index: usize, dims: &mut [i64]) -> Result<(*const u8, usize), Failure> {
        let state = self.take()?;
        let Some((_, tensor)) = state.owned.get(index) else {
            return Err(Failure::usage(
                "the session holds no outputs",
                "call tgc_session_run_owned first; after it fails there are none",
            ));
        };
        write(tensor.shape(), dims);
        Ok((tensor.bytes().as_ptr(), tensor.bytes().len()))
    }
}

#[cold]
fn miscounted(what: &str, found: usize, of: &[tgc_runtime::Port]) -> Failure {
    let names: Vec<String> = of.iter().map(|p| format!("`{}`", p.name)).collect();
    let text = format!("{found} {what} given, allowed {}: {}", of.len(), names.join(", "));
    Failure::usage(text, "give one for each, in the entry's order")
}

fn unbound() -> Failure {
    Failure::usage("the session is not bound to input shapes", "call tgc_session_bind first")
}

fn write(shape: &[usize], dims: &mut [i64]) {
    for (to, from) in dims.iter_mut().zip(shape) {
        *to = i64::try_from(*from).unwrap_or(i64::MAX);
    }
}

/// What is wrong with shapes of these ranks (`None`: left out), without a look at their sizes.
pub(crate) fn check_ranks(entry: &tgc_runtime::Entry, ranks: &[Option<usize>]) -> Result<(), Failure> {
    let names: Vec<&str> = entry.symbols.iter().map(|s| s.name.as_str()).collect();
    let wrong = entry.inputs.iter().zip(ranks).filter_map(|(p, rank)| {
        let rank = rank.filter(|r| *r != p.dims.len())?;
        let dims: Vec<String> = p.dims.iter().map(|d| d.show(&names)).collect();
        Some(Fault {
            code: Code::InputRank,
            message: format!("input `{}`: a shape of rank {rank} is given, allowed {}", p.name, dims.len()),
            help: format!("give a shape [{}]", dims.join(", ")),
        })
    });
    Failure::collect(wrong.collect())
}

/// Sizes as the runtime takes them.
pub(crate) fn sizes(
    entry: &tgc_runtime::Entry,
    shapes: &[Option<&[i64]>],
) -> Result<Vec<Option<Vec<usize>>>, Failure> {
    let mut faults = Vec::new();
    let mut sizes = Vec::new();
    for (port, dims) in entry.inputs.iter().zip(shapes) {
        for (axis, d) in dims.iter().flat_map(|d| d.iter()).enumerate().filter(|(_, d)| **d < 0) {
            faults.push(Fault {
                code: Code::InputDim,
                message: format!("input `{}`: axis {axis} is {d}", port.name),
                help: "sizes are not negative".into(),
            });
        }
        sizes.push(dims.map(|d| d.iter().map(|v| usize::try_from(*v).unwrap_or(0)).collect()));
    }
    Failure::collect(faults)?;
    Ok(sizes)
}

impl State {
    /// Binds to the sizes given.
    pub(crate) fn bind(&mut self, sizes: &[Option<Vec<usize>>]) -> Result<(), Failure> {
        let names: Vec<String> = self.session.entry().inputs.iter().map(|p| p.name.clone()).collect();
        let given: Vec<(&str, &[usize])> =
            names.iter().zip(sizes).filter_map(|(n, s)| Some((n.as_str(), s.as_deref()?))).collect();
        self.session.bind(&given)?;
        for (to, s) in self.left_out.iter_mut().zip(sizes) {
            *to = s.is_none();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smallest artifact: no inputs, no outputs, no code that runs.
    fn session() -> Session {
        let variant = tgc_runtime::Variant { when: None, body: Ok(tgc_runtime::Program::default()) };
        let entry = tgc_runtime::Entry { name: "none".into(), variants: vec![variant], ..Default::default() };
        let image = tgc_runtime::Image {
            target: "any".into(),
            arch: std::env::consts::ARCH.into(),
            ..Default::default()
        };
        let m = tgc_runtime::Manifest { entries: vec![entry], images: vec![image], ..Default::default() };
        let mut out = std::io::Cursor::new(Vec::new());
        tgc_runtime::write(&m, &[&[0xc3]], &mut |_, _| Ok(()), &mut out).unwrap();
        let model = Model::from_bytes(out.get_ref()).unwrap();
        Session::open(&model, None, &SessionOptions::default()).unwrap()
    }

    #[test]
    fn a_session_in_use_refuses_other_calls() {
        let session = session();
        session.take().unwrap().bind(&[]).unwrap();
        let held = session.take().unwrap();
        let refused = session.take().err().unwrap();
        assert_eq!(refused.status, crate::status::number(Code::Usage));
        assert!(refused.text.contains("in use by another thread"), "{}", refused.text);
        drop(held);
        assert!(session.take().is_ok());
    }

    #[test]
    fn a_session_that_panicked_refuses_other_calls() {
        let session = session();
        let died = crate::status::status(|| {
            let _held = session.take()?;
            panic!("in the middle of a call")
        });
        let refused = session.take().err().unwrap();
        assert_eq!((died, refused.status), (crate::status::BUG, crate::status::BUG));
        assert!(refused.text.contains("close the session"), "{}", refused.text);
    }
}
