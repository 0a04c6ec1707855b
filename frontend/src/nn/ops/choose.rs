//! Truth and bits: logical and bitwise operations, choices by conditions, and cutting to bounds.

use super::arith::{cast, float, pair};
use super::tape::computed;
use crate::nn::exec::apply;
use crate::nn::tensor::{Operand, Tensor, promote, promote_types};
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

type At = &'static Location<'static>;

/// True where an element is not 0.
#[track_caller]
pub(crate) fn truth(x: &Tensor, at: At) -> Tensor {
    match x.dtype() {
        DType::Bool => x.clone(),
        d if d.is_float() || d.is_int() => {
            let zero = Tensor::number(d, 0.0);
            apply(ops::Not {}, &[&apply(ops::Eq {}, &[x, &zero], at)], at)
        }
        _ => cast(x, DType::Bool, at),
    }
}

macro_rules! binary {
    ($($(#[$doc:meta])* pub fn $name:ident($a:ident, $b:ident, $at:ident) $body:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: impl Operand) -> Tensor {
                let $at = Location::caller();
                let ($a, $b) = (self, &other.operand(self));
                $body
            }
        )* }
    };
}
binary! {
    /// Whether both elements are not 0.
    pub fn logical_and(a, b, at) apply(ops::And {}, &[&truth(a, at), &truth(b, at)], at);
    /// Whether one element is not 0.
    pub fn logical_or(a, b, at) apply(ops::Or {}, &[&truth(a, at), &truth(b, at)], at);
    /// Whether one element is 0 and the other not.
    pub fn logical_xor(a, b, at) apply(ops::Xor {}, &[&truth(a, at), &truth(b, at)], at);
    /// Bits in both; of bools, and. The operator `&`.
    pub fn bitwise_and(a, b, at) pair(ops::And {}, a, b, at);
    /// Bits in one at least; of bools, or. The operator `|`.
    pub fn bitwise_or(a, b, at) pair(ops::Or {}, a, b, at);
    /// Bits in one only; of bools, inequality. The operator `^`.
    pub fn bitwise_xor(a, b, at) pair(ops::Xor {}, a, b, at);
    /// Bits moved up; 0 for a shift by the width or more. The operator `<<`.
    pub fn bitwise_left_shift(a, b, at) pair(ops::Shl {}, a, b, at);
    /// Bits moved down, the sign staying. The operator `>>`.
    pub fn bitwise_right_shift(a, b, at) pair(ops::Shr {}, a, b, at);
    /// Not below `other`, which may be a number or broadcast.
    pub fn clamp_min(a, b, _at) a.maximum(b);
    /// Not above `other`, which may be a number or broadcast.
    pub fn clamp_max(a, b, _at) a.minimum(b);
}

impl Tensor {
    /// Whether an element is 0.
    #[track_caller]
    pub fn logical_not(&self) -> Tensor {
        let at = Location::caller();
        apply(ops::Not {}, &[&truth(self, at)], at)
    }

    /// The complement of the bits; of bools, not. The operator `!`.
    #[track_caller]
    pub fn bitwise_not(&self) -> Tensor {
        apply(ops::Not {}, &[self], Location::caller())
    }

    /// Cut to two bounds, numbers or tensors; where they cross, the upper counts. With one bound see
    /// [`Tensor::clamp_min`] and [`Tensor::clamp_max`].
    #[track_caller]
    pub fn clamp(&self, min: impl Operand, max: impl Operand) -> Tensor {
        let low = min.operand(self);
        let high = max.operand(self);
        self.maximum(low).minimum(high)
    }

    /// [`Tensor::clamp`].
    #[track_caller]
    pub fn clip(&self, min: impl Operand, max: impl Operand) -> Tensor {
        let low = min.operand(self);
        let high = max.operand(self);
        self.maximum(low).minimum(high)
    }

    /// `a` where this condition is true, else `b`; all three broadcast: `torch.where(condition, a, b)`.
    #[track_caller]
    pub fn where_(&self, a: impl Operand, b: impl Operand) -> Tensor {
        let at = Location::caller();
        // of a number only the kind shows; the other one says which type of it
        let first = a.operand(&Tensor::scalar(false));
        let b = b.operand(&first);
        let a = a.operand(&b);
        let d = promote(&a, &b);
        apply(ops::Select {}, &[&truth(self, at), &cast(&a, d, at), &cast(&b, d, at)], at)
    }

    /// `value` where the mask is true, in this tensor's element type.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: impl Operand) -> Tensor {
        let at = Location::caller();
        let value = cast(&value.operand(self), self.dtype(), at);
        apply(ops::Select {}, &[&truth(mask, at), &value, self], at)
    }

    /// `self + weight (end - self)`, from the nearer end.
    #[track_caller]
    pub fn lerp(&self, end: &Tensor, weight: impl Operand) -> Tensor {
        let at = Location::caller();
        let d = promote_types(float(self, at).dtype(), end.dtype());
        let inner = computed(d);
        let (x, y) = (cast(self, inner, at), cast(end, inner, at));
        let w = cast(&weight.operand(&x), inner, at);
        let gap = y.sub(&x);
        let near = w.abs().lt(0.5);
        let far = y.sub(gap.mul(1.0 - &w));
        cast(&near.where_(x.add(gap.mul(&w)), far), d, at)
    }

    /// `self + value * a * b`.
    #[track_caller]
    pub fn addcmul(&self, a: &Tensor, b: &Tensor, value: impl Operand) -> Tensor {
        let value = value.operand(self);
        self.add(a.mul(value).mul(b))
    }

    /// `self + value * a / b`.
    #[track_caller]
    pub fn addcdiv(&self, a: &Tensor, b: &Tensor, value: impl Operand) -> Tensor {
        let value = value.operand(self);
        self.add(a.mul(value).div(b))
    }

    /// Whether elements are within `atol + rtol * |other|` of another tensor's. PyTorch's defaults are 1e-5, 1e-8, false.
    #[track_caller]
    pub fn isclose(&self, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> Tensor {
        let at = Location::caller();
        let d = promote(self, other);
        let wide = if d.is_float() { computed(d) } else { DType::F64 };
        let (x, y) = (cast(self, wide, at), cast(other, wide, at));
        let gap = x.sub(&y).abs();
        let near = gap.le(y.abs().mul(rtol).add(atol)).logical_and(gap.isfinite());
        let near = near.logical_or(x.eq(&y));
        if equal_nan { near.logical_or(x.isnan().logical_and(y.isnan())) } else { near }
    }

    /// Whether an element is one of these values. Its work grows with their number.
    #[track_caller]
    pub fn isin(&self, values: &Tensor) -> Tensor {
        self.unsqueeze(-1).eq(values.reshape(-1)).any(&[-1], false)
    }

    /// Whether all elements are close (see [`Tensor::isclose`]). Not of tensors in a trace.
    #[track_caller]
    pub fn allclose(&self, other: &Tensor, rtol: f64, atol: f64, equal_nan: bool) -> bool {
        self.isclose(other, rtol, atol, equal_nan).all(&[], false).item() != 0.0
    }

    /// Whether shapes and all elements are equal. Not of tensors in a trace.
    #[track_caller]
    pub fn equal(&self, other: &Tensor) -> bool {
        self.dim() == other.dim()
            && self.shape().iter().zip(other.shape()).all(|(a, b)| *a == b)
            && self.eq(other).all(&[], false).item() != 0.0
    }
}
