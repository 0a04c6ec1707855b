//! Pools of fixed windows.

use super::{batched, narrowed, unbatched, widened};
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;

/// Windows of a pool over `N` axes.
#[derive(Clone, Copy, Debug)]
pub struct PoolArgs<const N: usize> {
    /// Extents.
    pub kernel: [i64; N],
    /// Steps; `None` is the kernel's extents.
    pub stride: Option<[i64; N]>,
    /// Padding on both sides, at most half the kernel.
    pub padding: [i64; N],
    /// Distance of the window's elements (maximum only).
    pub dilation: [i64; N],
    /// Round the number of windows up.
    pub ceil_mode: bool,
    /// Padding counts as zeros (mean only).
    pub count_include_pad: bool,
}

impl<const N: usize> PoolArgs<N> {
    /// Windows of one extent, side by side.
    pub fn new(kernel: [i64; N]) -> Self {
        PoolArgs {
            kernel,
            stride: None,
            padding: [0; N],
            dilation: [1; N],
            ceil_mode: false,
            count_include_pad: true,
        }
    }
}

/// Greatest element of each window of x [n, c, space..].
#[track_caller]
pub fn max_pool<const N: usize>(x: &Tensor, args: &PoolArgs<N>) -> Tensor {
    let at = Location::caller();
    let op = ops::MaxPool {
        kernel: args.kernel.to_vec(),
        strides: args.stride.unwrap_or(args.kernel).to_vec(),
        pads: [args.padding, args.padding].concat(),
        dilations: args.dilation.to_vec(),
        ceil: args.ceil_mode,
        channels_last: false,
    };
    let Some((x, lone)) = batched(x, N + 2, &format!("max_pool{N}d"), at) else { return Tensor::FAILED };
    unbatched(apply(op, &[&x], at), lone)
}

/// Mean of each window of x [n, c, space..].
#[track_caller]
pub fn avg_pool<const N: usize>(x: &Tensor, args: &PoolArgs<N>) -> Tensor {
    let at = Location::caller();
    let op = ops::AvgPool {
        kernel: args.kernel.to_vec(),
        strides: args.stride.unwrap_or(args.kernel).to_vec(),
        pads: [args.padding, args.padding].concat(),
        dilations: vec![1; N],
        ceil: args.ceil_mode,
        count_include_pad: args.count_include_pad,
        channels_last: false,
    };
    let Some((x, lone)) = batched(x, N + 2, &format!("avg_pool{N}d"), at) else { return Tensor::FAILED };
    unbatched(apply(op, &[&x], at), lone)
}

/// `(sum of x^p)^(1/p)` of each window of x [n, c, space..], without padding. Negative sums, which odd powers may have, give
/// NaN as in PyTorch.
#[track_caller]
pub fn lp_pool<const N: usize>(x: &Tensor, p: f64, args: &PoolArgs<N>) -> Tensor {
    let count: i64 = args.kernel.iter().product();
    let args = PoolArgs { padding: [0; N], dilation: [1; N], count_include_pad: true, ..*args };
    let (x, d) = widened(x);
    let powers = if p == 2.0 { &x * &x } else { x.pow(p) };
    let sums = avg_pool(&powers, &args) * count as f64;
    narrowed(&if p == 2.0 { sums.sqrt() } else { sums.pow(1.0 / p) }, d)
}

macro_rules! named {
    ($($name:ident $of:ident $n:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[track_caller]
        pub fn $name(x: &Tensor, args: &PoolArgs<$n>) -> Tensor {
            $of(x, args)
        }
    )* };
}
named! {
    max_pool1d max_pool 1 "[`max_pool`] over one axis.";
    max_pool2d max_pool 2 "[`max_pool`] over two axes.";
    max_pool3d max_pool 3 "[`max_pool`] over three axes.";
    avg_pool1d avg_pool 1 "[`avg_pool`] over one axis.";
    avg_pool2d avg_pool 2 "[`avg_pool`] over two axes.";
    avg_pool3d avg_pool 3 "[`avg_pool`] over three axes.";
}

macro_rules! named_lp {
    ($($name:ident $n:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[track_caller]
        pub fn $name(x: &Tensor, p: f64, args: &PoolArgs<$n>) -> Tensor {
            lp_pool(x, p, args)
        }
    )* };
}
named_lp! {
    lp_pool1d 1 "[`lp_pool`] over one axis.";
    lp_pool2d 2 "[`lp_pool`] over two axes.";
    lp_pool3d 3 "[`lp_pool`] over three axes.";
}
