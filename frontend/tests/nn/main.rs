//! Models written in Rust: eager results, capture, names, lines and errors.

mod capture;
mod control;
mod errors;
mod figures;
mod losses;
mod tensors;
mod wrong;
