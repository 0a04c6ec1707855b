//! Memory between pages that cannot be touched, for inputs and outputs of runs.
#![allow(unsafe_code)]

use std::ptr::NonNull;

const PAGE: usize = 4096;

/// Which guard page the bytes lie against.
#[derive(Clone, Copy, Debug)]
pub enum Side {
    Begin,
    End,
}

/// Bytes against a page that cannot be touched.
pub struct Guarded {
    map: NonNull<u8>,
    total: usize,
    at: NonNull<u8>,
    len: usize,
}

impl Guarded {
    /// `len` bytes of `fill`.
    pub fn new(len: usize, fill: u8, side: Side) -> Guarded {
        let inner = len.next_multiple_of(PAGE);
        let total = inner + 2 * PAGE;
        // SAFETY: a new anonymous mapping; its inner pages are made accessible, and `len` bytes fit in them.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let map = libc::mmap(std::ptr::null_mut(), total, libc::PROT_NONE, flags, -1, 0);
            assert!(map != libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
            let map = NonNull::new(map.cast::<u8>()).unwrap();
            let first = map.add(PAGE);
            let open = libc::PROT_READ | libc::PROT_WRITE;
            assert!(inner == 0 || libc::mprotect(first.as_ptr().cast(), inner, open) == 0);
            let at = if matches!(side, Side::End) { first.add(inner - len) } else { first };
            at.write_bytes(fill, len);
            Guarded { map, total, at, len }
        }
    }

    /// A copy of these bytes.
    pub fn copy(bytes: &[u8], side: Side) -> Guarded {
        let mut g = Guarded::new(bytes.len(), 0, side);
        g.bytes_mut().copy_from_slice(bytes);
        g
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` accessible bytes are at `at`, and are this value's own.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.at.as_ptr(), self.len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`, unmapped once.
        unsafe { libc::munmap(self.map.as_ptr().cast(), self.total) };
    }
}
