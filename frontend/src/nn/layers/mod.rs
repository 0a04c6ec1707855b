//! `torch.nn`: layers with PyTorch's names, arguments, defaults and initialisation. Each holds its parameters and calls
//! one function.

mod activation;
mod container;
mod conv;
mod linear;
mod norm;
mod pool;
mod sparse;

pub use activation::*;
pub use container::Sequential;
pub use conv::{Conv, Conv1d, Conv2d, Conv3d};
pub use linear::Linear;
pub use norm::{BatchNorm, BatchNorm1d, BatchNorm2d, BatchNorm3d, LayerNorm};
pub use pool::*;
pub use sparse::{Dropout, Embedding};
