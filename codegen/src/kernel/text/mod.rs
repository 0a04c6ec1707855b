//! Text form of kernels, both ways. A file holds any number of kernels; `//` starts a comment.
//!
//! ```text
//! kernel @k0(d0)(%x: in f32[d0, 64], %w: const f32[64, 10], %y: out f32[d0, 10]) grid [d0, 10] {
//!   local %t : f32[tile 0 -1 +1, full 64, ring 4]
//!   site 1 "gather: index out of range"
//!   stage "matmul" over [#0, #1] red [#2 < 64] contract chunk 1024 {
//!     load 0 %x[#0, #2]
//!     load 1 %w[#2, #1]
//!     $0 = arg 0 : f32
//!     $1 = arg 1 : f32
//!     result $0, $1
//!     store %y[#0, #1] = 0
//!   }
//! }
//! ```
//!
//! A stage is `map`, `reduce lanes n` (with `init`, `step`, `combine`, `finish`) or `contract chunk n`; `inner`, `red`
//! and `when CONDITION` are left out when empty. A load may end in `fill CONDITION VALUE : TYPE` or `trap SITE CONDITION`,
//! a store in `add`, `mul`, `min` or `max` and in `site n`. `loop #n in a..b { .. }` holds stages.
//!
//! Laws: `parse(print(k))` is `k` for every verified kernel, to the bit (NaN payloads excepted); no bytes make the parser
//! panic or recurse without bound.

mod parse;
mod print;
#[cfg(test)]
mod tests;

pub use parse::parse;
pub use print::print;
