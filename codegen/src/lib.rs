//! Code generation: fused regions of the tensor graph to kernels, kernels to machine code, all of it to an artifact.
//! Nothing here edits the tensor graph or runs a model.

pub mod artifact;
pub mod cpu;
pub mod kernel;
pub mod lower;
pub mod onnx;
pub mod schedule;
