//! What writes layers that hold no parameters: arguments that must be given, those with defaults (each a method), and
//! buffers that may be given.

macro_rules! default_layer {
    ($name:ident) => {
        impl Default for $name {
            fn default() -> $name {
                $name::new()
            }
        }
    };
    ($name:ident $($required:ident)+) => {};
}
pub(super) use default_layer;

macro_rules! forward_layer {
    ($name:ident $x:ident) => {
        impl $crate::nn::Forward for $name {
            #[track_caller]
            fn forward(&self, x: &$crate::nn::Tensor) -> $crate::nn::Tensor {
                $name::forward(self, x)
            }
        }
    };
    ($name:ident $($x:ident)+) => {};
}
pub(super) use forward_layer;

macro_rules! plain_layers {
    ($(
        $(#[$doc:meta])*
        $name:ident($($must:ident: $must_ty:ty),*)
        $({ $($may:ident: $may_ty:ty = $default:expr),* })?
        $([ $($buffer:ident),* ])?
        ($me:ident, $($x:ident),+) $body:expr;
    )*) => { $(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name {
            $($must: $must_ty,)*
            $($($may: $may_ty,)*)?
            $($($buffer: Option<$crate::nn::Buffer>,)*)?
            // of a size, since modules are told apart by their address
            _place: u8,
        }

        impl $name {
            /// With PyTorch's defaults.
            pub fn new($($must: $must_ty),*) -> $name {
                $name { $($must,)* $($($may: $default,)*)? $($($buffer: None,)*)? _place: 0 }
            }

            $($(
                /// PyTorch's argument of this name.
                pub fn $may(mut self, $may: $may_ty) -> $name {
                    self.$may = $may;
                    self
                }
            )*)?

            $($(
                /// PyTorch's argument of this name; it is in the state dict.
                #[track_caller]
                pub fn $buffer(mut self, $buffer: impl Into<$crate::nn::Tensor>) -> $name {
                    self.$buffer = Some($crate::nn::Buffer::new($buffer));
                    self
                }
            )*)?

            /// The result.
            #[track_caller]
            pub fn forward(&$me, $($x: &$crate::nn::Tensor),+) -> $crate::nn::Tensor {
                let _entered = $crate::nn::enter($me);
                $body
            }
        }

        impl $crate::nn::Module for $name {
            fn visit(&self, v: &mut $crate::nn::Visitor<'_>) {
                $($(v.child(stringify!($buffer), &self.$buffer);)*)?
                let _ = v;
            }
        }

        $crate::nn::layers::plain::default_layer!($name $($must)*);
        $crate::nn::layers::plain::forward_layer!($name $($x)+);
    )* };
}
pub(super) use plain_layers;
