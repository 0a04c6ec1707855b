//! Taking tensors apart and putting them together.

use super::arith::cast;
use super::shape::{expanded, reshaped, sliced};
use crate::nn::dim::{Dim, IntoShape};
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::{Tensor, promote_types};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;

type At = &'static Location<'static>;

/// The extent of an axis as a number, which the number of results depends on.
#[track_caller]
fn extent(x: &Tensor, axis: usize, what: &str, at: At) -> Option<i64> {
    let n = x.shape()[axis];
    if n.as_known().is_none() {
        let m = format!("{what}: how many tensors it gives depends on the dim `{n}`, which is symbolic");
        let help = "give the input a fixed size in its spec, or use chunk, tensor_split or unfold";
        report(Diag::error("E-NN-094", m).help(help), at);
    }
    n.as_known()
}

/// Parts of these lengths, one after another.
#[track_caller]
fn parts(x: &Tensor, axis: usize, lens: &[Dim], at: At) -> Vec<Tensor> {
    let mut start = Dim::from(0);
    let mut out = Vec::with_capacity(lens.len());
    for len in lens {
        out.push(sliced(x, axis, start, *len, 1, at));
        start = start + *len;
    }
    out
}

#[track_caller]
fn counted(n: i64, what: &str, at: At) -> bool {
    if n < 1 {
        let m = format!("{what} by {n}");
        report(Diag::error("E-NN-095", m).help("give 1 or more"), at);
    }
    n >= 1
}

/// Every tensor with one axis more, of extent 1, at `axis`.
#[track_caller]
fn at_least(t: &Tensor, rank: usize, at: At) -> Tensor {
    if t.failed() || t.dim() >= rank {
        return t.clone();
    }
    let one = Dim::from(1);
    let shape = match (t.shape().as_slice(), rank) {
        ([], r) => vec![one; r],
        ([n], 3) => vec![one, *n, one],
        ([n], _) => vec![one, *n],
        ([n, m], _) => vec![*n, *m, one],
        (more, _) => more.to_vec(),
    };
    reshaped(t, &shape, at)
}

