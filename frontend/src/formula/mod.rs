//! Functions that are no op of the IR, as formulas of its ops that keep their digits: written once, against [`Build`],
//! for the importer of ONNX files and for models in Rust. Nothing here knows where a value comes from.

pub(crate) mod angle;
pub(crate) mod einsum;
pub(crate) mod hyperbolic;
pub(crate) mod logarithm;
pub(crate) mod running;
pub(crate) mod special;

use tgc_ir::ops::{Add, Cast, Constant, Div, Eq, Lt, Mul, Neg, Op, Or, Reshape, Select};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{DType, Dim, Pred, Type};

/// What a formula is built with: it records nodes, or computes at once.
pub(crate) trait Build {
    /// A value under construction.
    type V: Copy;
    /// Why it cannot go on.
    type E;

    /// The first result of an op.
    fn apply(&mut self, op: Op, operands: &[Self::V]) -> R<Self>;

    /// Element type and dims.
    fn ty(&self, v: Self::V) -> Type;

    /// Requires a condition on sizes: an error when it cannot hold, a guard when that is not known yet.
    fn demand(&mut self, pred: Pred, why: &str) -> Result<(), Self::E>;

    /// [`Build::apply`] of any op's struct.
    fn op(&mut self, op: impl Into<Op>, operands: &[Self::V]) -> R<Self> {
        self.apply(op.into(), operands)
    }

    /// Element type.
    fn dtype(&self, v: Self::V) -> DType {
        self.ty(v).dtype
    }

    /// Dims.
    fn shape(&self, v: Self::V) -> Vec<Dim> {
        self.ty(v).shape
    }

    /// A constant of rank 0.
    fn num(&mut self, dtype: DType, v: f64) -> R<Self> {
        self.op(Constant::scalar(Scalar::from_f64(dtype, v)), &[])
    }

    /// Conversion, left out when it changes nothing.
    fn cast(&mut self, v: Self::V, to: DType) -> R<Self> {
        if self.dtype(v) == to { Ok(v) } else { self.op(Cast { to }, &[v]) }
    }

    /// Reshape, left out when it changes nothing.
    fn reshape(&mut self, v: Self::V, shape: Vec<Dim>) -> R<Self> {
        if self.shape(v) == shape { Ok(v) } else { self.op(Reshape { shape }, &[v]) }
    }
}

/// A value, or why there is none.
pub(crate) type R<B> = Result<<B as Build>::V, <B as Build>::E>;

/// A constant of the element type of `x`.
pub(crate) fn like<B: Build>(b: &mut B, x: B::V, v: f64) -> R<B> {
    let d = b.dtype(x);
    b.num(d, v)
}

/// `x * by`.
pub(crate) fn scaled<B: Build>(b: &mut B, x: B::V, by: f64) -> R<B> {
    if by == 1.0 {
        return Ok(x);
    }
    let k = like(b, x, by)?;
    b.op(Mul {}, &[x, k])
}

/// The sum of `coefficients[i] * z^i`.
pub(crate) fn polynomial<B: Build>(b: &mut B, z: B::V, coefficients: &[f64]) -> R<B> {
    let Some((&last, rest)) = coefficients.split_last() else { return like(b, z, 0.0) };
    let mut y = like(b, z, last)?;
    for &c in rest.iter().rev() {
        let k = like(b, z, c)?;
        y = b.op(Mul {}, &[y, z])?;
        y = b.op(Add {}, &[y, k])?;
    }
    Ok(y)
}

/// `y` with the sign of `x`, where `y` is an odd function of `|x|`: zeros keep their sign and NaN stays.
pub(crate) fn odd<B: Build>(b: &mut B, x: B::V, y: B::V) -> R<B> {
    let zero = like(b, x, 0.0)?;
    let (below, above) = (b.op(Lt {}, &[x, zero])?, b.op(Lt {}, &[zero, x])?);
    let minus = b.op(Neg {}, &[y])?;
    let y = b.op(Select {}, &[above, y, x])?;
    b.op(Select {}, &[below, minus, y])
}

/// True for negative numbers and -0, false for NaN.
pub(crate) fn negative<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let zero = like(b, x, 0.0)?;
    let below = b.op(Lt {}, &[x, zero])?;
    if !b.dtype(x).is_float() {
        return Ok(below);
    }
    let (one, is_zero) = (like(b, x, 1.0)?, b.op(Eq {}, &[x, zero])?);
    // only a zero has an infinite reciprocal here, and it tells the sign
    let tested = b.op(Select {}, &[is_zero, x, one])?;
    let inverse = b.op(Div {}, &[one, tested])?;
    let minus = b.op(Lt {}, &[inverse, zero])?;
    b.op(Or {}, &[below, minus])
}
