//! The tensor IR: types with symbolic dims, the op table, graphs, their text form, the verifier and the reference
//! interpreter.
#![deny(missing_docs)]

pub mod accuracy;
pub mod class;
pub mod diag;
pub mod graph;
pub mod interp;
mod known;
pub mod module;
pub mod ops;
pub mod patch;
pub mod scalar;
pub mod tensor;
pub mod text;
pub mod tiling;
pub mod types;
pub mod verify;
pub mod weights;
