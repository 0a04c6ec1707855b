//! Tables of rows.

use crate::nn::ops::functional::{self, Bag};
use crate::nn::{Forward, Module, Param, Tensor, enter, init};

/// A row of zeros where the padding's index is; a negative index counts from the end.
#[track_caller]
fn without_row(weight: &Param, padding_idx: i64) {
    let at = std::panic::Location::caller();
    let rows = weight.size(0);
    let row = if padding_idx < 0 { rows + padding_idx } else { padding_idx.into() };
    let inside = row.as_known().is_some_and(|r| r >= 0) && row < rows;
    if !inside {
        let m = format!("padding_idx {padding_idx} of a table of {rows} rows");
        functional::refuse("E-NN-101", m, "it must be a row of the table", at);
        return;
    }
    let keep = Tensor::arange(rows).ne(row).unsqueeze(1);
    weight.set(&functional::choose(&keep, &**weight, 0.0, weight));
}

/// Rows of a table by index.
#[derive(Clone, Module)]
pub struct Embedding {
    /// [rows, width].
    pub weight: Param,
}

impl Embedding {
    /// A table of normal random numbers.
    pub fn new(rows: usize, width: usize) -> Embedding {
        Embedding { weight: Param::new(init::normal(&[rows, width], 0.0, 1.0)) }
    }

    /// A table of known rows.
    #[track_caller]
    pub fn from_pretrained(weight: impl Into<Tensor>) -> Embedding {
        Embedding { weight: Param::new(weight) }
    }

    /// The row of this index begins as zeros.
    #[track_caller]
    pub fn padding_idx(self, padding_idx: i64) -> Embedding {
        without_row(&self.weight, padding_idx);
        self
    }

    /// The rows.
    #[track_caller]
    pub fn forward(&self, indices: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::embedding(indices, &self.weight)
    }
}

impl Forward for Embedding {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        Embedding::forward(self, x)
    }
}

/// Sums, means or maxima of rows of a table, for bags of indices [bags, n].
#[derive(Clone, Module)]
pub struct EmbeddingBag {
    /// [rows, width].
    pub weight: Param,
    #[module(skip)]
    mode: Bag,
    #[module(skip)]
    padding_idx: Option<i64>,
}

impl EmbeddingBag {
    /// Means of rows of a table of normal random numbers.
    pub fn new(rows: usize, width: usize) -> EmbeddingBag {
        let weight = Param::new(init::normal(&[rows, width], 0.0, 1.0));
        EmbeddingBag { weight, mode: Bag::Mean, padding_idx: None }
    }

    /// What becomes of the rows.
    pub fn mode(mut self, mode: Bag) -> EmbeddingBag {
        self.mode = mode;
        self
    }

    /// The row of this index begins as zeros, and does not count.
    #[track_caller]
    pub fn padding_idx(mut self, padding_idx: i64) -> EmbeddingBag {
        without_row(&self.weight, padding_idx);
        self.padding_idx = Some(padding_idx);
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, indices: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::embedding_bag(indices, &self.weight, self.mode, None, self.padding_idx)
    }

    /// The result with a factor for each index; for sums.
    #[track_caller]
    pub fn forward_weighted(&self, indices: &Tensor, per_sample_weights: &Tensor) -> Tensor {
        let _entered = enter(self);
        let w = Some(per_sample_weights);
        functional::embedding_bag(indices, &self.weight, self.mode, w, self.padding_idx)
    }
}

impl Forward for EmbeddingBag {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        EmbeddingBag::forward(self, x)
    }
}
