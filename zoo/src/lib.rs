//! Well-known models written in Rust, under the names of their published weights: examples of how models are written, and
//! what benchmarks run on. Nothing here knows the compiler.

pub mod bert;
pub mod gpt2;
mod instance;
pub mod llama;
pub mod mobilenet;
pub mod perceptron;
pub mod resnet;
pub mod vit;

pub use instance::{NAMES, program};
