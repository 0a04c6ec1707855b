//! Windows as columns, and the reverse.

use super::{ConvTransposeArgs, any_failed, conv_transpose, refuse};
use crate::nn::dim::Dim;
use crate::nn::ops::shape::{reshaped, sliced};
use crate::nn::tensor::Tensor;
use std::panic::Location;

/// Windows over two axes.
#[derive(Clone, Copy, Debug)]
pub struct FoldArgs {
    /// Extents.
    pub kernel: [i64; 2],
    /// Distance of a window's elements.
    pub dilation: [i64; 2],
    /// Zeros on both sides.
    pub padding: [i64; 2],
    /// Steps.
    pub stride: [i64; 2],
}

impl FoldArgs {
    /// Windows of these extents at every place.
    pub fn new(kernel: [i64; 2]) -> FoldArgs {
        FoldArgs { kernel, dilation: [1; 2], padding: [0; 2], stride: [1; 2] }
    }

    fn fine(&self) -> bool {
        let positive = [self.kernel, self.dilation, self.stride].concat().iter().all(|n| *n >= 1);
        positive && self.padding.iter().all(|p| *p >= 0)
    }

    /// Number of windows along axis `i` of space.
    fn windows(&self, i: usize, extent: Dim) -> Dim {
        (extent + (2 * self.padding[i] - self.dilation[i] * (self.kernel[i] - 1) - 1)) / self.stride[i] + 1
    }
}

/// The windows of x [n, c, h, w] as columns: [n, c * kernel, windows].
#[track_caller]
pub fn unfold(x: &Tensor, args: &FoldArgs) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) {
        return Tensor::FAILED;
    }
    if !matches!(x.dim(), 3 | 4) || !args.fine() {
        let m = format!("unfold by {args:?} of {x:#}");
        return refuse("E-NN-093", m, "give [n, c, h, w] or [c, h, w], and positive extents", at);
    }
    if x.dim() == 3 {
        let y = unfold(&x.unsqueeze(0), args);
        return super::squeezed(&y, 0);
    }
    let [n, c, h, w] = x.dims();
    let (rows, columns) = (args.windows(0, h), args.windows(1, w));
    let mut padded = x.clone();
    for i in 0..2 {
        padded = super::zeros_around(&padded, i + 2, args.padding[i], args.padding[i], at);
    }
    let mut parts = Vec::new();
    for i in 0..args.kernel[0] {
        let row = sliced(&padded, 2, Dim::from(i * args.dilation[0]), rows, args.stride[0], at);
        for j in 0..args.kernel[1] {
            let part = sliced(&row, 3, Dim::from(j * args.dilation[1]), columns, args.stride[1], at);
            parts.push(reshaped(&part, &[n, c, Dim::from(1), rows * columns], at));
        }
    }
    let all = Tensor::cat(&parts.iter().collect::<Vec<_>>(), 2);
    let count = args.kernel[0] * args.kernel[1];
    reshaped(&all, &[n, c * count, rows * columns], at)
}

/// Columns [n, c * kernel, windows] added up in their places: [n, c, h, w] with the sizes `output`.
#[track_caller]
pub fn fold(x: &Tensor, output: [i64; 2], args: &FoldArgs) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) {
        return Tensor::FAILED;
    }
    let count = args.kernel[0] * args.kernel[1];
    let channels = (x.dim() == 3 && args.fine()).then(|| x.shape()[1].as_known()).flatten();
    let windows = [0, 1].map(|i| args.windows(i, Dim::from(output[i])).as_known().unwrap_or(0));
    let known = x.shape().get(2).and_then(|n| n.as_known());
    let fits = windows.iter().all(|w| *w >= 1) && known.is_none_or(|n| n == windows[0] * windows[1]);
    let Some(c) = channels.filter(|c| fits && c % count == 0).map(|c| c / count) else {
        let m = format!("fold by {args:?} of {x:#} to {output:?}");
        return refuse(
            "E-NN-093",
            m,
            "give [n, c * kernel, windows] with as many windows as the output has",
            at,
        );
    };
    let columns =
        reshaped(x, &[x.shape()[0], Dim::from(c * count), windows[0].into(), windows[1].into()], at);
    // each element of a window is a channel, whose kernel is 1 at its place
    let eye = Tensor::arange(count).unsqueeze(1).eq(Tensor::arange(count)).to_dtype(x.dtype());
    let kernel = eye.unsqueeze(0).expand((c, count, count));
    let kernel = kernel.reshape((c * count, 1, args.kernel[0], args.kernel[1]));
    let whole = |i: usize| {
        (windows[i] - 1) * args.stride[i] - 2 * args.padding[i] + args.dilation[i] * (args.kernel[i] - 1) + 1
    };
    let rest = [0, 1].map(|i| output[i] - whole(i));
    let args = ConvTransposeArgs {
        stride: args.stride,
        padding: args.padding,
        output_padding: rest,
        dilation: args.dilation,
        groups: c,
    };
    conv_transpose(&columns, &kernel, None, &args)
}
