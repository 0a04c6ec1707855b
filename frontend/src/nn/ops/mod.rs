//! Tensor operations under PyTorch's names and meanings, a file a theme. Each is made of ops of the IR; none computes.

mod activation;
mod arith;
mod arrange;
mod choose;
mod dtype;
mod elementwise;
mod factory;
pub mod functional;
mod index;
mod inplace;
mod join;
mod linear;
mod operators;
mod order;
mod reduce;
mod scatter;
mod shape;
mod tape;

pub use arrange::PadMode;
pub use index::{Ellipsis, Index, IntoIndex, NewAxis};
