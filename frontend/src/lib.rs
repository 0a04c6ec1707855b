//! What becomes IR: importers of model files (`onnx`), and models written in Rust (`nn`). Nothing here optimises a model.

// so that the derive macros name the same path here and in a user's crate
extern crate self as tgc_frontend;

mod formula;
mod limits;
pub mod nn;
pub mod onnx;
