//! What callers point to, as references, checked for what can be checked: NULL and alignment. The one place besides the
//! exported functions where raw pointers are followed. What must not be here: what calls do.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::fmt::Display;
use std::marker::PhantomData;
use std::ptr::NonNull;

use tgc_runtime::Code;

use crate::describe::Descriptions;
use crate::session::{Input, Output};
use crate::status::Failure;

#[inline(always)]
fn checked<T>(at: *const T, name: impl Display) -> Result<(), Failure> {
    if at.is_null() || !at.is_aligned() {
        return Err(unusable(at.is_null(), align_of::<T>(), &name));
    }
    Ok(())
}

#[cold]
fn unusable(null: bool, align: usize, name: &dyn Display) -> Failure {
    if null {
        return Failure::usage(format!("`{name}` is NULL"), "give what tgc.h asks for there");
    }
    let text = format!("`{name}` is not aligned to {align} bytes");
    Failure::usage(text, "give the address of an object of its type")
}

/// What `at` points to.
///
/// # Safety
/// If it is neither NULL nor misaligned, `at` points to a `T` that nobody changes during `'a`.
#[inline(always)]
pub(crate) unsafe fn reference<'a, T>(at: *const T, name: impl Display) -> Result<&'a T, Failure> {
    checked(at, name)?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    Ok(unsafe { &*at })
}

/// As `reference`, but NULL is nothing.
///
/// # Safety
/// As for `reference`.
#[inline(always)]
pub(crate) unsafe fn optional<'a, T>(at: *const T, name: impl Display) -> Result<Option<&'a T>, Failure> {
    if at.is_null() {
        return Ok(None);
    }
    // SAFETY: passed on.
    unsafe { reference(at, name) }.map(Some)
}

/// The values at `at`, which may be NULL if there are none.
///
/// # Safety
/// If `len` is not 0 and `at` neither NULL nor misaligned, it points to `len` values that nobody changes during `'a`.
#[inline(always)]
pub(crate) unsafe fn slice<'a, T>(at: *const T, len: usize, name: impl Display) -> Result<&'a [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    checked(at, &name)?;
    room(at.addr(), len.checked_mul(size_of::<T>()), name)?;
    // SAFETY: not NULL, aligned, inside the address space; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(at, len) })
}

/// As `slice`, for values that the call writes.
///
/// # Safety
/// As for `slice`, and nobody else reads the values during `'a` either.
#[inline(always)]
pub(crate) unsafe fn slice_mut<'a, T>(
    at: *mut T,
    len: usize,
    name: impl Display,
) -> Result<&'a mut [T], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    checked(at, &name)?;
    room(at.addr(), len.checked_mul(size_of::<T>()), name)?;
    // SAFETY: not NULL, aligned, inside the address space; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(at, len) })
}

/// Refuses sizes that no object has.
#[inline(always)]
fn room(at: usize, bytes: Option<usize>, name: impl Display) -> Result<(), Failure> {
    let fits = bytes.filter(|b| *b <= isize::MAX as usize).and_then(|b| at.checked_add(b));
    if fits.is_none() { Err(too_large(&name)) } else { Ok(()) }
}

#[cold]
fn too_large(name: &dyn Display) -> Failure {
    let text = format!("`{name}` is said to be larger than the address space");
    Failure::usage(text, "give the size that the object has")
}

/// A C string.
///
/// # Safety
/// If it is not NULL, `at` points to a text that a 0 byte ends, which nobody changes during `'a`.
pub(crate) unsafe fn text<'a>(at: *const c_char, name: impl Display) -> Result<&'a CStr, Failure> {
    checked(at, name)?;
    // SAFETY: not NULL; the rest is the caller's promise.
    Ok(unsafe { CStr::from_ptr(at) })
}

/// A name in UTF-8.
///
/// # Safety
/// As for `text`.
pub(crate) unsafe fn name<'a>(at: *const c_char, name: impl Display) -> Result<&'a str, Failure> {
    // SAFETY: passed on.
    let given = unsafe { text(at, &name) }?;
    given.to_str().map_err(|_| {
        let shown = given.to_string_lossy();
        Failure::usage(format!("`{name}` is not UTF-8: `{shown}`"), "names are UTF-8 texts")
    })
}

// SAFETY: what its pointers lead to is its own and never changes.
unsafe impl Send for Descriptions {}
// SAFETY: as above.
unsafe impl Sync for Descriptions {}

