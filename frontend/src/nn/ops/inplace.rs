//! Methods that end in `_`: the variable is bound to the result, so that it shows what PyTorch's in-place methods leave.
//! Clones and views of the old handle keep the old value.

use super::arith::cast;
use super::index::IntoIndex;
use super::shape::expanded;
use super::tape::same;
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::tensor::{Operand, Tensor, kind};
use std::panic::Location;
use tgc_ir::diag::Diag;

type At = &'static Location<'static>;

impl Tensor {
    /// Becomes the result, whose shape must be the same and whose element type is no wider kind.
    #[track_caller]
    fn become_(&mut self, y: &Tensor, what: &str, at: At) {
        if self.failed() || y.failed() {
            *self = Tensor::FAILED;
            return;
        }
        if kind(y.dtype()) > kind(self.dtype()) {
            let m = format!("{what}: the result {y:#} is put into {self:#}");
            report(Diag::error("E-NN-100", m).help("cast the tensor first, such as with float()"), at);
            *self = Tensor::FAILED;
            return;
        }
        let pairs: Vec<(Dim, Dim)> = self.shape().into_iter().zip(y.shape()).collect();
        let differ = |(a, b): &(Dim, Dim)| a.as_known().zip(b.as_known()).is_some_and(|(a, b)| a != b);
        if self.dim() != y.dim() || pairs.iter().any(differ) {
            let m = format!("{what}: the result {y:#} has another shape than {self:#}");
            report(
                Diag::error("E-NN-101", m).help("an in-place operation keeps the shape: assign instead"),
                at,
            );
            *self = Tensor::FAILED;
            return;
        }
        let why = "an in-place operation keeps the shape";
        let fits = pairs.into_iter().all(|(a, b)| same(a, b, why, at));
        *self = if fits { cast(y, self.dtype(), at) } else { Tensor::FAILED };
    }
}

macro_rules! in_place {
    ($($(#[$doc:meta])* pub fn $name:ident => $of:ident($($arg:ident: $t:ty),*);)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&mut self $(, $arg: $t)*) {
                let at = Location::caller();
                let y = self.$of($($arg),*);
                self.become_(&y, stringify!($name), at);
            }
        )* }
    };
}
in_place! {
    /// In place [`Tensor::add`].
    pub fn add_ => add(other: impl Operand);
    /// In place [`Tensor::sub`].
    pub fn sub_ => sub(other: impl Operand);
    /// In place [`Tensor::mul`].
    pub fn mul_ => mul(other: impl Operand);
    /// In place [`Tensor::div`].
    pub fn div_ => div(other: impl Operand);
    /// In place [`Tensor::remainder`].
    pub fn remainder_ => remainder(other: impl Operand);
    /// In place [`Tensor::floor_divide`].
    pub fn floor_divide_ => floor_divide(other: impl Operand);
    /// In place [`Tensor::pow`].
    pub fn pow_ => pow(other: impl Operand);
    /// In place [`Tensor::bitwise_and`].
    pub fn bitwise_and_ => bitwise_and(other: impl Operand);
    /// In place [`Tensor::bitwise_or`].
    pub fn bitwise_or_ => bitwise_or(other: impl Operand);
    /// In place [`Tensor::bitwise_xor`].
    pub fn bitwise_xor_ => bitwise_xor(other: impl Operand);
    /// In place [`Tensor::logical_and`].
    pub fn logical_and_ => logical_and(other: impl Operand);
    /// In place [`Tensor::logical_or`].
    pub fn logical_or_ => logical_or(other: impl Operand);
    /// In place [`Tensor::logical_not`].
    pub fn logical_not_ => logical_not();
    /// In place [`Tensor::clamp`].
    pub fn clamp_ => clamp(min: impl Operand, max: impl Operand);
    /// In place [`Tensor::clamp_min`].
    pub fn clamp_min_ => clamp_min(other: impl Operand);
    /// In place [`Tensor::clamp_max`].
    pub fn clamp_max_ => clamp_max(other: impl Operand);
    /// In place [`Tensor::abs`].
    pub fn abs_ => abs();
    /// In place [`Tensor::neg`].
    pub fn neg_ => neg();
    /// In place [`Tensor::exp`].
    pub fn exp_ => exp();
    /// In place [`Tensor::log`].
    pub fn log_ => log();
    /// In place [`Tensor::sqrt`].
    pub fn sqrt_ => sqrt();
    /// In place [`Tensor::rsqrt`].
    pub fn rsqrt_ => rsqrt();
    /// In place [`Tensor::square`].
    pub fn square_ => square();
    /// In place [`Tensor::reciprocal`].
    pub fn reciprocal_ => reciprocal();
    /// In place [`Tensor::floor`].
    pub fn floor_ => floor();
    /// In place [`Tensor::ceil`].
    pub fn ceil_ => ceil();
    /// In place [`Tensor::round`].
    pub fn round_ => round();
    /// In place [`Tensor::trunc`].
    pub fn trunc_ => trunc();
    /// In place [`Tensor::sin`].
    pub fn sin_ => sin();
    /// In place [`Tensor::cos`].
    pub fn cos_ => cos();
    /// In place [`Tensor::tanh`].
    pub fn tanh_ => tanh();
    /// In place [`Tensor::sigmoid`].
    pub fn sigmoid_ => sigmoid();
    /// In place [`Tensor::relu`].
    pub fn relu_ => relu();
    /// In place [`Tensor::lerp`].
    pub fn lerp_ => lerp(end: &Tensor, weight: impl Operand);
    /// In place [`Tensor::addcmul`].
    pub fn addcmul_ => addcmul(a: &Tensor, b: &Tensor, value: impl Operand);
    /// In place [`Tensor::addcdiv`].
    pub fn addcdiv_ => addcdiv(a: &Tensor, b: &Tensor, value: impl Operand);
    /// In place [`Tensor::masked_fill`].
    pub fn masked_fill_ => masked_fill(mask: &Tensor, value: impl Operand);
    /// In place [`Tensor::masked_scatter`].
    pub fn masked_scatter_ => masked_scatter(mask: &Tensor, source: &Tensor);
    /// In place [`Tensor::index_put`]; `x[index] = values` is `x.index_put_(index, values, false)`.
    pub fn index_put_ => index_put(index: impl IntoIndex, values: impl Operand, accumulate: bool);
    /// In place [`Tensor::index_add`].
    pub fn index_add_ => index_add(dim: i64, index: &Tensor, source: &Tensor, alpha: impl Operand);
    /// In place [`Tensor::index_copy`].
    pub fn index_copy_ => index_copy(dim: i64, index: &Tensor, source: &Tensor);
    /// In place [`Tensor::index_fill`].
    pub fn index_fill_ => index_fill(dim: i64, index: &Tensor, value: impl Operand);
    /// In place [`Tensor::scatter`].
    pub fn scatter_ => scatter(dim: i64, index: &Tensor, src: impl Operand);
    /// In place [`Tensor::scatter_add`].
    pub fn scatter_add_ => scatter_add(dim: i64, index: &Tensor, src: impl Operand);
    /// In place [`Tensor::scatter_reduce`].
    pub fn scatter_reduce_ => scatter_reduce(
        dim: i64,
        index: &Tensor,
        src: impl Operand,
        reduce: &str,
        include_self: bool
    );
    /// In place [`Tensor::tril`].
    pub fn tril_ => tril(k: i64);
    /// In place [`Tensor::triu`].
    pub fn triu_ => triu(k: i64);
    /// In place [`Tensor::cumsum`].
    pub fn cumsum_ => cumsum(dim: i64);
}

