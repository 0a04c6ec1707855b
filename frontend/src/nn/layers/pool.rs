//! Pools.

use crate::nn::ops::functional::{self, PerAxis, PoolArgs};
use crate::nn::{Forward, Module, Tensor, Visitor, enter};

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

macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident $n:literal $function:ident { $($also:tt)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(PoolArgs<$n>);

        impl $name {
            /// Windows side by side. The methods change that.
            pub fn new(kernel: impl PerAxis<$n>) -> $name {
                $name(PoolArgs::new(kernel.per_axis()))
            }

            /// With all that a pool has.
            pub fn with(args: PoolArgs<$n>) -> $name {
                $name(args)
            }

            /// Steps of the windows.
            pub fn stride(mut self, stride: impl PerAxis<$n>) -> $name {
                self.0.stride = Some(stride.per_axis());
                self
            }

            /// Padding on both sides.
            pub fn padding(mut self, padding: impl PerAxis<$n>) -> $name {
                self.0.padding = padding.per_axis();
                self
            }

            /// Rounds the number of windows up.
            pub fn ceil_mode(mut self, ceil_mode: bool) -> $name {
                self.0.ceil_mode = ceil_mode;
                self
            }

            pools!(@ $name $n $($also)*);

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::$function(x, &self.0)
            }
        }

        leaf!($name);
    )* };
    (@ $name:ident $n:literal dilation) => {
        /// Distance of a window's elements.
        pub fn dilation(mut self, dilation: impl PerAxis<$n>) -> $name {
            self.0.dilation = dilation.per_axis();
            self
        }
    };
    (@ $name:ident $n:literal count_include_pad) => {
        /// Whether padding counts as zeros (true else).
        pub fn count_include_pad(mut self, count_include_pad: bool) -> $name {
            self.0.count_include_pad = count_include_pad;
            self
        }
    };
}
pools! {
    /// Greatest element of windows over one axis.
    MaxPool1d 1 max_pool { dilation }
    /// Greatest element of windows over two axes.
    MaxPool2d 2 max_pool { dilation }
    /// Greatest element of windows over three axes.
    MaxPool3d 3 max_pool { dilation }
    /// Mean of windows over one axis.
    AvgPool1d 1 avg_pool { count_include_pad }
    /// Mean of windows over two axes.
    AvgPool2d 2 avg_pool { count_include_pad }
    /// Mean of windows over three axes.
    AvgPool3d 3 avg_pool { count_include_pad }
}

macro_rules! power_pools {
    ($($(#[$doc:meta])* $name:ident $n:literal;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            p: f64,
            args: PoolArgs<$n>,
        }

        impl $name {
            /// The power, and windows side by side.
            pub fn new(norm_type: f64, kernel: impl PerAxis<$n>) -> $name {
                $name { p: norm_type, args: PoolArgs::new(kernel.per_axis()) }
            }

            /// Steps of the windows.
            pub fn stride(mut self, stride: impl PerAxis<$n>) -> $name {
                self.args.stride = Some(stride.per_axis());
                self
            }

            /// Rounds the number of windows up.
            pub fn ceil_mode(mut self, ceil_mode: bool) -> $name {
                self.args.ceil_mode = ceil_mode;
                self
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::lp_pool(x, self.p, &self.args)
            }
        }

        leaf!($name);
    )* };
}
power_pools! {
    /// `(sum of x^p)^(1/p)` of windows over one axis.
    LPPool1d 1;
    /// `(sum of x^p)^(1/p)` of windows over two axes.
    LPPool2d 2;
    /// `(sum of x^p)^(1/p)` of windows over three axes.
    LPPool3d 3;
}

macro_rules! adaptive {
    ($($(#[$doc:meta])* $name:ident $n:literal $function:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name([Option<i64>; $n]);

        impl $name {
            /// The wanted sizes.
            pub fn new(size: impl PerAxis<$n>) -> $name {
                $name(size.per_axis().map(Some))
            }

            /// The wanted sizes, where None keeps an axis.
            pub fn with(size: [Option<i64>; $n]) -> $name {
                $name(size)
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::$function(x, self.0)
            }
        }

        leaf!($name);
    )* };
}
adaptive! {
    /// Means over one axis, as many as wanted.
    AdaptiveAvgPool1d 1 adaptive_avg_pool;
    /// Means over two axes, as many as wanted.
    AdaptiveAvgPool2d 2 adaptive_avg_pool;
    /// Means over three axes, as many as wanted.
    AdaptiveAvgPool3d 3 adaptive_avg_pool;
    /// Maxima over one axis, as many as wanted.
    AdaptiveMaxPool1d 1 adaptive_max_pool;
    /// Maxima over two axes, as many as wanted.
    AdaptiveMaxPool2d 2 adaptive_max_pool;
    /// Maxima over three axes, as many as wanted.
    AdaptiveMaxPool3d 3 adaptive_max_pool;
}
