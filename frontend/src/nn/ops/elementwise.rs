//! Functions of one operand, element by element. Functions of floats take integers as f32, as PyTorch does.

use super::arith::float;
use crate::nn::exec::apply;
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;

macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident($x:ident, $at:ident) $body:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                let $at = Location::caller();
                let $x = self;
                $body
            }
        )* }
    };
}
functions! {
    /// `-x`.
    neg(x, at) apply(ops::Neg {}, &[x], at);
    /// `|x|`.
    abs(x, at) apply(ops::Abs {}, &[x], at);
    /// -1, 0 or 1.
    sign(x, at) apply(ops::Sign {}, &[x], at);
    /// `e^x`.
    exp(x, at) apply(ops::Exp {}, &[&float(x, at)], at);
    /// Natural logarithm.
    log(x, at) apply(ops::Log {}, &[&float(x, at)], at);
    /// Square root.
    sqrt(x, at) apply(ops::Sqrt {}, &[&float(x, at)], at);
    /// `1 / sqrt(x)`.
    rsqrt(x, at) apply(ops::Reciprocal {}, &[&apply(ops::Sqrt {}, &[&float(x, at)], at)], at);
    /// `1 / x`.
    reciprocal(x, at) apply(ops::Reciprocal {}, &[&float(x, at)], at);
    /// `x * x`.
    square(x, _at) x.mul(x);
    /// Sine.
    sin(x, at) apply(ops::Sin {}, &[&float(x, at)], at);
    /// Cosine.
    cos(x, at) apply(ops::Cos {}, &[&float(x, at)], at);
    /// Tangent.
    tan(x, at) apply(ops::Tan {}, &[&float(x, at)], at);
    /// Hyperbolic tangent.
    tanh(x, at) apply(ops::Tanh {}, &[&float(x, at)], at);
    /// `1 / (1 + e^-x)`.
    sigmoid(x, at) apply(ops::Sigmoid {}, &[&float(x, at)], at);
    /// Error function.
    erf(x, at) apply(ops::Erf {}, &[&float(x, at)], at);
    /// `max(x, 0)`.
    relu(x, at) apply(ops::Relu {}, &[x], at);
    /// Gaussian error linear unit, by erf.
    gelu(x, at) apply(ops::Gelu { tanh: false }, &[x], at);
    /// Gaussian error linear unit, approximated by tanh.
    gelu_tanh(x, at) apply(ops::Gelu { tanh: true }, &[x], at);
    /// `x * sigmoid(x)`, also called swish.
    silu(x, at) x.mul(apply(ops::Sigmoid {}, &[x], at));
    /// Greatest integer not above.
    floor(x, at) if x.dtype().is_float() { apply(ops::Floor {}, &[x], at) } else { x.clone() };
    /// Least integer not below.
    ceil(x, at) if x.dtype().is_float() { apply(ops::Ceil {}, &[x], at) } else { x.clone() };
    /// Nearest integer, halves to even.
    round(x, at) if x.dtype().is_float() { apply(ops::Round {}, &[x], at) } else { x.clone() };
}
