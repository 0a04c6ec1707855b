//! Building blocks of decompositions: a region under construction with casts, constants and one-result ops. No op's
//! meaning lives here.

use super::{Cast, ConstDims, Constant, LowerCx, Lowering, Op, Reshape};
use crate::diag::{Diag, Loc};
use crate::graph::{Graph, Value};
use crate::scalar::Scalar;
use crate::types::{DType, Dim, Type};

/// A decomposition being built.
pub(crate) struct Parts<'g> {
    g: &'g mut Graph,
}

/// Builds a decomposition of one result: `f` gets the builder and the op's operands.
pub(crate) fn decompose(
    cx: &LowerCx<'_>,
    f: impl FnOnce(&mut Parts<'_>, &[Value]) -> Result<Value, Diag>,
) -> Result<Lowering, Diag> {
    cx.decompose(|g, ins| Ok(vec![f(&mut Parts::new(g), ins)?]))
}

impl<'g> Parts<'g> {
    /// A builder in a region.
    pub(crate) fn new(g: &'g mut Graph) -> Parts<'g> {
        Parts { g }
    }
}

impl Parts<'_> {
    /// Applies an op of one result.
    pub(crate) fn op(&mut self, op: impl Into<Op>, operands: &[Value]) -> Result<Value, Diag> {
        self.g.op(op, operands, &Loc::default())
    }

    /// Type of a value.
    pub(crate) fn ty(&self, v: Value) -> Type {
        self.g.ty(v).cloned().unwrap_or_else(|| Type::scalar(DType::F32))
    }

    /// Converts unless `v` has that type.
    pub(crate) fn cast(&mut self, v: Value, to: DType) -> Result<Value, Diag> {
        if self.ty(v).dtype == to { Ok(v) } else { self.op(Cast { to }, &[v]) }
    }

    /// Reshapes unless `v` has that shape.
    pub(crate) fn reshape(&mut self, v: Value, shape: Vec<Dim>) -> Result<Value, Diag> {
        if self.ty(v).shape == shape { Ok(v) } else { self.op(Reshape { shape }, &[v]) }
    }

    /// A rank-0 constant.
    pub(crate) fn num(&mut self, dtype: DType, v: f64) -> Result<Value, Diag> {
        self.op(Constant::scalar(Scalar::from_f64(dtype, v)), &[])
    }

    /// A dim as a rank-0 value of type `dtype`.
    pub(crate) fn dim(&mut self, dtype: DType, d: Dim) -> Result<Value, Diag> {
        let v = self.op(ConstDims { dims: vec![d], dtype: DType::I64, scalar: true }, &[])?;
        self.cast(v, dtype)
    }
}

/// Type in which composites compute: f64 for f64, f32 for other floats.
pub(crate) fn wide_type(d: DType) -> DType {
    if d == DType::F64 { d } else { DType::F32 }
}

/// Shape of a vector along `axis` that broadcasts over rank `rank`.
pub(crate) fn along(axis: usize, rank: usize, extent: &Dim) -> Vec<Dim> {
    (0..rank).map(|i| if i == axis { extent.clone() } else { Dim::from(1) }).collect()
}
