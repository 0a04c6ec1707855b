//! Convolutions and transposed ones.

use crate::nn::ops::functional::{self, ConvArgs, ConvTransposeArgs, PadMode, Padding, PerAxis};
use crate::nn::{Forward, Module, Param, Tensor, enter, init};

/// Weight and bias as both kinds begin: uniform, by the elements that one output adds up.
fn fresh(shape: &[usize], out: usize, bias: bool) -> (Param, Option<Param>) {
    let bound = 1.0 / (init::fan_in(shape).max(1) as f64).sqrt();
    let weight = Param::new(init::kaiming_uniform(shape, 5f64.sqrt()));
    (weight, bias.then(|| Param::new(init::uniform(&[out], -bound, bound))))
}

fn extents(weight: &Param) -> Vec<usize> {
    weight.shape().iter().map(|d| d.to_usize()).collect()
}

/// The parts of both numbers of channels that belong to one group.
#[track_caller]
fn grouped(channels: [usize; 2], groups: i64) -> [usize; 2] {
    let at = std::panic::Location::caller();
    let g = usize::try_from(groups).unwrap_or(0);
    if g == 0 || channels.iter().any(|c| c % g != 0) {
        let m = format!("{groups} groups of {} input and {} output channels", channels[0], channels[1]);
        functional::refuse("E-NN-099", m, "the groups must divide both", at);
        return channels;
    }
    channels.map(|c| c / g)
}

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
    /// Stride 1, no padding, with bias. The methods change that.
    #[track_caller]
    pub fn new(in_channels: usize, out_channels: usize, kernel: impl PerAxis<N>) -> Self {
        let kernel = kernel.per_axis().map(|k| k.max(0) as usize);
        Self::with(in_channels, out_channels, kernel, ConvArgs::default(), true)
    }

    /// With all that a convolution has.
    #[track_caller]
    pub fn with(
        in_channels: usize,
        out_channels: usize,
        kernel: [usize; N],
        args: ConvArgs<N>,
        bias: bool,
    ) -> Self {
        let [each, _] = grouped([in_channels, out_channels], args.groups);
        let shape = [&[out_channels, each][..], &kernel].concat();
        let (weight, bias) = fresh(&shape, out_channels, bias);
        Conv { weight, bias, args }
    }

    /// Step of the kernel.
    pub fn stride(mut self, stride: impl PerAxis<N>) -> Self {
        self.args.stride = stride.per_axis();
        self
    }

    /// Padding on both sides; also [`Padding::Same`].
    pub fn padding(mut self, padding: impl Into<Padding<N>>) -> Self {
        self.args.padding = padding.into();
        self
    }

    /// What the padding consists of; zeros else.
    pub fn padding_mode(mut self, mode: PadMode) -> Self {
        self.args.padding_mode = mode;
        self
    }

    /// Distance of the kernel's elements.
    pub fn dilation(mut self, dilation: impl PerAxis<N>) -> Self {
        self.args.dilation = dilation.per_axis();
        self
    }

    /// Groups of channels. The parameters begin anew, with another shape.
    #[track_caller]
    pub fn groups(self, groups: i64) -> Self {
        let shape = extents(&self.weight);
        let inputs = shape[1] * self.args.groups.max(1) as usize;
        let kernel = std::array::from_fn(|i| shape[i + 2]);
        let args = ConvArgs { groups, ..self.args };
        Self::with(inputs, shape[0], kernel, args, self.bias.is_some())
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

/// Transposed convolution over `N` axes of space.
#[derive(Clone, Module)]
pub struct ConvTranspose<const N: usize> {
    /// [in, out / groups, kernel..].
    pub weight: Param,
    /// [out].
    pub bias: Option<Param>,
    #[module(skip)]
    args: ConvTransposeArgs<N>,
}

/// Over one axis.
pub type ConvTranspose1d = ConvTranspose<1>;
/// Over two axes.
pub type ConvTranspose2d = ConvTranspose<2>;
/// Over three axes.
pub type ConvTranspose3d = ConvTranspose<3>;

impl<const N: usize> ConvTranspose<N> {
    /// Stride 1, no padding, with bias. The methods change that.
    #[track_caller]
    pub fn new(in_channels: usize, out_channels: usize, kernel: impl PerAxis<N>) -> Self {
        let kernel = kernel.per_axis().map(|k| k.max(0) as usize);
        Self::with(in_channels, out_channels, kernel, ConvTransposeArgs::default(), true)
    }

    /// With all that a transposed convolution has.
    #[track_caller]
    pub fn with(
        in_channels: usize,
        out_channels: usize,
        kernel: [usize; N],
        args: ConvTransposeArgs<N>,
        bias: bool,
    ) -> Self {
        let [_, each] = grouped([in_channels, out_channels], args.groups);
        let shape = [&[in_channels, each][..], &kernel].concat();
        let (weight, bias) = fresh(&shape, out_channels, bias);
        ConvTranspose { weight, bias, args }
    }

    /// Step of the results.
    pub fn stride(mut self, stride: impl PerAxis<N>) -> Self {
        self.args.stride = stride.per_axis();
        self
    }

    /// Results cut off on both sides.
    pub fn padding(mut self, padding: impl PerAxis<N>) -> Self {
        self.args.padding = padding.per_axis();
        self
    }

    /// Results more at the end.
    pub fn output_padding(mut self, output_padding: impl PerAxis<N>) -> Self {
        self.args.output_padding = output_padding.per_axis();
        self
    }

    /// Distance of the kernel's elements.
    pub fn dilation(mut self, dilation: impl PerAxis<N>) -> Self {
        self.args.dilation = dilation.per_axis();
        self
    }

    /// Groups of channels. The parameters begin anew, with another shape.
    #[track_caller]
    pub fn groups(self, groups: i64) -> Self {
        let shape = extents(&self.weight);
        let outputs = shape[1] * self.args.groups.max(1) as usize;
        let kernel = std::array::from_fn(|i| shape[i + 2]);
        let args = ConvTransposeArgs { groups, ..self.args };
        Self::with(shape[0], outputs, kernel, args, self.bias.is_some())
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
        functional::conv_transpose(x, &self.weight, self.bias.as_deref(), &self.args)
    }
}

impl<const N: usize> Forward for ConvTranspose<N> {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        ConvTranspose::forward(self, x)
    }
}
