//! The steady state: a bound session runs without allocating.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tgc_runtime::{Session, SessionOptions};

use crate::machine::*;

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|c| c.set(c.get() + 1));
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

#[test]
fn running_again_allocates_nothing() {
    let model = load(&build(&simple())).unwrap();
    for threads in [1, 2] {
        let options = SessionOptions { threads: Some(threads), ..SessionOptions::default() };
        let mut s = Session::new(&model, "forward", &options).unwrap();
        s.bind(&[("x", &[8, 2])]).unwrap();
        let (x, mut y) = (tensor(&[8, 2], &[1; 16]), tensor(&[8, 2], &[0; 16]));
        s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap();
        let before = COUNT.with(Cell::get);
        assert!(before > 0, "the counter works");
        for _ in 0..100 {
            s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap();
        }
        assert_eq!(COUNT.with(Cell::get), before, "{threads} threads");
    }
}
