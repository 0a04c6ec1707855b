//! Matrix products.

use super::arith::pair;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;

impl Tensor {
    /// Matrix product by numpy's rule: the last two axes multiply, the others broadcast; rank 1 is a row or a column.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        pair(ops::Matmul {}, self, other, Location::caller())
    }
}
