//! `top_k(x)`: the k greatest (or smallest) elements along an axis, sorted, and their indices. Ties keep the lower index
//! first; NaN counts as greatest. Compiled code, along an axis that cannot be long,
//! finds every element's place as the number of elements before it in that order, by comparing all pairs.
//!
//! Constraints: top_k.c1 the axis is in range; top_k.c2 k is at most the axis; top_k.c3 the element type is a number.
//!
//! `%v, %i = top_k %x {axis = -1, k = 2} : f32[n, 2], i64[n, 2]`

use super::parts::{self, Parts};
use super::{
    Accuracy, And, Arity, Expand, GatherElements, Grad, InferCx, Iota, IsNan, LowerCx, Lowering, Lt, Not,
    Onnx, OpDef, Or, ReduceSum, ScatterElements, Slice, Spec, Template, index,
};
use crate::class::{Class, Opaque};
use crate::diag::Diag;
use crate::graph::Value;
use crate::types::{DType, Dim, Fact, Pred, Type};

crate::op_struct! {
    /// Greatest elements.
    pub struct TopK {
        /// The axis, negative counting from the end.
        axis: i64,
        /// How many.
        k: Dim,
        /// The greatest, else the smallest.
        largest: bool = true,
    }
}

/// Longest axis whose elements are compared in pairs.
const MOST_PAIRED: i128 = 2048;

impl TopK {
    fn by_pairs(&self, b: &mut Parts<'_>, x: Value, axis: usize) -> Result<Vec<Value>, Diag> {
        let t = b.ty(x);
        let n = t.shape[axis].clone();
        let along = |at: usize| {
            let mut shape = t.shape.clone();
            shape.insert(at, Dim::from(1));
            shape
        };
        // Element j along `axis`, element i along the next.
        let (xj, xi) = (b.reshape(x, along(axis + 1))?, b.reshape(x, along(axis))?);
        let (above, below) = (greater(b, xj, xi, t.dtype)?, greater(b, xi, xj, t.dtype)?);
        let (first, not_first) = if self.largest { (above, below) } else { (below, above) };
        let rank = t.rank() + 1;
        let place =
            |at: usize| Iota { axis: at as i64, shape: parts::along(at, rank, &n), dtype: DType::I64 };
        let (j, i) = (b.op(place(axis), &[])?, b.op(place(axis + 1), &[])?);
        let earlier = b.op(Lt {}, &[j, i])?;
        let tied = b.op(Not {}, &[not_first])?;
        let tied = b.op(And {}, &[tied, earlier])?;
        let before = b.op(Or {}, &[first, tied])?;
        let before = b.cast(before, DType::I64)?;
        let places = b.op(ReduceSum { axes: vec![axis as i64], keepdims: false }, &[before])?;
        let own = b.op(Iota { axis: axis as i64, shape: t.shape.clone(), dtype: DType::I64 }, &[])?;
        let none = b.num(DType::I64, 0.0)?;
        let none = b.op(Expand { shape: t.shape.clone() }, &[none])?;
        let scatter = ScatterElements { axis: axis as i64, reduction: "none".into() };
        let order = b.op(scatter, &[none, places, own])?;
        let mut sizes = t.shape.clone();
        sizes[axis] = self.k.clone();
        let (starts, steps) = (vec![Dim::from(0); sizes.len()], vec![1; sizes.len()]);
        let order = b.op(Slice { starts, sizes, steps }, &[order])?;
        let values = b.op(GatherElements { axis: axis as i64 }, &[x, order])?;
        Ok(vec![values, order])
    }
}

/// `a > b`, NaN being greatest.
fn greater(b: &mut Parts<'_>, x: Value, y: Value, d: DType) -> Result<Value, Diag> {
    let more = b.op(Lt {}, &[y, x])?;
    if !d.is_float() {
        return Ok(more);
    }
    let (nan, other) = (b.op(IsNan {}, &[x])?, b.op(IsNan {}, &[y])?);
    let other = b.op(Not {}, &[other])?;
    let only = b.op(And {}, &[nan, other])?;
    b.op(Or {}, &[more, only])
}

impl OpDef for TopK {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("TopK", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let axis = cx.axis(self.axis, t.rank())?;
        let number = t.dtype.is_float() || t.dtype.is_int();
        cx.check(number, "top_k.c3", format!("the element type must be a number, not {}", t.dtype))?;
        cx.require(Pred::Le(self.k.clone(), t.shape[axis].clone()), "k must be at most the axis [top_k.c2]")?;
        let mut shape = t.shape.clone();
        shape[axis] = self.k.clone();
        Ok(vec![Type::new(t.dtype, shape.clone()).into(), Type::new(DType::I64, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let axis = index::axis(self.axis, cx.ins[0].rank());
        let whole = Opaque::TopK { axis, largest: self.largest };
        if cx.symbols.range(&cx.ins[0].shape[axis]).1 > MOST_PAIRED {
            return Ok(Lowering::Class(Class::Opaque(whole)));
        }
        match cx.decompose(|g, ins| self.by_pairs(&mut Parts::new(g), ins[0], axis))? {
            Lowering::Decompose(pairs) => Ok(Lowering::Template(Template::Whole(whole), pairs)),
            other => Ok(other),
        }
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let ty = cx.b.ty(cx.operands[0]);
            let (i, g) = (cx.results[1], cx.cotangents[0]);
            vec![Some(cx.scatter(&ty, index::axis(op.axis, ty.rank()), i, g))]
        })
    }
}
