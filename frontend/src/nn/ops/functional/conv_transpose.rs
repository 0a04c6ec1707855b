//! Transposed convolutions, each as one convolution: with stride s the results at positions q * s + r, for one r, are a
//! convolution with every s-th element of the kernel. The s of each axis become channels, and channels become positions
//! afterwards, so no product with a zero between elements is computed.

use super::{At, along, any_failed, batched, refuse, unbatched};
use crate::nn::dim::Dim;
use crate::nn::exec::apply;
use crate::nn::ops::arith::cast;
use crate::nn::ops::shape::{permuted, reshaped, sliced};
use crate::nn::tensor::{Tensor, promote_types};
use std::panic::Location;
use tgc_ir::ops;

/// Arguments of a transposed convolution over `N` axes.
#[derive(Clone, Copy, Debug)]
pub struct ConvTransposeArgs<const N: usize> {
    /// Step of the results.
    pub stride: [i64; N],
    /// Results cut off on both sides.
    pub padding: [i64; N],
    /// Results more at the end.
    pub output_padding: [i64; N],
    /// Distance of the kernel's elements.
    pub dilation: [i64; N],
    /// Groups of channels.
    pub groups: i64,
}

impl<const N: usize> Default for ConvTransposeArgs<N> {
    fn default() -> Self {
        ConvTransposeArgs {
            stride: [1; N],
            padding: [0; N],
            output_padding: [0; N],
            dilation: [1; N],
            groups: 1,
        }
    }
}

/// One axis of space.
struct Axis {
    kernel: i64,
    stride: i64,
    dilation: i64,
    padding: i64,
    /// Elements from the first to the last one of the dilated kernel, and the results more.
    reach: i64,
    extra: i64,
}

impl Axis {
    /// Elements of the kernel for each residue of the stride.
    fn taps(&self) -> i64 {
        (self.reach + self.stride - 1) / self.stride
    }
}

/// Transposed convolution of x [n, c, space..] with w [c, out / groups, kernel..] over `N` axes of space.
#[track_caller]
pub fn conv_transpose<const N: usize>(
    x: &Tensor,
    w: &Tensor,
    b: Option<&Tensor>,
    args: &ConvTransposeArgs<N>,
) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x, w]) {
        return Tensor::FAILED;
    }
    let axes = match axes(w, args) {
        Ok(a) => a,
        Err(what) => {
            let help = "a weight [in, out / groups, kernel..] of known extents is wanted, positive steps, groups that \
                        divide the channels, and an output_padding below the stride or the dilation";
            return refuse("E-NN-087", format!("conv_transpose{N}d: {what}"), help, at);
        }
    };
    let d = promote_types(x.dtype(), w.dtype());
    let what = format!("conv_transpose{N}d");
    let Some((x, lone)) = batched(x, N + 2, &what, at) else { return Tensor::FAILED };
    let mut y = products(&cast(&x, d, at), &cast(w, d, at), args.groups, &axes, at);
    if let Some(b) = b {
        y += along(&cast(b, d, at), 1, N + 2);
    }
    unbatched(y, lone)
}

fn axes<const N: usize>(w: &Tensor, args: &ConvTransposeArgs<N>) -> Result<Vec<Axis>, String> {
    let shape = w.shape();
    if shape.len() != N + 2 {
        return Err(format!("the weight is {w:#}"));
    }
    if args.groups < 1 || shape[0].as_known().is_some_and(|n| n % args.groups != 0) {
        return Err(format!("{} groups of the weight {w:#}", args.groups));
    }
    let mut axes = Vec::new();
    for i in 0..N {
        let Some(kernel) = shape[i + 2].as_known() else { return Err(format!("the weight is {w:#}")) };
        let (stride, dilation) = (args.stride[i], args.dilation[i]);
        let (padding, extra) = (args.padding[i], args.output_padding[i]);
        if kernel < 1 || stride < 1 || dilation < 1 || padding < 0 || extra < 0 {
            return Err(format!("{args:?} with the weight {w:#}"));
        }
        if extra >= stride.max(dilation) {
            return Err(format!("output_padding {extra} with stride {stride} and dilation {dilation}"));
        }
        let reach = (kernel - 1) * dilation + 1;
        axes.push(Axis { kernel, stride, dilation, padding, reach, extra });
    }
    Ok(axes)
}

#[track_caller]
fn products(x: &Tensor, w: &Tensor, groups: i64, axes: &[Axis], at: At) -> Tensor {
    let mut kernel = w.clone();
    for (i, a) in axes.iter().enumerate() {
        kernel = dilated(&kernel, i + 2, a, at);
    }
    let kernel = by_residue(&kernel, groups, axes, at);
    let margins: Vec<i64> = axes.iter().map(|a| a.taps() - 1).collect();
    let op = ops::Conv {
        strides: vec![1; axes.len()],
        pads: [margins.clone(), margins].concat(),
        dilations: vec![1; axes.len()],
        groups,
        channels_last: false,
    };
    let y = apply(op, &[x, &kernel], at);
    if y.failed() {
        return y;
    }
    let y = interleaved(&y, groups, axes, at);
    let mut out = y;
    for (i, a) in axes.iter().enumerate() {
        out = cut(&out, i + 2, x.shape()[i + 2], a, at);
    }
    out
}

