//! Runs compiled kernels inside a test: maps an image executable and puts every buffer against pages that cannot be
//! touched, at its end or at its beginning. Only for tests.
#![allow(unsafe_code)]

use super::Image;
use crate::kernel::{Arg, Kernel, Role};
use crate::schedule::{Schedule, scratch, tile_count};
use std::ptr::NonNull;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{Atom, Dim};

const PAGE: usize = 4096;

/// The runtime's kernel interface (`tgc_runtime`'s abi.rs).
type KernelFn = unsafe extern "C" fn(*const *mut u8, *const i64, *mut u8, i64, i64) -> i32;

/// Code mapped readable and executable.
pub(crate) struct Loaded {
    map: memmap2::Mmap,
    symbols: Vec<(String, u64)>,
}

impl Loaded {
    pub(crate) fn new(image: &Image) -> Loaded {
        let mut map = memmap2::MmapMut::map_anon(image.bytes.len().max(1)).unwrap();
        map[..image.bytes.len()].copy_from_slice(&image.bytes);
        Loaded { map: map.make_exec().unwrap(), symbols: image.symbols.clone() }
    }

    fn function(&self, name: &str) -> KernelFn {
        let at = self.symbols.iter().find(|s| s.0 == name).unwrap().1 as usize;
        assert!(at < self.map.len());
        // SAFETY: the image has a kernel's function at this offset, mapped executable for as long as `self` lives.
        unsafe { std::mem::transmute::<*const u8, KernelFn>(self.map.as_ptr().add(at)) }
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
            assert!(map != libc::MAP_FAILED);
            let map = NonNull::new(map.cast::<u8>()).unwrap();
            let first = map.add(PAGE);
            if inner > 0 {
                assert_eq!(
                    libc::mprotect(first.as_ptr().cast(), inner, libc::PROT_READ | libc::PROT_WRITE),
                    0
                );
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

fn value(d: &Dim, kernel: &Kernel, params: &[i64]) -> i64 {
    d.eval(&|a| match a {
        Atom::Sym(s) => kernel.params.iter().position(|p| p == s).map(|i| params[i]),
        _ => None,
    })
    .unwrap()
}

/// Runs a kernel on `args`, whose outputs are replaced, `grain` tiles a call (last tiles first). A trap gives its site.
pub(crate) fn run(
    loaded: &Loaded,
    kernel: &Kernel,
    schedule: &Schedule,
    params: &[i64],
    args: &mut [Tensor],
    at_end: bool,
    grain: i64,
) -> Result<(), i32> {
    let bytes = |(a, t): (&Arg, &Tensor)| match &a.packed {
        Some(p) => {
            let dims: Vec<u64> = t.shape.iter().map(|&d| d as u64).collect();
            p.pack(t.data.bytes(), &dims, t.dtype.size())
        }
        None => t.data.bytes().to_vec(),
    };
    let given: Vec<Vec<u8>> = kernel.args.iter().zip(args.iter()).map(bytes).collect();
    let buffers: Vec<Guarded> = given.iter().map(|b| Guarded::new(b, at_end)).collect();
    let pointers: Vec<*mut u8> = buffers.iter().map(|b| b.at.as_ptr()).collect();
    let bytes = value(&scratch(kernel, schedule), kernel, params) as usize;
    let memory = Guarded::new(&vec![0xa5; bytes], at_end);
    let tiles = value(&tile_count(kernel, schedule), kernel, params);
    let function = loaded.function(&kernel.name);
    let mut end = tiles;
    while end > 0 {
        let begin = (end - grain.max(1)).max(0);
        // SAFETY: the kernel's own arguments, dims and scratch, and tiles that exist.
        let site = unsafe { function(pointers.as_ptr(), params.as_ptr(), memory.at.as_ptr(), begin, end) };
        if site != 0 {
            return Err(site);
        }
        end = begin;
    }
    for (((t, b), a), given) in args.iter_mut().zip(&buffers).zip(&kernel.args).zip(&given) {
        if matches!(a.role, Role::In | Role::Const) {
            assert!(*given == b.bytes(), "an input was written");
        } else {
            t.data = Data::new(b.bytes());
        }
    }
    Ok(())
}
