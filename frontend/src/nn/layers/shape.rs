//! Layers that lay out elements anew: shapes, padding, resampling; and distances.

use super::plain::plain_layers;
use crate::nn::dim::{Dim, IntoShape};
use crate::nn::ops::functional::{self, FoldArgs, Interpolate, Interpolation, PadMode, PerAxis};
use crate::nn::{Forward, Module, Tensor, Visitor, enter};

plain_layers! {
    /// One axis for those from `start_dim` to `end_dim`.
    Flatten() { start_dim: i64 = 1, end_dim: i64 = -1 } (self, x) x.flatten(self.start_dim, self.end_dim);
    /// [.., c * r * r, h, w] as [.., c, h * r, w * r].
    PixelShuffle(upscale_factor: i64) (self, x) functional::pixel_shuffle(x, self.upscale_factor);
    /// [.., c, h * r, w * r] as [.., c * r * r, h, w].
    PixelUnshuffle(downscale_factor: i64) (self, x) functional::pixel_unshuffle(x, self.downscale_factor);
    /// Channels in the order that takes one of each group in turn.
    ChannelShuffle(groups: i64) (self, x) functional::channel_shuffle(x, self.groups);
    /// Windows as columns.
    Unfold(args: FoldArgs) (self, x) functional::unfold(x, &self.args);
    /// Columns added up in their places.
    Fold(output_size: [i64; 2], args: FoldArgs) (self, x) functional::fold(x, self.output_size, &self.args);
    /// The cosine of the angle of vectors along an axis.
    CosineSimilarity() { dim: i64 = 1, eps: f64 = 1e-8 }
        (self, x1, x2) functional::cosine_similarity(x1, x2, self.dim, self.eps);
    /// The norm of differences along the last axis.
    PairwiseDistance() { p: f64 = 2.0, eps: f64 = 1e-6, keepdim: bool = false }
        (self, x1, x2) functional::pairwise_distance(x1, x2, self.p, self.eps, self.keepdim);
}

macro_rules! leaf {
    ($name:ident) => {
        impl Module for $name {
            fn visit(&self, _: &mut Visitor<'_>) {}
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                $name::forward(self, x)
            }
        }
    };
}

macro_rules! pads {
    ($($(#[$doc:meta])* $name:ident $n:literal $mode:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name([i64; $n]);

        impl $name {
            /// One number for all sides, or two an axis, before and after, for the last axis first.
            pub fn new(padding: impl PerAxis<$n>) -> $name {
                $name(padding.per_axis())
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::pad(x, &self.0, $mode)
            }
        }

        leaf!($name);
    )* };
}

pads! {
    /// Zeros around the last axis.
    ZeroPad1d 2 PadMode::Constant(0.0);
    /// Zeros around the last two axes.
    ZeroPad2d 4 PadMode::Constant(0.0);
    /// Zeros around the last three axes.
    ZeroPad3d 6 PadMode::Constant(0.0);
    /// Elements mirrored at the ends of the last axis.
    ReflectionPad1d 2 PadMode::Reflect;
    /// Elements mirrored at the ends of the last two axes.
    ReflectionPad2d 4 PadMode::Reflect;
    /// Elements mirrored at the ends of the last three axes.
    ReflectionPad3d 6 PadMode::Reflect;
    /// The elements at the ends of the last axis.
    ReplicationPad1d 2 PadMode::Replicate;
    /// The elements at the ends of the last two axes.
    ReplicationPad2d 4 PadMode::Replicate;
    /// The elements at the ends of the last three axes.
    ReplicationPad3d 6 PadMode::Replicate;
    /// The elements from the other end of the last axis.
    CircularPad1d 2 PadMode::Circular;
    /// The elements from the other end of the last two axes.
    CircularPad2d 4 PadMode::Circular;
    /// The elements from the other end of the last three axes.
    CircularPad3d 6 PadMode::Circular;
}

macro_rules! constant_pads {
    ($($(#[$doc:meta])* $name:ident $n:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name([i64; $n], f64);

        impl $name {
            /// One number for all sides, or two an axis, before and after, for the last axis first; and the value.
            pub fn new(padding: impl PerAxis<$n>, value: f64) -> $name {
                $name(padding.per_axis(), value)
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::pad(x, &self.0, PadMode::Constant(self.1))
            }
        }

        leaf!($name);
    )* };
}
constant_pads! {
    /// A number around the last axis.
    ConstantPad1d 2;
    /// A number around the last two axes.
    ConstantPad2d 4;
    /// A number around the last three axes.
    ConstantPad3d 6;
}

/// Several axes for one; one of the sizes may be -1.
#[derive(Clone, Debug)]
pub struct Unflatten {
    dim: i64,
    sizes: Vec<i64>,
}

impl Unflatten {
    /// The axis, and the sizes it becomes.
    pub fn new(dim: i64, sizes: &[i64]) -> Unflatten {
        Unflatten { dim, sizes: sizes.to_vec() }
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let at = std::panic::Location::caller();
        let _entered = enter(self);
        let Some(a) = x.axis(self.dim, at) else { return Tensor::FAILED };
        let mut shape = x.shape();
        let whole = shape[a];
        let rest: i64 = self.sizes.iter().filter(|s| **s != -1).product();
        let sizes = self.sizes.iter().map(|s| if *s == -1 { whole / rest } else { Dim::from(*s) });
        shape.splice(a..=a, sizes.collect::<Vec<Dim>>());
        x.reshape(shape)
    }
}

leaf!(Unflatten);

/// Resampling of space.
#[derive(Clone, Debug)]
pub struct Upsample {
    size: Option<Vec<i64>>,
    scale_factor: Option<Vec<f64>>,
    mode: Interpolation,
    align_corners: bool,
}

impl Upsample {
    /// To these sizes, one for each axis of space.
    pub fn to_size(size: &[i64]) -> Upsample {
        Upsample {
            size: Some(size.to_vec()),
            scale_factor: None,
            mode: Interpolation::Nearest,
            align_corners: false,
        }
    }

    /// By these factors, one for each axis of space.
    pub fn by(scale_factor: &[f64]) -> Upsample {
        Upsample {
            size: None,
            scale_factor: Some(scale_factor.to_vec()),
            mode: Interpolation::Nearest,
            align_corners: false,
        }
    }

    /// How elements are made of their neighbours.
    pub fn mode(mut self, mode: Interpolation) -> Upsample {
        self.mode = mode;
        self
    }

    /// The outermost elements stay in place.
    pub fn align_corners(mut self, align_corners: bool) -> Upsample {
        self.align_corners = align_corners;
        self
    }

    /// The result.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let _entered = enter(self);
        let args = Interpolate {
            size: self.size.as_ref().map(|s| s.into_shape()),
            scale_factor: self.scale_factor.clone(),
            mode: self.mode,
            align_corners: self.align_corners,
        };
        functional::interpolate(x, &args)
    }
}

leaf!(Upsample);
