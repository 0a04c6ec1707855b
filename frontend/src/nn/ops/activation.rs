//! Activation functions, as methods. Integers are taken as f32; narrow floats are computed in f32 and rounded once.

use super::arith::{cast, float};
use super::tape::{computed, formula};
use crate::formula::logarithm;
use crate::nn::error::report;
use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor, promote_types};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;

type At = &'static Location<'static>;

macro_rules! activations {
    ($($(#[$doc:meta])* pub fn $name:ident($x:ident $(, $arg:ident: $t:ty)*) $body:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self $(, $arg: $t)*) -> Tensor {
                let at = Location::caller();
                let whole = float(self, at);
                let $x = &cast(&whole, computed(whole.dtype()), at);
                cast(&$body, whole.dtype(), at)
            }
        )* }
    };
}
activations! {
    /// `x * sigmoid(x)`, also called swish.
    pub fn silu(x) x.mul(x.sigmoid());
    /// `log(1 + e^(beta x)) / beta`; x itself where `beta x` is above the threshold. PyTorch's defaults are 1 and 20.
    pub fn softplus(x, beta: f64, threshold: f64) {
        let z = x.mul(beta);
        z.gt(threshold).where_(x, z.softplus_of().div(beta))
    };
    /// x above 0, `alpha (e^x - 1)` below. PyTorch's default is 1.
    pub fn elu(x, alpha: f64) x.gt(0).where_(x, x.expm1().mul(alpha));
    /// The self-normalising exponential unit.
    pub fn selu(x) x.gt(0).where_(x, x.expm1().mul(SELU_ALPHA)).mul(SELU_SCALE);
    /// `max(x, 0) + min(alpha (e^(x / alpha) - 1), 0)`. PyTorch's default is 1.
    pub fn celu(x, alpha: f64) x.gt(0).where_(x, x.div(alpha).expm1().mul(alpha));
    /// x above 0, `slope x` below. PyTorch's default is 0.01.
    pub fn leaky_relu(x, slope: f64) x.gt(0).where_(x, x.mul(slope));
    /// x cut to 0 and 6, plus 3, over 6.
    pub fn hardsigmoid(x) x.add(3.0).clamp(0.0, 6.0).div(6.0);
    /// `x hardsigmoid(x)`.
    pub fn hardswish(x) x.mul(x.add(3.0).clamp(0.0, 6.0)).div(6.0);
    /// `x tanh(softplus(x))`.
    pub fn mish(x) x.mul(x.softplus_of().tanh());
    /// `log(sigmoid(x))`, without overflow.
    pub fn logsigmoid(x) x.neg().softplus_of().neg();
    /// `x / (1 + |x|)`.
    pub fn softsign(x) x.div(x.abs().add(1.0));
    /// `x - tanh(x)`.
    pub fn tanhshrink(x) x.sub(x.tanh());
    /// x outside `-lambda ..= lambda`, else 0. PyTorch's default is 0.5.
    pub fn hardshrink(x, lambda: f64) x.abs().le(lambda).where_(0.0, x);
    /// x moved by lambda toward 0, and 0 within. PyTorch's default is 0.5.
    pub fn softshrink(x, lambda: f64) {
        let inner = x.lt(-lambda).where_(x.add(lambda), x.mul(0.0));
        x.gt(lambda).where_(x.sub(lambda), inner)
    };
}

const SELU_ALPHA: f64 = 1.673_263_242_354_377_2;
const SELU_SCALE: f64 = 1.050_700_987_355_480_5;

impl Tensor {
    #[track_caller]
    fn softplus_of(&self) -> Tensor {
        formula(&[self], Location::caller(), |t, x| logarithm::softplus(t, x[0]))
    }

    /// `max(x, 0)`.
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        apply(ops::Relu {}, &[self], Location::caller())
    }

    /// Gaussian error linear unit, by erf.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        apply(ops::Gelu { tanh: false }, &[self], Location::caller())
    }

    /// Gaussian error linear unit, approximated by tanh.
    #[track_caller]
    pub fn gelu_tanh(&self) -> Tensor {
        apply(ops::Gelu { tanh: true }, &[self], Location::caller())
    }

    /// x cut to 0 and 6.
    #[track_caller]
    pub fn relu6(&self) -> Tensor {
        self.clamp(0, 6)
    }

    /// x cut to two bounds; PyTorch's defaults are -1 and 1.
    #[track_caller]
    pub fn hardtanh(&self, min: f64, max: f64) -> Tensor {
        let at = Location::caller();
        self.clamp(min, max).narrowed(self, at)
    }

    /// x above the threshold, `value` elsewhere.
    #[track_caller]
    pub fn threshold(&self, threshold: f64, value: f64) -> Tensor {
        let at = Location::caller();
        // NaN stays
        self.le(threshold).where_(value, self).narrowed(self, at)
    }

    #[track_caller]
    fn narrowed(self, to: &Tensor, at: At) -> Tensor {
        cast(&self, to.dtype(), at)
    }

    /// x above 0, `weight x` below: one weight, or one a channel (axis 1).
    #[track_caller]
    pub fn prelu(&self, weight: impl Operand) -> Tensor {
        let at = Location::caller();
        let mut w = weight.operand(self);
        if self.failed() || w.failed() {
            return Tensor::FAILED;
        }
        if self.dim() > 1 && w.dim() == 1 && w.size(0).as_known() != Some(1) {
            let mut shape = vec![1i64.into(); self.dim()];
            shape[1] = w.size(0);
            w = super::shape::reshaped(&w, &shape, at);
        }
        let d = promote_types(float(self, at).dtype(), w.dtype());
        let (x, w) = (cast(self, computed(d), at), cast(&w, computed(d), at));
        cast(&x.gt(0).where_(&x, x.mul(w)), d, at)
    }

    /// The first half along an axis times the sigmoid of the second.
    #[track_caller]
    pub fn glu(&self, dim: i64) -> Tensor {
        let at = Location::caller();
        let Some(a) = self.axis(dim, at) else { return Tensor::FAILED };
        let whole = self.shape()[a];
        if whole.as_known().is_some_and(|n| n % 2 != 0) {
            let m = format!("glu halves axis {a} of {self:#}");
            report(Diag::error("E-NN-091", m).help("the extent must be even"), at);
            return Tensor::FAILED;
        }
        let x = float(self, at);
        let wide = cast(&x, computed(x.dtype()), at);
        let half = whole / 2;
        let (p, q) = (wide.narrow(dim, 0, half), wide.narrow(dim, half, half));
        cast(&p.mul(q.sigmoid()), x.dtype(), at)
    }
}
