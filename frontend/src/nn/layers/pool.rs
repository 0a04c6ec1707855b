//! Pools.

use crate::nn::ops::functional::{self, PoolArgs};
use crate::nn::{Forward, Module, Tensor, Visitor, enter};

macro_rules! pools {
    ($($(#[$doc:meta])* $name:ident $n:literal $function:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(PoolArgs<$n>);

        impl $name {
            /// Windows of one extent, side by side. The methods change that.
            pub fn new(kernel: i64) -> $name {
                $name(PoolArgs::new([kernel; $n]))
            }

            /// With all that a pool has.
            pub fn with(args: PoolArgs<$n>) -> $name {
                $name(args)
            }

            /// The same step on every axis.
            pub fn stride(mut self, stride: i64) -> $name {
                self.0.stride = Some([stride; $n]);
                self
            }

            /// The same padding on every axis.
            pub fn padding(mut self, padding: i64) -> $name {
                self.0.padding = [padding; $n];
                self
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::$function(x, &self.0)
            }
        }

        impl Module for $name {
            fn visit(&self, _: &mut Visitor<'_>) {}
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                $name::forward(self, x)
            }
        }
    )* };
}
pools! {
    /// Greatest element of windows over one axis.
    MaxPool1d 1 max_pool;
    /// Greatest element of windows over two axes.
    MaxPool2d 2 max_pool;
    /// Greatest element of windows over three axes.
    MaxPool3d 3 max_pool;
    /// Mean of windows over one axis.
    AvgPool1d 1 avg_pool;
    /// Mean of windows over two axes.
    AvgPool2d 2 avg_pool;
    /// Mean of windows over three axes.
    AvgPool3d 3 avg_pool;
}
