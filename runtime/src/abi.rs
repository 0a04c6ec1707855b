//! The binary interface between the executor and compiled kernels, and the raw pointer type that carries buffers across it.
//! What must not be here: policy (who calls what, when), or anything that dereferences a pointer.
#![allow(unsafe_code)]

/// The version of the kernel interface; an artifact stores the one it was built for and other versions are refused.
pub(crate) const ABI_VERSION: u32 = 1;

/// A compiled kernel. It works on the schedule tiles `begin..end` and returns 0, or the number (from 1) of the site that
/// failed in the first failing tile. `args` holds one pointer a declared argument, `dims` the launch's evaluated formulas,
/// `scratch` the bytes the image asks for per worker, aligned to 64 (any value when it asks for none). Buffers of the
/// caller are aligned to their element only; temporaries to what the program asks for; weights to 64. An output lies on an
/// input only where the program puts both into one class, as its compiler found the kernel to allow.
/// A kernel neither allocates nor calls out, and touches nothing outside its buffers and scratch.
pub(crate) type KernelFn = unsafe extern "C" fn(
    args: *const *mut u8,
    dims: *const i64,
    scratch: *mut u8,
    begin: i64,
    end: i64,
) -> i32;

/// A pointer to a buffer's first byte, in tables that move between threads.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ptr(pub(crate) *mut u8);

impl Ptr {
    /// Stands for a buffer that has not been given yet, or one of no bytes: never read through, aligned to anything.
    pub(crate) const NONE: Ptr = Ptr(std::ptr::without_provenance_mut(4096));

    /// The address this many bytes further.
    pub(crate) fn offset(self, bytes: usize) -> Ptr {
        Ptr(self.0.wrapping_add(bytes))
    }
}

// SAFETY: a `Ptr` is only an address; whoever dereferences it (exec.rs) says why the memory may be used there.
unsafe impl Send for Ptr {}
// SAFETY: as above; sharing the address itself between threads is harmless.
unsafe impl Sync for Ptr {}
