//! Dropouts.

use crate::nn::ops::functional;
use crate::nn::{Forward, Module, Tensor, Training, enter};

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident $function:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Module)]
        pub struct $name {
            p: f64,
            training: Training,
        }

        impl $name {
            /// With the probability of a zero.
            pub fn new(p: f64) -> $name {
                $name { p, training: Training::default() }
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Tensor {
                let _entered = enter(self);
                functional::$function(x, self.p, self.training.on())
            }
        }

        impl Default for $name {
            /// With PyTorch's probability of 0.5.
            fn default() -> $name {
                $name::new(0.5)
            }
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                $name::forward(self, x)
            }
        }
    )* };
}
dropouts! {
    /// Zeros with a probability while training, and the others scaled up to keep the mean; else the operand itself.
    Dropout dropout;
    /// Dropout of whole channels over one axis of space.
    Dropout1d dropout1d;
    /// Dropout of whole channels over two axes of space.
    Dropout2d dropout2d;
    /// Dropout of whole channels over three axes of space.
    Dropout3d dropout3d;
    /// Dropout that keeps mean and variance of what SELU gives.
    AlphaDropout alpha_dropout;
}
