//! End to end: model files through the `tgc` and `tgc-run` commands, against golden outputs and ONNX Runtime. Needs what
//! `./test` prepares under target/ (Python tools, models). Nothing here calls the compiler as a library.

mod artifacts;
mod c_program;
mod figures;
mod models;
mod shared;
mod support;
mod tolerance;
mod wrong;
