//! Code mapped executable, and calls of kernels with guarded buffers. What must not be here: what a kernel computes.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::FromRawFd;
use std::ptr::NonNull;

/// A multiple of every page size in use.
const PAGE: usize = 64 << 10;

/// The runtime's kernel interface (`tgc_runtime`'s abi.rs).
type KernelFn = unsafe extern "C" fn(*const *mut u8, *const i64, *mut u8, i64, i64) -> i32;

/// Code mapped readable and executable.
pub struct Code(memmap2::Mmap);

impl Code {
    /// Maps it from a file in memory, so that the system makes it visible to instruction fetches as it does for programs.
    pub fn new(bytes: &[u8]) -> io::Result<Code> {
        // SAFETY: a name that ends in 0; the descriptor that comes back is nobody else's.
        let mut file = unsafe {
            let fd = libc::memfd_create(c"code".as_ptr(), libc::MFD_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            File::from_raw_fd(fd)
        };
        file.write_all(if bytes.is_empty() { &[0] } else { bytes })?;
        // SAFETY: nobody else has the file, and it is not written again.
        Ok(Code(unsafe { memmap2::MmapOptions::new().map_exec(&file)? }))
    }

    fn function(&self, at: u64) -> Option<KernelFn> {
        let code = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).filter(|c| !c.is_empty())?;
        // SAFETY: that a kernel's function begins there is what the caller of `call` says; the mapping outlives the call.
        Some(unsafe { std::mem::transmute::<*const u8, KernelFn>(code.as_ptr()) })
    }
}

/// A call of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// Where the function begins in the code.
    pub at: u64,
    /// The arguments' bytes.
    pub buffers: Vec<Vec<u8>>,
    pub params: Vec<i64>,
    /// Bytes of scratch memory.
    pub scratch: u64,
    pub tiles: i64,
    /// Tiles a call, the last ones first.
    pub grain: i64,
    /// Whether buffers end at a page that cannot be touched; if not, they begin after one.
    pub at_end: bool,
}

/// What a call gives: the arguments after it, or the site that it ended at.
pub type Outcome = Result<Vec<Vec<u8>>, i32>;

impl Call {
    /// Runs it. None if the code is too short to have the function.
    pub fn run(&self, code: &Code) -> Option<Outcome> {
        let function = code.function(self.at)?;
        let buffers: Vec<Guarded> = self.buffers.iter().map(|b| Guarded::new(b, self.at_end)).collect();
        let pointers: Vec<*mut u8> = buffers.iter().map(|b| b.at.as_ptr()).collect();
        let scratch = Guarded::new(&vec![0xa5; self.scratch as usize], self.at_end);
        let mut end = self.tiles;
        while end > 0 {
            let begin = end.saturating_sub(self.grain.max(1)).max(0);
            // SAFETY: the kernel's own arguments, dims and scratch, and tiles that exist.
            let site =
                unsafe { function(pointers.as_ptr(), self.params.as_ptr(), scratch.at.as_ptr(), begin, end) };
            if site != 0 {
                return Some(Err(site));
            }
            end = begin;
        }
        Some(Ok(buffers.iter().map(Guarded::bytes).collect()))
    }
}

/// Bytes between two pages that cannot be touched.
struct Guarded {
    map: NonNull<u8>,
    total: usize,
    at: NonNull<u8>,
    len: usize,
}

impl Guarded {
    fn new(bytes: &[u8], at_end: bool) -> Guarded {
        let inner = bytes.len().next_multiple_of(PAGE);
        let total = inner + 2 * PAGE;
        // SAFETY: a new anonymous mapping; its inner pages are made accessible, and the bytes fit in them.
        unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert!(map != libc::MAP_FAILED, "no memory for {total} bytes");
            let map = NonNull::new_unchecked(map.cast::<u8>());
            let first = map.add(PAGE);
            if inner > 0 {
                let access = libc::PROT_READ | libc::PROT_WRITE;
                assert_eq!(libc::mprotect(first.as_ptr().cast(), inner, access), 0);
            }
            let at = if at_end { first.add(inner - bytes.len()) } else { first };
            at.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
            Guarded { map, total, at, len: bytes.len() }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: `len` accessible bytes are at `at`.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len).to_vec() }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.total) };
    }
}
