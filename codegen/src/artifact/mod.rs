//! From an optimized module to an artifact: programs over kernels (`program`), compiled images (`image`), and the file.
//! The module must have been through the pipeline: every computing node is in a `fused` region.

mod cost;
mod formula;
mod image;
mod program;
mod reuse;
#[cfg(test)]
mod tests;

pub use image::{Artifact, code_text, compile};
pub use program::{Lowered, lower_module};
