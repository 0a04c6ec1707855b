//! `torch.nn.functional`: what layers compute, with every operand given.

use super::arith::{cast, float};
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::{Tensor, promote_types};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;

type At = &'static Location<'static>;

/// `x w^T + b`; `w` is [out, in].
#[track_caller]
pub fn linear(x: &Tensor, w: &Tensor, b: Option<&Tensor>) -> Tensor {
    let y = x.matmul(&w.transpose(-1, -2));
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

/// Strides, padding, dilation and groups of a convolution over `N` axes.
#[derive(Clone, Copy, Debug)]
pub struct ConvArgs<const N: usize> {
    /// Step of the kernel.
    pub stride: [i64; N],
    /// Zeros on both sides.
    pub padding: [i64; N],
    /// Distance of the kernel's elements.
    pub dilation: [i64; N],
    /// Groups of channels.
    pub groups: i64,
}

impl<const N: usize> Default for ConvArgs<N> {
    fn default() -> Self {
        ConvArgs { stride: [1; N], padding: [0; N], dilation: [1; N], groups: 1 }
    }
}

/// An operand without a batch axis gets one, as the op wants; the result loses it.
#[track_caller]
pub(crate) fn batched(
    x: &Tensor,
    rank: usize,
    what: &str,
    at: At,
    f: impl FnOnce(&Tensor) -> Tensor,
) -> Tensor {
    match x.dim() {
        _ if x.failed() => Tensor::FAILED,
        r if r == rank => f(x),
        r if r + 1 == rank => {
            let y = f(&x.unsqueeze(0));
            let shape = y.shape().split_off(1.min(y.dim()));
            super::shape::reshaped(&y, &shape, at)
        }
        r => {
            let m = format!("{what} of a tensor of rank {r}: {x:#}");
            let help =
                format!("give rank {rank} (batch, channels, space), or {} without the batch", rank - 1);
            report(Diag::error("E-NN-080", m).help(help), at);
            Tensor::FAILED
        }
    }
}

/// Convolution of x [n, c, space..] with w [out, c / groups, kernel..] over `N` axes of space.
#[track_caller]
pub fn conv<const N: usize>(x: &Tensor, w: &Tensor, b: Option<&Tensor>, args: &ConvArgs<N>) -> Tensor {
    let at = Location::caller();
    let op = ops::Conv {
        strides: args.stride.to_vec(),
        pads: [args.padding, args.padding].concat(),
        dilations: args.dilation.to_vec(),
        groups: args.groups,
        channels_last: false,
    };
    let d = promote_types(x.dtype(), w.dtype());
    batched(x, N + 2, &format!("conv{N}d"), at, |x| {
        let mut ins = vec![cast(x, d, at), cast(w, d, at)];
        ins.extend(b.map(|b| cast(b, d, at)));
        apply(op, &ins.iter().collect::<Vec<_>>(), at)
    })
}

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
    batched(x, N + 2, &format!("max_pool{N}d"), at, |x| apply(op, &[x], at))
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
    batched(x, N + 2, &format!("avg_pool{N}d"), at, |x| apply(op, &[x], at))
}

/// Normalisation over the last axes, as many as `shape` has, which names their sizes.
#[track_caller]
pub fn layer_norm(
    x: &Tensor,
    shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Tensor {
    let at = Location::caller();
    let axes: Vec<i64> = (1..=shape.len() as i64).map(|i| -i).rev().collect();
    if x.failed() {
        return Tensor::FAILED;
    }
    let dims = x.shape();
    let fits = dims.len() >= shape.len()
        && dims[dims.len() - shape.len()..].iter().zip(shape).all(|(d, s)| d.as_known() == Some(*s));
    if !fits {
        let m = format!("layer_norm over {shape:?} of {x:#}");
        report(
            Diag::error("E-NN-081", m).help("the last dims of the operand must be the normalised shape"),
            at,
        );
        return Tensor::FAILED;
    }
    let d = x.dtype();
    let ones = || Tensor::ones(shape, d);
    let scale = weight.map_or_else(ones, |w| cast(w, d, at));
    let mut ins = vec![x.clone(), scale];
    ins.extend(bias.map(|b| cast(b, d, at)));
    apply(ops::LayerNorm { axes, epsilon: eps }, &ins.iter().collect::<Vec<_>>(), at)
}

/// Normalisation of x [n, c, ..] by given statistics of each channel.
#[track_caller]
pub fn batch_norm(
    x: &Tensor,
    mean: &Tensor,
    var: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    eps: f64,
) -> Tensor {
    apply(ops::BatchNorm { epsilon: eps }, &[x, weight, bias, mean, var], Location::caller())
}

/// `softmax(q k^T * scale + mask) v` over the last two axes; `scale` is `1 / sqrt(d)` if not given. A bool mask is true
/// where a position takes part, another one is added.
#[track_caller]
pub fn scaled_dot_product_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    is_causal: bool,
    scale: Option<f64>,
) -> Tensor {
    let at = Location::caller();
    if [q, k, v].iter().any(|t| t.failed()) {
        return Tensor::FAILED;
    }
    let width = q.size(-1);
    let scale = match (scale, width.as_known()) {
        (Some(s), _) => s,
        (None, Some(n)) if n > 0 => 1.0 / (n as f64).sqrt(),
        _ => {
            let m = format!("the scale of attention follows from the last dim of {q:#}, which is not known");
            report(Diag::error("E-NN-082", m).help("give the scale"), at);
            return Tensor::FAILED;
        }
    };
    let mut scores = q.matmul(&k.transpose(-1, -2)) * scale;
    if is_causal {
        if mask.is_some() {
            let m = "attention gets a mask and is_causal";
            report(
                Diag::error("E-NN-083", m).help("give one of them: a causal mask may be joined with &"),
                at,
            );
            return Tensor::FAILED;
        }
        let (rows, columns) =
            (Tensor::arange(q.size(-2)).unsqueeze(1), Tensor::arange(k.size(-2)).unsqueeze(0));
        scores = masked(&scores, &columns.le(&rows), at);
    } else if let Some(m) = mask {
        scores = match m.dtype() == tgc_ir::types::DType::Bool {
            true => masked(&scores, m, at),
            false => scores + m,
        };
    }
    scores.softmax(-1).matmul(v)
}

/// Minus infinity where `keep` is false.
#[track_caller]
fn masked(scores: &Tensor, keep: &Tensor, at: At) -> Tensor {
    let low = Tensor::number(scores.dtype(), f64::NEG_INFINITY);
    apply(ops::Select {}, &[keep, scores, &low], at)
}

/// Mean squared difference, mean over all elements.
#[track_caller]
pub fn mse_loss(x: &Tensor, target: &Tensor) -> Tensor {
    let d = float(x, Location::caller()) - target;
    (&d * &d).mean(&[], false)
}
