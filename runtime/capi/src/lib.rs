//! The C interface of the runtime, described in `include/tgc.h`: `exports.rs` has the functions, which turn pointers into
//! references and call the safe rest. Panics stop here and become a status. What must not be here: what the runtime does.
#![deny(missing_docs)]

#[cfg(test)]
mod agreement;
mod describe;
mod exports;
mod model;
mod pointers;
mod session;
mod status;

#[cfg(not(panic = "unwind"))]
compile_error!("the C interface promises to catch panics: build it with panic = \"unwind\"");

/// `TGC_ABI_VERSION`.
const ABI_VERSION: u32 = 0;
