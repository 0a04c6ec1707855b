//! The steady state: a bound session runs without allocating, on any thread. A program of its own without a test harness,
//! whose threads would be counted too.
#![allow(unsafe_code)]

#[allow(dead_code)]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[path = "runtime/machine.rs"]
mod machine;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    for threads in [1, 2] {
        runs_allocate_nothing(threads);
        println!("test running again allocates nothing, {threads} threads ... ok");
    }
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn runs_allocate_nothing(threads: usize) {
    use machine::*;
    use tgc_runtime::{Session, SessionOptions};

    let model = load(&build(&simple())).unwrap();
    let options = SessionOptions { threads: Some(threads), ..SessionOptions::default() };
    let mut s = Session::new(&model, "forward", &options).unwrap();
    s.bind(&[("x", &[64, 2])]).unwrap();
    let (x, mut y) = (tensor(&[64, 2], &[1; 128]), tensor(&[64, 2], &[0; 128]));
    let mut workers = 0;
    s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap();
    let before = COUNT.load(Ordering::Relaxed);
    assert!(before > 0, "the counter works");
    for _ in 0..1000 {
        s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap();
    }
    s.profile(&[Some(x.bytes())], &mut [y.bytes_mut()], &mut |t| workers = t.workers).unwrap();
    assert_eq!(COUNT.load(Ordering::Relaxed), before, "{threads} threads");
    assert_eq!(workers, threads, "all threads have work");
}
