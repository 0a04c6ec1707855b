//! `torch.nn`: layers with PyTorch's names, arguments, defaults and initialisation. Each holds its parameters and calls
//! one function.

mod activation;
mod attention;
mod batch_norm;
mod container;
mod conv;
mod dropout;
mod linear;
mod loss;
mod norm;
mod plain;
mod pool;
mod rnn;
mod rnn_cell;
mod shape;
mod sparse;
mod transformer;

pub use activation::*;
pub use attention::{AttentionArgs, MultiheadAttention};
pub use batch_norm::*;
pub use container::Sequential;
pub use conv::*;
pub use dropout::*;
pub use linear::*;
pub use loss::*;
pub use norm::*;
pub use pool::*;
pub use rnn::{GRU, LSTM, RNN};
pub use rnn_cell::{GRUCell, LSTMCell, RNNCell, RnnNonlinearity};
pub use shape::*;
pub use sparse::*;
pub use transformer::*;
