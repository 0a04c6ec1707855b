//! Activations. They hold nothing, but have a place in the module tree, so that indices are PyTorch's.

use crate::nn::{Forward, Module, Tensor, Visitor, enter};

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident($x:ident) $body:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            // of a size, since modules are told apart by their address
            place: u8,
        }

        impl $name {
            /// The layer.
            pub fn new() -> $name {
                $name { place: 0 }
            }

            /// The result.
            #[track_caller]
            pub fn forward(&self, $x: &Tensor) -> Tensor {
                let _entered = enter(self);
                let _ = self.place;
                $body
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
activations! {
    /// `max(x, 0)`.
    ReLU(x) x.relu();
    /// `min(max(x, 0), 6)`.
    ReLU6(x) x.relu().minimum(6);
    /// Gaussian error linear unit.
    GELU(x) x.gelu();
    /// `x * sigmoid(x)`.
    SiLU(x) x.silu();
    /// Logistic function.
    Sigmoid(x) x.sigmoid();
    /// Hyperbolic tangent.
    Tanh(x) x.tanh();
    /// The operand itself.
    Identity(x) x.clone();
}
