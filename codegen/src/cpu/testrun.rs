//! Runs compiled kernels inside a test, every buffer against pages that cannot be touched, at its end or at its beginning:
//! in this process, or code for another CPU in a guest. Only for tests.

use super::{Image, Target};
use crate::kernel::{Arg, Kernel, Role};
use crate::schedule::{Schedule, scratch, tile_count};
use guest::call::{Call, Code, Outcome};
use guest::host::Guest;
use std::cell::RefCell;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{Atom, Dim};

/// Code that can be called.
pub(crate) struct Loaded {
    place: Place,
    symbols: Vec<(String, u64)>,
}

enum Place {
    Here(Code),
    Guest(RefCell<Option<Guest>>),
}

impl Loaded {
    pub(crate) fn new(image: &Image, target: &Target) -> Loaded {
        let place = if target.runs_here() {
            Place::Here(Code::new(&image.bytes).unwrap())
        } else {
            let mut guest = Guest::take().unwrap();
            guest.load(&image.bytes).unwrap();
            Place::Guest(RefCell::new(Some(guest)))
        };
        Loaded { place, symbols: image.symbols.clone() }
    }

    fn call(&self, call: Call) -> Outcome {
        match &self.place {
            Place::Here(code) => call.run(code).unwrap(),
            Place::Guest(g) => g.borrow_mut().as_mut().unwrap().call(call).unwrap(),
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Place::Guest(g) = &mut self.place
            && let Some(guest) = g.take()
            && !std::thread::panicking()
        {
            guest.give_back();
        }
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
    let after = loaded.call(Call {
        at: loaded.symbols.iter().find(|s| s.0 == kernel.name).unwrap().1,
        buffers: given.clone(),
        params: params.to_vec(),
        scratch: value(&scratch(kernel, schedule), kernel, params) as u64,
        tiles: value(&tile_count(kernel, schedule), kernel, params),
        grain,
        at_end,
    })?;
    for (((t, b), a), given) in args.iter_mut().zip(after).zip(&kernel.args).zip(&given) {
        if matches!(a.role, Role::In | Role::Const) {
            assert!(*given == b, "an input was written");
        } else {
            t.data = Data::new(b);
        }
    }
    Ok(())
}
