//! The functions of `tgc.h`. Each makes references of what its caller points to and leaves the rest to safe code; all that
//! can fail runs inside `status` or `value`, where panics stop. What must not be here: anything else.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};

use tgc_runtime::Code;

use crate::describe::{self, DType, ELEMENTS, Entry, Port};
use crate::model::Model;
use crate::pointers::{name, optional, place, reference, slice, slice_mut, text};
use crate::session::{self, Input, LEFT_OUT, Options, Output, Session, Shape, State};
use crate::status::{self, Failure, Status, status, value};

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tgc_last_error() -> *const c_char {
    status::last()
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tgc_abi_version() -> u32 {
    crate::ABI_VERSION
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tgc_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub extern "C" fn tgc_dtype_size(dtype: DType) -> usize {
    value(0, || {
        let found = usize::try_from(dtype).ok().and_then(|i| ELEMENTS.get(i));
        let unknown = || Failure::usage(format!("there is no element type {dtype}"), "use a tgc_dtype");
        found.map(|e| e.size()).ok_or_else(unknown)
    })
}

/// Finds a port by name.
///
/// # Safety
/// `ports` points to `count` pointers to ports, all as the library made them.
unsafe fn find(
    kind: &str,
    code: Code,
    (ports, count): (*const *const Port, usize),
    wanted: &str,
) -> Result<usize, Failure> {
    // SAFETY: this function's contract.
    let ports = unsafe { slice(ports, count, kind) }?;
    let mut names: Vec<&CStr> = Vec::with_capacity(ports.len());
    for port in ports {
        // SAFETY: as above.
        names.push(unsafe { text(reference(*port, kind)?.name, kind) }?);
    }
    describe::find(&names, wanted)
        .map_err(|known| Failure::new(code, format!("there is no {kind} `{wanted}`"), known))
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_entry_input(
    entry: *const Entry,
    name: *const c_char,
    index: *mut usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let (entry, name, mut to) =
            unsafe { (reference(entry, "entry")?, self::name(name, "name")?, place(index, "index")?) };
        // SAFETY: entries are made by the library.
        to.put(unsafe { find("input", Code::InputName, (entry.inputs, entry.input_count), name) }?);
        Ok(())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_entry_output(
    entry: *const Entry,
    name: *const c_char,
    index: *mut usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let (entry, name, mut to) =
            unsafe { (reference(entry, "entry")?, self::name(name, "name")?, place(index, "index")?) };
        // SAFETY: entries are made by the library.
        to.put(unsafe { find("output", Code::Usage, (entry.outputs, entry.output_count), name) }?);
        Ok(())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_model_open(path: *const c_char, model: *mut *mut Model) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let mut to = unsafe { place(model, "model") }?;
        to.put(null_mut());
        // SAFETY: as above.
        let path = unsafe { text(path, "path") }?;
        to.put(Box::into_raw(Box::new(Model::open(path)?)));
        Ok(())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_model_open_memory(
    bytes: *const c_void,
    size: usize,
    model: *mut *mut Model,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let mut to = unsafe { place(model, "model") }?;
        to.put(null_mut());
        // SAFETY: as above.
        let bytes = unsafe { slice::<u8>(bytes.cast(), size, "bytes") }?;
        to.put(Box::into_raw(Box::new(Model::from_bytes(bytes)?)));
        Ok(())
    })
}

/// Drops what a box of ours holds.
///
/// # Safety
/// `at` is NULL or was made by `Box::into_raw`, and is used no more.
unsafe fn close<T>(at: *mut T) {
    if !at.is_null() {
        value((), || {
            // SAFETY: this function's contract.
            drop(unsafe { Box::from_raw(at) });
            Ok(())
        });
    }
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_model_close(model: *mut Model) {
    // SAFETY: the caller's duty, as tgc.h has it.
    unsafe { close(model) }
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_model_entry_count(model: *const Model) -> usize {
    value(0, || {
        // SAFETY: the caller's duty, as tgc.h has it.
        Ok(unsafe { reference(model, "model") }?.described.entries.len())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_model_entry(model: *const Model, index: usize) -> *const Entry {
    value(null(), || {
        // SAFETY: the caller's duty, as tgc.h has it.
        Ok(std::ptr::from_ref(unsafe { reference(model, "model") }?.entry(index)?))
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_open(
    model: *const Model,
    entry: *const c_char,
    options: *const Options,
    session: *mut *mut Session,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let mut to = unsafe { place(session, "session") }?;
        to.put(null_mut());
        // SAFETY: as above.
        let (model, options) = unsafe { (reference(model, "model")?, optional(options, "options")?) };
        // SAFETY: as above.
        let entry = if entry.is_null() { None } else { Some(unsafe { name(entry, "entry") }?) };
        let made = Session::open(model, entry, &session::options(options)?)?;
        to.put(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_close(session: *mut Session) {
    // SAFETY: the caller's duty, as tgc.h has it.
    unsafe { close(session) }
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_entry(session: *const Session) -> *const Entry {
    value(null(), || {
        // SAFETY: the caller's duty, as tgc.h has it.
        Ok(std::ptr::from_ref(unsafe { reference(session, "session") }?.entry()))
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_bind(
    session: *mut Session,
    shapes: *const Shape,
    count: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let session = unsafe { reference(session, "session") }?;
        let entry = session.declared();
        session.counts("shapes", count, &entry.inputs)?;
        let mut state = session.take()?;
        // SAFETY: as above.
        let shapes = unsafe { slice(shapes, count, "shapes") }?;
        let ranks: Vec<Option<usize>> =
            shapes.iter().map(|s| Some(s.rank).filter(|r| *r != LEFT_OUT)).collect();
        session::check_ranks(entry, &ranks)?;
        let mut dims: Vec<Option<&[i64]>> = Vec::with_capacity(count);
        for (i, (shape, rank)) in shapes.iter().zip(ranks).enumerate() {
            // SAFETY: as above.
            let read = |r| unsafe { slice(shape.dims, r, format_args!("shapes[{i}].dims")) };
            dims.push(rank.map(read).transpose()?);
        }
        state.bind(&session::sizes(entry, &dims)?)
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_output_shape(
    session: *const Session,
    index: usize,
    dims: *mut i64,
    rank: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let session = unsafe { reference(session, "session") }?;
        session.output(index, rank)?;
        // SAFETY: as above.
        session.output_shape(index, unsafe { slice_mut(dims, rank, "dims") }?)
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_run(
    session: *mut Session,
    inputs: *const Input,
    input_count: usize,
    outputs: *const Output,
    output_count: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let session = unsafe { reference(session, "session") }?;
        session.counts("inputs", input_count, &session.declared().inputs)?;
        session.counts("outputs", output_count, &session.declared().outputs)?;
        let mut state = session.take()?;
        let State { session, buffers, left_out, .. } = &mut *state;
        // SAFETY: as above.
        let (ins, outs) =
            unsafe { (slice(inputs, input_count, "inputs")?, slice(outputs, output_count, "outputs")?) };
        // SAFETY: as above.
        unsafe { buffers.with(ins, outs, left_out, |ins, outs| Ok(session.run(ins, outs)?)) }
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_run_owned(
    session: *mut Session,
    inputs: *const Input,
    input_count: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let session = unsafe { reference(session, "session") }?;
        session.counts("inputs", input_count, &session.declared().inputs)?;
        let mut state = session.take()?;
        let State { session, buffers, left_out, owned } = &mut *state;
        owned.clear();
        // SAFETY: as above.
        let ins = unsafe { slice(inputs, input_count, "inputs") }?;
        // SAFETY: as above.
        *owned = unsafe { buffers.with(ins, &[], left_out, |ins, _| Ok(session.run_bound(ins)?)) }?;
        Ok(())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_owned_output(
    session: *const Session,
    index: usize,
    data: *mut *const c_void,
    bytes: *mut usize,
    dims: *mut i64,
    rank: usize,
) -> Status {
    status(|| {
        // SAFETY: the caller's duty, as tgc.h has it.
        let (session, mut data_to, mut bytes_to) =
            unsafe { (reference(session, "session")?, place(data, "data")?, place(bytes, "bytes")?) };
        session.output(index, rank)?;
        // SAFETY: as above.
        let (at, len) = session.owned_output(index, unsafe { slice_mut(dims, rank, "dims") }?)?;
        data_to.put(at.cast());
        bytes_to.put(len);
        Ok(())
    })
}

/// See `tgc.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tgc_session_memory(session: *const Session) -> u64 {
    value(0, || {
        // SAFETY: the caller's duty, as tgc.h has it.
        Ok(unsafe { reference(session, "session") }?.take()?.session.memory())
    })
}