impl Tensor {
    /// Parts of `size` elements along an axis, the last one smaller if need be. The extent must be known.
    #[track_caller]
    pub fn split(&self, size: i64, dim: i64) -> Vec<Tensor> {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at).filter(|_| counted(size, "split", at)) else { return Vec::new() };
        let Some(n) = extent(self, a, "split", at) else { return Vec::new() };
        let lens: Vec<Dim> = (0..n).step_by(size as usize).map(|s| size.min(n - s).into()).collect();
        match lens.is_empty() {
            true => vec![self.clone()],
            false => parts(self, a, &lens, at),
        }
    }

    /// Parts of these lengths along an axis, which together are its extent: `torch.split(x, [..], dim)`.
    #[track_caller]
    pub fn split_with_sizes(&self, sizes: impl IntoShape, dim: i64) -> Vec<Tensor> {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Vec::new() };
        let lens = sizes.into_shape();
        let mut all = Dim::from(0);
        for l in &lens {
            all = all + *l;
        }
        let whole = self.shape()[a];
        if let (Ok(sum), Ok(n)) = (all.size(), whole.size()) {
            let why = "the lengths of split_with_sizes must add up to the extent of the axis";
            if !super::tape::demand(&tgc_ir::types::Pred::Eq(sum, n), why, at) {
                return vec![Tensor::FAILED; lens.len()];
            }
        }
        parts(self, a, &lens, at)
    }

    /// At most `n` parts along an axis, of `ceil(extent / n)` elements but for the last: `torch.chunk`. A symbolic extent
    /// must be a multiple of `n`. See [`Tensor::chunk`] for an array of equal parts.
    #[track_caller]
    pub fn chunks(&self, n: i64, dim: i64) -> Vec<Tensor> {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at).filter(|_| counted(n, "chunks", at)) else { return Vec::new() };
        let whole = self.shape()[a];
        match whole.as_known() {
            Some(0) => vec![self.clone(); n as usize],
            Some(len) => self.split((len + n - 1) / n, dim),
            None => {
                let len = whole / n;
                if let (Ok(all), Ok(n)) = ((len * n).size(), whole.size()) {
                    let why = "chunks: a symbolic extent must be a multiple of the number of parts";
                    super::tape::demand(&tgc_ir::types::Pred::Eq(all, n), why, at);
                }
                parts(self, a, &vec![len; n as usize], at)
            }
        }
    }

    /// `n` parts along an axis whose lengths differ by 1 at most, the longer ones first.
    #[track_caller]
    pub fn tensor_split(&self, n: i64, dim: i64) -> Vec<Tensor> {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at).filter(|_| counted(n, "tensor_split", at)) else {
            return Vec::new();
        };
        let whole = self.shape()[a];
        let (each, more) = (whole / n, whole % n);
        let mut out = Vec::new();
        for i in 0..n {
            let (start, end) = (each * i + more.min(i), each * (i + 1) + more.min(i + 1));
            out.push(sliced(self, a, start, end - start, 1, at));
        }
        out
    }

    /// [`Tensor::tensor_split`] along axis 1, or axis 0 of rank 1.
    #[track_caller]
    pub fn hsplit(&self, n: i64) -> Vec<Tensor> {
        self.tensor_split(n, i64::from(self.dim() > 1))
    }

    /// [`Tensor::tensor_split`] along axis 0.
    #[track_caller]
    pub fn vsplit(&self, n: i64) -> Vec<Tensor> {
        self.tensor_split(n, 0)
    }

    /// [`Tensor::tensor_split`] along axis 2.
    #[track_caller]
    pub fn dsplit(&self, n: i64) -> Vec<Tensor> {
        self.tensor_split(n, 2)
    }

    /// The slices along an axis, which goes away. The extent must be known.
    #[track_caller]
    pub fn unbind(&self, dim: i64) -> Vec<Tensor> {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Vec::new() };
        let Some(n) = extent(self, a, "unbind", at) else { return Vec::new() };
        let mut out = Vec::new();
        for i in 0..n {
            out.push(self.select(dim, i));
        }
        out
    }

    /// Tensors of one shape along a new axis.
    #[track_caller]
    pub fn stack(tensors: &[&Tensor], dim: i64) -> Tensor {
        let mut wide = Vec::with_capacity(tensors.len());
        for t in tensors {
            wide.push(t.unsqueeze(dim));
        }
        Tensor::cat(&wide.iter().collect::<Vec<_>>(), dim)
    }

    /// Tensors beside each other: along axis 1, or axis 0 for rank 1.
    #[track_caller]
    pub fn hstack(tensors: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let all: Vec<Tensor> = tensors.iter().map(|t| at_least(t, 1, at)).collect();
        let dim = i64::from(all.first().is_some_and(|t| t.dim() > 1));
        Tensor::cat(&all.iter().collect::<Vec<_>>(), dim)
    }

    /// Tensors on top of each other: along axis 0, rank 1 being a row.
    #[track_caller]
    pub fn vstack(tensors: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let all: Vec<Tensor> = tensors.iter().map(|t| at_least(t, 2, at)).collect();
        Tensor::cat(&all.iter().collect::<Vec<_>>(), 0)
    }

    /// [`Tensor::vstack`].
    #[track_caller]
    pub fn row_stack(tensors: &[&Tensor]) -> Tensor {
        Tensor::vstack(tensors)
    }

    /// Matrices along the diagonal of one, with zeros around them; rank 1 is a row.
    #[track_caller]
    pub fn block_diag(tensors: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let all: Vec<Tensor> = tensors.iter().map(|t| at_least(t, 2, at)).collect();
        let mut width = Dim::from(0);
        for t in &all {
            width = width + t.size(1);
        }
        let (mut rows, mut left) = (Vec::new(), Dim::from(0));
        for t in &all {
            let after = width - left - t.size(1);
            rows.push(t.pad((left, after), super::PadMode::Constant(0.0)));
            left = left + t.size(1);
        }
        Tensor::cat(&rows.iter().collect::<Vec<_>>(), 0)
    }

    /// Tensors behind each other: along axis 2.
    #[track_caller]
    pub fn dstack(tensors: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let all: Vec<Tensor> = tensors.iter().map(|t| at_least(t, 3, at)).collect();
        Tensor::cat(&all.iter().collect::<Vec<_>>(), 2)
    }

    /// Tensors beside each other along axis 1, rank 1 being a column.
    #[track_caller]
    pub fn column_stack(tensors: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let mut all = Vec::with_capacity(tensors.len());
        for t in tensors {
            all.push(if t.dim() < 2 { reshaped(t, &[t.numel(), 1.into()], at) } else { (*t).clone() });
        }
        Tensor::cat(&all.iter().collect::<Vec<_>>(), 1)
    }

    /// Rank 1 at least.
    #[track_caller]
    pub fn atleast_1d(&self) -> Tensor {
        at_least(self, 1, Location::caller())
    }

    /// Rank 2 at least: new axes come first.
    #[track_caller]
    pub fn atleast_2d(&self) -> Tensor {
        at_least(self, 2, Location::caller())
    }

    /// Rank 3 at least: a line becomes [1, n, 1], a matrix [n, m, 1].
    #[track_caller]
    pub fn atleast_3d(&self) -> Tensor {
        at_least(self, 3, Location::caller())
    }

    /// Tensors broadcast to their common shape.
    #[track_caller]
    pub fn broadcast_tensors(tensors: &[&Tensor]) -> Vec<Tensor> {
        let at = Location::caller();
        broadcast(tensors, at).unwrap_or_else(|| vec![Tensor::FAILED; tensors.len()])
    }

    /// Lines of coordinates as grids, the first along axis 0 (`indexing="ij"`).
    #[track_caller]
    pub fn meshgrid(lines: &[&Tensor]) -> Vec<Tensor> {
        let at = Location::caller();
        let shape: Vec<Dim> = lines.iter().map(|t| t.numel()).collect();
        let mut out = Vec::new();
        for (i, t) in lines.iter().enumerate() {
            let mut own = vec![Dim::from(1); lines.len()];
            own[i] = shape[i];
            out.push(expanded(&reshaped(t, &own, at), &shape, at));
        }
        out
    }

    /// Lines of coordinates as grids, the first along axis 1 (`indexing="xy"`).
    #[track_caller]
    pub fn meshgrid_xy(lines: &[&Tensor]) -> Vec<Tensor> {
        let mut order = lines.to_vec();
        if order.len() > 1 {
            order.swap(0, 1);
        }
        let mut grids = Tensor::meshgrid(&order);
        if grids.len() > 1 {
            grids.swap(0, 1);
        }
        grids
    }

    /// All combinations of the elements of lines, a row each.
    #[track_caller]
    pub fn cartesian_prod(lines: &[&Tensor]) -> Tensor {
        if let [only] = lines {
            return (*only).clone();
        }
        let mut columns = Vec::new();
        for g in Tensor::meshgrid(lines) {
            columns.push(g.reshape(-1));
        }
        Tensor::stack(&columns.iter().collect::<Vec<_>>(), 1)
    }

    /// Tensors one after another along an axis.
    #[track_caller]
    pub fn cat(tensors: &[&Tensor], dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(first) = tensors.first() else {
            report(Diag::error("E-NN-072", "cat of no tensors").help("give at least one"), at);
            return Tensor::FAILED;
        };
        let Some(a) = first.axis(dim, at) else { return Tensor::FAILED };
        let dtype = tensors.iter().fold(first.dtype(), |d, t| promote_types(d, t.dtype()));
        let parts: Vec<Tensor> = tensors.iter().map(|t| cast(t, dtype, at)).collect();
        apply(ops::Concat { axis: a as i64 }, &parts.iter().collect::<Vec<_>>(), at)
    }

    /// [`Tensor::cat`].
    #[track_caller]
    pub fn concatenate(tensors: &[&Tensor], dim: i64) -> Tensor {
        Tensor::cat(tensors, dim)
    }

    /// [`Tensor::cat`].
    #[track_caller]
    pub fn concat(tensors: &[&Tensor], dim: i64) -> Tensor {
        Tensor::cat(tensors, dim)
    }
}

/// Each tensor expanded to the shape that all broadcast to.
#[track_caller]
pub(crate) fn broadcast(tensors: &[&Tensor], at: At) -> Option<Vec<Tensor>> {
    // the type rule of a comparison knows how sizes broadcast
    let mut shape: Option<Tensor> = None;
    for t in tensors {
        let plain = truth_shape(t, at);
        shape = Some(match shape {
            None => plain,
            Some(s) => apply(ops::And {}, &[&s, &plain], at),
        });
    }
    let shape = shape.filter(|s| !s.failed())?.shape();
    Some(tensors.iter().map(|t| expanded(t, &shape, at)).collect())
}

/// Bools of a tensor's shape, which only its type is taken of.
#[track_caller]
fn truth_shape(t: &Tensor, at: At) -> Tensor {
    if t.failed() {
        return Tensor::FAILED;
    }
    expanded(&Tensor::scalar(false), &t.shape(), at)
}
