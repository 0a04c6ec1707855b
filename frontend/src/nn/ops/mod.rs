//! Tensor operations under PyTorch's names and meanings, a file a theme. Each is made of ops of the IR; none computes.

mod arith;
mod elementwise;
mod factory;
pub mod functional;
mod linear;
mod reduce;
mod shape;
