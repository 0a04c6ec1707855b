//! Building blocks of gradient rules, over the builder that records or executes.

use super::{
    Add, Cast, ConstDims, Constant, Expand, GVal, GradCx, Iota, Mul, Op, Pad, ReduceSum, Reshape,
    ScatterElements, Slice, Transpose,
};
use crate::scalar::Scalar;
use crate::types::{DType, Dim, Type};

impl GradCx<'_> {
    /// Applies an op of one result.
    pub(crate) fn op1(&mut self, op: impl Into<Op>, operands: &[GVal]) -> GVal {
        self.b.op(op.into(), operands).first().copied().unwrap_or(operands[0])
    }

    /// Applies an op without operands; the builder gives a value even for a failed one.
    pub(crate) fn op0(&mut self, op: impl Into<Op>) -> GVal {
        self.b.op(op.into(), &[]).first().copied().unwrap_or(GVal(0))
    }

    /// Reshapes `x` unless it has that shape.
    pub(crate) fn reshape(&mut self, x: GVal, shape: Vec<Dim>) -> GVal {
        if self.b.ty(x).shape == shape { x } else { self.op1(Reshape { shape }, &[x]) }
    }

    /// Broadcasts `x` to the shape of `like`.
    pub(crate) fn expand_like(&mut self, x: GVal, like: GVal) -> GVal {
        let shape = self.b.ty(like).shape;
        self.expand(x, shape)
    }

    /// Broadcasts `x` to a shape.
    pub(crate) fn expand(&mut self, x: GVal, shape: Vec<Dim>) -> GVal {
        if self.b.ty(x).shape == shape { x } else { self.op1(Expand { shape }, &[x]) }
    }

    /// Sums `x` over the axes along which `like` was broadcast, giving `like`'s shape. A dim of `like` that may be 1
    /// at run time is summed only when it is the number 1 (the other case is the identity, by the broadcast guard).
    pub(crate) fn sum_to(&mut self, x: GVal, like: GVal) -> GVal {
        let (from, to) = (self.b.ty(x).shape, self.b.ty(like).shape);
        let skip = from.len().saturating_sub(to.len());
        let axes: Vec<i64> = (0..from.len())
            .filter(|&i| i < skip || (to[i - skip].is(1) && !from[i].is(1)))
            .map(|i| i as i64)
            .collect();
        let y = if axes.is_empty() { x } else { self.op1(ReduceSum { axes, keepdims: true }, &[x]) };
        self.reshape(y, to)
    }

    /// Converts unless `x` has that type.
    pub(crate) fn cast(&mut self, x: GVal, to: DType) -> GVal {
        if self.b.ty(x).dtype == to { x } else { self.op1(Cast { to }, &[x]) }
    }

    /// `a + b`.
    pub(crate) fn add(&mut self, a: GVal, b: GVal) -> GVal {
        self.op1(Add {}, &[a, b])
    }

    /// `a * b`.
    pub(crate) fn mul(&mut self, a: GVal, b: GVal) -> GVal {
        self.op1(Mul {}, &[a, b])
    }

    /// A rank-0 constant.
    pub(crate) fn num(&mut self, dtype: DType, v: f64) -> GVal {
        self.op0(Constant::scalar(Scalar::from_f64(dtype, v)))
    }

    /// A dim as a rank-0 value.
    pub(crate) fn dim(&mut self, dtype: DType, d: Dim) -> GVal {
        let v = self.op0(ConstDims { dims: vec![d], dtype: DType::I64, scalar: true });
        self.cast(v, dtype)
    }

    /// Zeros of a type.
    pub(crate) fn zeros(&mut self, ty: &Type) -> GVal {
        let zero = Constant::scalar(Scalar::from_f64(ty.dtype, 0.0));
        self.op0(Constant { shape: (ty.rank() > 0).then(|| ty.shape.clone()), ..zero })
    }

    /// Reorders axes unless the order is kept.
    pub(crate) fn transpose(&mut self, x: GVal, perm: &[usize]) -> GVal {
        if perm.iter().enumerate().all(|(i, p)| i == *p) {
            return x;
        }
        self.op1(Transpose { perm: perm.iter().map(|&p| p as i64).collect() }, &[x])
    }

    /// Zero padding.
    pub(crate) fn pad(&mut self, x: GVal, before: Vec<Dim>, after: Vec<Dim>) -> GVal {
        if before.iter().chain(&after).all(|d| d.is(0)) {
            return x;
        }
        let value = Scalar::from_f64(self.b.ty(x).dtype, 0.0);
        self.op1(Pad { before, after, value }, &[x])
    }

    /// A box of `x`, all of it costing nothing.
    pub(crate) fn window(&mut self, x: GVal, starts: Vec<Dim>, sizes: Vec<Dim>) -> GVal {
        if self.b.ty(x).shape == sizes {
            return x;
        }
        let steps = vec![1; sizes.len()];
        self.op1(Slice { starts, sizes, steps }, &[x])
    }

    /// Indices `start + step * i` along `axis` with the shape of `like`.
    pub(crate) fn line(&mut self, like: GVal, axis: usize, start: Dim, step: i64) -> GVal {
        let shape = self.b.ty(like).shape;
        let i = self.op0(Iota { axis: axis as i64, shape, dtype: DType::I64 });
        let k = self.num(DType::I64, step as f64);
        let scaled = if step == 1 { i } else { self.mul(i, k) };
        let from = self.dim(DType::I64, start);
        self.add(scaled, from)
    }

    /// Adds `g` into zeros of type `ty` at `indices` (of `g`'s shape) along `axis`.
    pub(crate) fn scatter(&mut self, ty: &Type, axis: usize, indices: GVal, g: GVal) -> GVal {
        let base = self.zeros(ty);
        let op = ScatterElements { axis: axis as i64, reduction: "add".to_string() };
        self.op1(op, &[base, indices, g])
    }

    /// The transpose of `gather` along `axis`: adds slices of `g` into zeros of type `ty`.
    pub(crate) fn ungather(&mut self, ty: &Type, axis: usize, indices: GVal, g: GVal) -> GVal {
        let count = self.b.ty(indices).numel();
        let mut flat = ty.shape.clone();
        flat[axis] = count.clone();
        let g = self.reshape(g, flat.clone());
        let line = super::parts::along(axis, flat.len(), &count);
        let at = self.reshape(indices, line);
        let at = self.expand(at, flat);
        self.scatter(ty, axis, at, g)
    }
}
