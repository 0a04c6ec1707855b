//! `const_dims`: a tensor whose elements are symbolic dims, known when the sizes are bound.
//!
//! Constraints: const_dims.c1 the type is an integer one; const_dims.c2 shape is rank 0 (one dim) or 1.
//!
//! `%s = const_dims {dims = (n, 4), dtype = i64} : i64[2]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::class::{Class, Map};
use crate::diag::Diag;
use crate::scalar::{Bin, Expr};
use crate::types::{DType, Dim, Fact, Type};

crate::op_struct! {
    /// Dims as data.
    pub struct ConstDims {
        /// The elements.
        dims: Vec<Dim>,
        /// Integer element type.
        dtype: DType = DType::I64,
        /// Rank 0 instead of 1.
        scalar: bool = false,
    }
}

impl OpDef for ConstDims {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&[]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        cx.check(self.dtype.is_int(), "const_dims.c1", "the element type must be an integer one")?;
        cx.check(!self.scalar || self.dims.len() == 1, "const_dims.c2", "a scalar has exactly one dim")?;
        let shape = if self.scalar { vec![] } else { vec![Dim::from(self.dims.len())] };
        Ok(vec![Type::new(self.dtype, shape).into()])
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let mut e = Expr::default();
        let mut root = e.dim(self.dims.last().cloned().unwrap_or_default());
        for (i, d) in self.dims.iter().enumerate().rev().skip(1) {
            let (at, here, v) = (e.dim(Dim::label(0)), e.dim(Dim::from(i)), e.dim(d.clone()));
            let hit = e.bin(Bin::Eq, at, here);
            root = e.select(hit, v, root);
        }
        e.roots = vec![e.cast(self.dtype, root)];
        Ok(Lowering::Class(Class::Map(Map { expr: e })))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}