/// Where a result goes.
pub(crate) struct Place<'a, T>(NonNull<T>, PhantomData<&'a mut T>);

impl<T> Place<'_, T> {
    pub(crate) fn put(&mut self, value: T) {
        // SAFETY: made by `place`, whose caller promised room for a `T` as long as this value lives.
        unsafe { self.0.write(value) };
    }
}

/// A place for a result.
///
/// # Safety
/// If it is neither NULL nor misaligned, `at` has room for a `T`, which nobody else touches during `'a`.
#[inline(always)]
pub(crate) unsafe fn place<'a, T>(at: *mut T, name: impl Display) -> Result<Place<'a, T>, Failure> {
    checked(at, name)?;
    // SAFETY: not NULL.
    Ok(Place(unsafe { NonNull::new_unchecked(at) }, PhantomData))
}

/// The buffers of one run, in memory that is kept from run to run.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    inputs: Vec<Option<&'static [u8]>>,
    outputs: Vec<&'static mut [u8]>,
}

impl Buffers {
    /// Room for this many.
    pub(crate) fn new(inputs: usize, outputs: usize) -> Buffers {
        Buffers { inputs: Vec::with_capacity(inputs), outputs: Vec::with_capacity(outputs) }
    }

    /// Calls `run` with the buffers given. `left_out` says which inputs have none.
    ///
    /// # Safety
    /// Inputs point to as many bytes as they say, which nobody changes until this returns, and outputs likewise to bytes
    /// that nobody else touches. (Whether an output overlaps another buffer is checked here.)
    pub(crate) unsafe fn with<R>(
        &mut self,
        inputs: &[Input],
        outputs: &[Output],
        left_out: &[bool],
        run: impl FnOnce(&[Option<&[u8]>], &mut [&mut [u8]]) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        separate(inputs, outputs)?;
        self.clear();
        let kept = Clear(self);
        let Buffers { inputs: ins, outputs: outs } = &mut *kept.0;
        for (i, b) in inputs.iter().enumerate() {
            let absent = b.data.is_null() && b.bytes == 0 && left_out.get(i) == Some(&true);
            // SAFETY: the caller's promise; `Clear` forgets the reference before this function ends, however it ends.
            let bytes = || unsafe { slice::<u8>(b.data.cast(), b.bytes, format_args!("inputs[{i}].data")) };
            ins.push(if absent { None } else { Some(bytes()?) });
        }
        for (i, b) in outputs.iter().enumerate() {
            // SAFETY: as above; `separate` has found no two outputs, nor an input and an output, that overlap.
            outs.push(unsafe { slice_mut::<u8>(b.data.cast(), b.bytes, format_args!("outputs[{i}].data")) }?);
        }
        run(ins, outs)
    }

    fn clear(&mut self) {
        self.inputs.clear();
        self.outputs.clear();
    }
}

/// Forgets the buffers when dropped.
struct Clear<'a>(&'a mut Buffers);

impl Drop for Clear<'_> {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Refuses outputs that overlap an input or another output.
fn separate(inputs: &[Input], outputs: &[Output]) -> Result<(), Failure> {
    // NULL and impossible sizes have diagnostics of their own.
    let there = |b: (usize, usize)| b.0 > 0 && (1..=isize::MAX as usize).contains(&b.1);
    let overlap = |a: (usize, usize), b: (usize, usize)| {
        there(a) && there(b) && a.0 < b.0.saturating_add(b.1) && b.0 < a.0.saturating_add(a.1)
    };
    let refuse = |o: usize, bytes: usize, other: String| {
        let text = format!("outputs[{o}] ({bytes} bytes) overlaps {other} bytes)");
        Err(Failure::new(Code::CallerBuffer, text, "give every output memory of its own"))
    };
    for (o, output) in outputs.iter().enumerate() {
        let this = (output.data.addr(), output.bytes);
        if let Some(i) = inputs.iter().position(|i| overlap(this, (i.data.addr(), i.bytes))) {
            return refuse(o, this.1, format!("inputs[{i}] ({}", inputs[i].bytes));
        }
        if let Some(i) = outputs[..o].iter().position(|i| overlap(this, (i.data.addr(), i.bytes))) {
            return refuse(o, this.1, format!("outputs[{i}] ({}", outputs[i].bytes));
        }
    }
    Ok(())
}
