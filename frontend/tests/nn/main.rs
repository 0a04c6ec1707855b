//! Models written in Rust: eager results, capture, names, lines and errors.

mod capture;
mod control;
mod errors;
mod figures;
mod init;
mod layers;
mod layers_symbolic;
mod losses;
mod tensors;
mod wrong;
