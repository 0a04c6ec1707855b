//! Passes: graph to graph. The driver runs an ordered list of passes over every graph of a module; a pass edits only by
//! patches. What needs something compiled, run or measured does not belong here.

mod cse;
mod dce;
mod decompose;
mod driver;
mod fold;
mod fuse;
mod layout;
mod pass;
pub mod pipeline;
mod rules;
mod shapes;
mod siblings;

pub use driver::{Options, Report, run_passes, run_pipeline};