impl Tensor {
    /// Every element becomes a number.
    #[track_caller]
    pub fn fill_(&mut self, value: impl Operand) {
        let at = Location::caller();
        let value = cast(&value.operand(self), self.dtype(), at);
        *self = expanded(&value, &self.shape(), at);
    }

    /// Every element becomes 0.
    #[track_caller]
    pub fn zero_(&mut self) {
        *self = self.zeros_like();
    }

    /// The elements of `src`, broadcast and cast.
    #[track_caller]
    pub fn copy_(&mut self, src: &Tensor) {
        let at = Location::caller();
        *self = expanded(&cast(src, self.dtype(), at), &self.shape(), at);
    }

    /// The main diagonal of a matrix becomes a number.
    #[track_caller]
    pub fn fill_diagonal_(&mut self, value: impl Operand) {
        let at = Location::caller();
        let shape = self.shape();
        let [rows, columns] = shape[..] else {
            if !self.failed() {
                let m = format!("fill_diagonal_ of {self:#}");
                report(Diag::error("E-NN-076", m).help("give rank 2"), at);
            }
            *self = Tensor::FAILED;
            return;
        };
        let diagonal = Tensor::arange(columns).unsqueeze(0).eq(Tensor::arange(rows).unsqueeze(1));
        *self = self.masked_fill(&diagonal, value);
    }

    /// An axis more, as [`Tensor::unsqueeze`].
    #[track_caller]
    pub fn unsqueeze_(&mut self, dim: i64) {
        *self = self.unsqueeze(dim);
    }

    /// Axes of extent 1 less, as [`Tensor::squeeze`].
    #[track_caller]
    pub fn squeeze_(&mut self, dims: &[i64]) {
        *self = self.squeeze(dims);
    }

    /// Axes swapped, as [`Tensor::transpose`].
    #[track_caller]
    pub fn transpose_(&mut self, a: i64, b: i64) {
        *self = self.transpose(a, b);
    }
}
