//! Convolutions.

use super::{PadMode, PerAxis, batched, refuse, unbatched};
use crate::nn::exec::apply;
use crate::nn::ops::arith::cast;
use crate::nn::tensor::{Tensor, promote_types};
use std::panic::Location;
use tgc_ir::ops;

/// Padding of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding<const N: usize> {
    /// Elements on both sides of each axis.
    Of([i64; N]),
    /// As many as keep the extents at stride 1; an odd one goes behind.
    Same,
    /// None.
    Valid,
}

impl<const N: usize, P: PerAxis<N>> From<P> for Padding<N> {
    fn from(p: P) -> Padding<N> {
        Padding::Of(p.per_axis())
    }
}

/// Strides, padding, dilation and groups of a convolution over `N` axes.
#[derive(Clone, Copy, Debug)]
pub struct ConvArgs<const N: usize> {
    /// Step of the kernel.
    pub stride: [i64; N],
    /// Elements around the operand.
    pub padding: Padding<N>,
    /// What these elements are.
    pub padding_mode: PadMode,
    /// Distance of the kernel's elements.
    pub dilation: [i64; N],
    /// Groups of channels.
    pub groups: i64,
}

impl<const N: usize> Default for ConvArgs<N> {
    fn default() -> Self {
        ConvArgs {
            stride: [1; N],
            padding: Padding::Valid,
            padding_mode: PadMode::Constant(0.0),
            dilation: [1; N],
            groups: 1,
        }
    }
}

impl<const N: usize> ConvArgs<N> {
    /// Elements before and after each axis; None if the kernel's extents would be needed and are not known.
    fn pads(&self, w: &Tensor) -> Option<([i64; N], [i64; N])> {
        match self.padding {
            Padding::Of(p) => Some((p, p)),
            Padding::Valid => Some(([0; N], [0; N])),
            Padding::Same => {
                let (mut before, mut after) = ([0; N], [0; N]);
                let shape = w.shape();
                for i in 0..N {
                    let total = self.dilation[i] * (shape.get(i + 2)?.as_known()? - 1);
                    (before[i], after[i]) = (total / 2, total - total / 2);
                }
                Some((before, after))
            }
        }
    }
}

/// Convolution of x [n, c, space..] with w [out, c / groups, kernel..] over `N` axes of space.
#[track_caller]
pub fn conv<const N: usize>(x: &Tensor, w: &Tensor, b: Option<&Tensor>, args: &ConvArgs<N>) -> Tensor {
    let at = Location::caller();
    if super::any_failed(&[x, w]) {
        return Tensor::FAILED;
    }
    if args.padding == Padding::Same && args.stride != [1; N] {
        let m = format!("conv{N}d with padding Same and stride {:?}", args.stride);
        return refuse("E-NN-086", m, "Padding::Same is for stride 1: give the padding in numbers", at);
    }
    let Some((before, after)) = args.pads(w) else {
        let m = format!("conv{N}d with padding Same and the weight {w:#}");
        return refuse("E-NN-086", m, "the kernel's extents must be known", at);
    };
    let zeros = args.padding_mode == PadMode::Constant(0.0);
    let d = promote_types(x.dtype(), w.dtype());
    let Some((x, lone)) = batched(x, N + 2, &format!("conv{N}d"), at) else { return Tensor::FAILED };
    let mut x = cast(&x, d, at);
    if !zeros {
        let sides: Vec<[i64; 2]> = (0..N).rev().map(|i| [before[i], after[i]]).collect();
        x = super::pad(&x, sides.as_flattened(), args.padding_mode);
    }
    let op = ops::Conv {
        strides: args.stride.to_vec(),
        pads: if zeros { [before, after].concat() } else { vec![0; 2 * N] },
        dilations: args.dilation.to_vec(),
        groups: args.groups,
        channels_last: false,
    };
    let mut ins = vec![x, cast(w, d, at)];
    ins.extend(b.map(|b| cast(b, d, at)));
    unbatched(apply(op, &ins.iter().collect::<Vec<_>>(), at), lone)
}

macro_rules! named {
    ($($name:ident $n:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[track_caller]
        pub fn $name(x: &Tensor, w: &Tensor, b: Option<&Tensor>, args: &ConvArgs<$n>) -> Tensor {
            conv(x, w, b, args)
        }
    )* };
}
named! {
    conv1d 1 "[`conv`] over one axis.";
    conv2d 2 "[`conv`] over two axes.";
    conv3d 3 "[`conv`] over three axes.";
}