/// The kernel with zeros between its elements, and behind them up to a multiple of the stride.
#[track_caller]
fn dilated(w: &Tensor, axis: usize, a: &Axis, at: At) -> Tensor {
    let mut w = w.clone();
    if a.dilation > 1 {
        let mut shape = w.shape();
        shape.insert(axis + 1, Dim::from(1));
        let spread = super::zeros_around(&reshaped(&w, &shape, at), axis + 1, 0, a.dilation - 1, at);
        shape.remove(axis + 1);
        shape[axis] = Dim::from(a.kernel * a.dilation);
        w = reshaped(&spread, &shape, at);
    }
    let (have, want) = (a.kernel * a.dilation, a.taps() * a.stride);
    if have > want {
        return sliced(&w, axis, Dim::from(0), Dim::from(want), 1, at);
    }
    super::zeros_around(&w, axis, 0, want - have, at)
}

/// The weight [G * C, O, kernel..] as that of a convolution, [G * residues.. * O, C, taps..], taps in reverse.
#[track_caller]
fn by_residue(w: &Tensor, groups: i64, axes: &[Axis], at: At) -> Tensor {
    if w.failed() {
        return Tensor::FAILED;
    }
    let n = axes.len();
    let ws = w.shape();
    let mut split = vec![Dim::from(groups), ws[0] / groups, ws[1]];
    split.extend(axes.iter().flat_map(|a| [Dim::from(a.taps()), Dim::from(a.stride)]));
    let (residues, taken) = ((0..n).map(|i| 4 + 2 * i), (0..n).map(|i| 3 + 2 * i));
    let perm: Vec<usize> = [0].into_iter().chain(residues).chain([2, 1]).chain(taken).collect();
    let w = permuted(&reshaped(w, &split, at), &perm, at);
    let all: i64 = axes.iter().map(|a| a.stride).product();
    let mut shape = vec![ws[1] * (groups * all), ws[0] / groups];
    shape.extend(axes.iter().map(|a| Dim::from(a.taps())));
    let mut w = reshaped(&w, &shape, at);
    for (i, a) in axes.iter().enumerate().filter(|(_, a)| a.taps() > 1) {
        w = sliced(&w, i + 2, Dim::from(a.taps() - 1), Dim::from(a.taps()), -1, at);
    }
    w
}

/// [N, G * residues.. * O, positions..] as [N, G * O, positions * stride..].
#[track_caller]
fn interleaved(y: &Tensor, groups: i64, axes: &[Axis], at: At) -> Tensor {
    let (n, ys) = (axes.len(), y.shape());
    let all: i64 = axes.iter().map(|a| a.stride).product();
    let out = ys[1] / (groups * all);
    let mut split = vec![ys[0], Dim::from(groups)];
    split.extend(axes.iter().map(|a| Dim::from(a.stride)));
    split.push(out);
    split.extend(&ys[2..]);
    let places = (0..n).flat_map(|i| [3 + n + i, 2 + i]);
    let perm: Vec<usize> = [0, 1, 2 + n].into_iter().chain(places).collect();
    let y = permuted(&reshaped(y, &split, at), &perm, at);
    let mut shape = vec![ys[0], out * groups];
    shape.extend(axes.iter().zip(&ys[2..]).map(|(a, d)| *d * a.stride));
    reshaped(&y, &shape, at)
}

/// The part that the arguments ask for, of an axis that had `from` elements; zeros where it reaches beyond the last
/// product.
#[track_caller]
fn cut(y: &Tensor, axis: usize, from: Dim, a: &Axis, at: At) -> Tensor {
    let size = (from - 1) * a.stride + (a.reach + a.extra - 2 * a.padding);
    let beyond = (a.reach + a.extra - a.padding - a.taps() * a.stride).max(0);
    let y = super::zeros_around(y, axis, 0, beyond, at);
    sliced(&y, axis, Dim::from(a.padding), size, 1, at)
}

macro_rules! named {
    ($($name:ident $n:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[track_caller]
        pub fn $name(x: &Tensor, w: &Tensor, b: Option<&Tensor>, args: &ConvTransposeArgs<$n>) -> Tensor {
            conv_transpose(x, w, b, args)
        }
    )* };
}
named! {
    conv_transpose1d 1 "[`conv_transpose`] over one axis.";
    conv_transpose2d 2 "[`conv_transpose`] over two axes.";
    conv_transpose3d 3 "[`conv_transpose`] over three axes.";
}
