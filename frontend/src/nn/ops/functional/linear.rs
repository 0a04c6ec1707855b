//! Linear maps and tables.

use super::{any_failed, refuse};
use crate::nn::dim::Dim;
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

/// `x w^T + b`; `w` is [out, in].
#[track_caller]
pub fn linear(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Tensor {
    let y = match w.dim() {
        1 => x.matmul(w),
        _ => x.matmul(&w.transpose(-1, -2)),
    };
    match b {
        Some(b) => y + b,
        None => y,
    }
}

/// `x1 w x2 + b` for each output; `w` is [out, in1, in2].
#[track_caller]
pub fn bilinear(x1: &Tensor, x2: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x1, x2, w]) {
        return Tensor::FAILED;
    }
    if w.dim() != 3 || x1.dim() == 0 || x1.dim() != x2.dim() {
        let m = format!("bilinear of {x1:#} and {x2:#} with the weight {w:#}");
        return refuse("E-NN-084", m, "give two operands of one rank and a weight [out, in1, in2]", at);
    }
    let [out, in1, in2] = w.dims();
    let flat = w.permute([1, 0, 2]).reshape((in1, out * in2));
    let mut shape = x1.shape();
    shape.pop();
    shape.extend([out, in2]);
    let part = x1.matmul(&flat).reshape(shape);
    let y = super::squeezed(&part.matmul(&x2.unsqueeze(-1)), -1);
    match b {
        Some(b) => y + b,
        None => y,
    }
}

/// Rows of `weight` by index.
#[track_caller]
pub fn embedding(indices: &Tensor, weight: &Tensor) -> Tensor {
    apply(ops::Gather { axis: 0 }, &[weight, indices], Location::caller())
}

/// How the rows of a bag become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bag {
    /// Their sum.
    Sum,
    /// Their mean.
    #[default]
    Mean,
    /// The greatest element of each column.
    Max,
}

/// Sums, means or maxima of rows of `weight` for each row of `indices` [bags, n]. Indices equal to `padding_idx` do not
/// count. `per_sample_weights` [bags, n] are factors, for sums only.
#[track_caller]
pub fn embedding_bag(
    indices: &Tensor,
    weight: &Tensor,
    mode: Bag,
    per_sample_weights: Option<&Tensor>,
    padding_idx: Option<i64>,
) -> Tensor {
    let at = Location::caller();
    if any_failed(&[indices, weight]) {
        return Tensor::FAILED;
    }
    if indices.dim() != 2 {
        let m = format!("embedding_bag of indices {indices:#}");
        return refuse("E-NN-085", m, "give rank 2, one bag a row: bags by offsets are not built", at);
    }
    if per_sample_weights.is_some() && mode != Bag::Sum {
        let m = format!("embedding_bag with per_sample_weights and the mode {mode:?}");
        return refuse("E-NN-085", m, "weights of samples go with Bag::Sum", at);
    }
    let rows = embedding(indices, weight);
    let d = rows.dtype();
    let Some(p) = padding_idx else {
        return match (mode, per_sample_weights) {
            (Bag::Sum, None) => rows.sum(&[1], false),
            (Bag::Sum, Some(w)) => (rows * w.unsqueeze(-1)).sum(&[1], false),
            (Bag::Mean, _) => rows.mean(&[1], false),
            (Bag::Max, _) => rows.amax(&[1], false),
        };
    };
    let keep = counted(indices, weight, p).unsqueeze(-1);
    let ones = keep.to_dtype(d);
    match mode {
        Bag::Sum => match per_sample_weights {
            Some(w) => (rows * ones * w.unsqueeze(-1)).sum(&[1], false),
            None => (rows * ones).sum(&[1], false),
        },
        Bag::Mean => (rows * &ones).sum(&[1], false) / ones.sum(&[1], false).maximum(1.0),
        Bag::Max => {
            let best = super::choose(&keep, &rows, f64::NEG_INFINITY, &rows).amax(&[1], false);
            // a bag of padding alone is zero
            let some = ones.amax(&[1], false).gt(0.0);
            super::choose(&some, &best, 0.0, &best)
        }
    }
}

/// Where an index is not the padding's; a negative one counts from the end of the table.
#[track_caller]
fn counted(indices: &Tensor, weight: &Tensor, padding: i64) -> Tensor {
    let row = if padding < 0 { weight.size(0) + padding } else { Dim::from(padding) };
    indices.ne(row)
}

/// 1 at the index and 0 elsewhere, along a new last axis of `classes` elements, in i64.
#[track_caller]
pub fn one_hot(indices: &Tensor, classes: impl Into<Dim>) -> Tensor {
    let line = Tensor::arange(classes);
    indices.unsqueeze(-1).eq(&line).to_dtype(DType::I64)
}
