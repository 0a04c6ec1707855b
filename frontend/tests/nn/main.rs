//! Models written in Rust: eager results, capture, names, lines and errors.

mod capture;
mod errors;
mod figures;
mod layers;
mod losses;
mod tensors;
