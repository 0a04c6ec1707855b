//! Convolutions.

use crate::nn::ops::functional::{self, ConvArgs};
use crate::nn::{Forward, Module, Param, Tensor, enter, init};

/// Convolution over `N` axes of space.
#[derive(Clone, Module)]
pub struct Conv<const N: usize> {
    /// [out, in / groups, kernel..].
    pub weight: Param,
    /// [out].
    pub bias: Option<Param>,
    #[module(skip)]
    args: ConvArgs<N>,
}

/// Over one axis.
pub type Conv1d = Conv<1>;
/// Over two axes.
pub type Conv2d = Conv<2>;
/// Over three axes.
pub type Conv3d = Conv<3>;

impl<const N: usize> Conv<N> {
    /// A kernel of the same extent on every axis, stride 1, no padding, with bias. The methods change that.
    pub fn new(in_channels: usize, out_channels: usize, kernel: usize) -> Self {
        Self::with(in_channels, out_channels, [kernel; N], ConvArgs::default(), true)
    }

    /// With all that a convolution has.
    pub fn with(
        in_channels: usize,
        out_channels: usize,
        kernel: [usize; N],
        args: ConvArgs<N>,
        bias: bool,
    ) -> Self {
        let mut shape = vec![out_channels, in_channels / args.groups.max(1) as usize];
        shape.extend(kernel);
        let bound = 1.0 / (init::fan_in(&shape).max(1) as f64).sqrt();
        Conv {
            weight: Param::new(init::kaiming_uniform(&shape, 5f64.sqrt())),
            bias: bias.then(|| Param::new(init::uniform(&[out_channels], -bound, bound))),
            args,
        }
    }

    /// The same step on every axis.
    pub fn stride(mut self, stride: i64) -> Self {
        self.args.stride = [stride; N];
        self
    }

    /// The same padding on every axis.
    pub fn padding(mut self, padding: i64) -> Self {
        self.args.padding = [padding; N];
        self
    }

    /// The same dilation on every axis.
    pub fn dilation(mut self, dilation: i64) -> Self {
        self.args.dilation = [dilation; N];
        self
    }

    /// Without bias.
    pub fn no_bias(mut self) -> Self {
        self.bias = None;
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        functional::conv(x, &self.weight, self.bias.as_deref(), &self.args)
    }
}

impl<const N: usize> Forward for Conv<N> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        Conv::forward(self, x)
    }
}
