//! Shared by reductions: the type rule, the class with its normative order, and spreading a cotangent back.

use super::{Div, Eq, GVal, GradCx, InferCx, LowerCx, Lowering, ReduceSum};
use crate::class::{Class, Reduce, Reducer};
use crate::diag::Diag;
use crate::scalar::{Bin, Scalar};
use crate::types::{DType, Dim, Fact, Type};

/// Axes as sorted distinct indices below `rank`.
pub(crate) fn axes(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let mut v = Vec::with_capacity(axes.len());
    for &a in axes {
        let a = if a < 0 { a + rank as i64 } else { a };
        v.push(usize::try_from(a).ok().filter(|a| *a < rank)?);
    }
    v.sort_unstable();
    v.windows(2).all(|w| w[0] != w[1]).then_some(v)
}

/// Shape after reducing.
pub(crate) fn shape(shape: &[Dim], axes: &[usize], keepdims: bool) -> Vec<Dim> {
    let keep = |(i, d): (usize, &Dim)| match (axes.contains(&i), keepdims) {
        (false, _) => Some(d.clone()),
        (true, true) => Some(Dim::from(1)),
        (true, false) => None,
    };
    shape.iter().enumerate().filter_map(keep).collect()
}

/// Type rule of a reduction with result type `out`.
pub(crate) fn infer(
    cx: &mut InferCx<'_>,
    list: &[i64],
    keepdims: bool,
    out: DType,
) -> Result<Vec<Fact>, Diag> {
    let t = cx.ty(0)?;
    let Some(ax) = axes(list, t.rank()) else {
        return Err(
            cx.fail("E-IR-004", format!("axes {list:?} must be distinct and in range for rank {}", t.rank()))
        );
    };
    Ok(vec![Type::new(out, shape(&t.shape, &ax, keepdims)).into()])
}

/// Accumulator of sums: f64 for f64, f32 for other floats, the type itself for integers.
pub(crate) fn sum_type(d: DType) -> DType {
    if d.is_float() && d != DType::F64 { DType::F32 } else { d }
}

/// Number of partials: 64 when the innermost axis is reduced, else 8.
pub(crate) fn lanes(axes: &[usize], rank: usize) -> u32 {
    if rank > 0 && axes.contains(&(rank - 1)) { 64 } else { 8 }
}

/// Class of `op`-reduction in `acc`, starting from `init`.
pub(crate) fn lower(
    cx: &LowerCx<'_>,
    list: &[i64],
    keepdims: bool,
    op: Bin,
    acc: DType,
    init: Scalar,
) -> Result<Lowering, Diag> {
    let reducer = Reducer::simple(op, cx.ins[0].dtype, acc, init, cx.outs[0].dtype);
    with_reducer(cx, list, keepdims, reducer)
}

/// Class of a reduction with a reducer of its own.
pub(crate) fn with_reducer(
    cx: &LowerCx<'_>,
    list: &[i64],
    keepdims: bool,
    reducer: Reducer,
) -> Result<Lowering, Diag> {
    let rank = cx.ins[0].rank();
    let axes = axes(list, rank).unwrap_or_default();
    let lanes = lanes(&axes, rank);
    Ok(Lowering::Class(Class::Reduce(Reduce { axes, keepdims, reducer, lanes })))
}

/// The cotangent with reduced axes back as extent 1.
pub(crate) fn spread(cx: &mut GradCx<'_>, list: &[i64], keepdims: bool) -> GVal {
    let g = cx.cotangents[0];
    if keepdims {
        return g;
    }
    let t = cx.b.ty(cx.operands[0]);
    let ax = axes(list, t.rank()).unwrap_or_default();
    cx.reshape(g, shape(&t.shape, &ax, true))
}

/// Gradient of a maximum or minimum: the cotangent goes to the elements equal to the result, in equal parts.
pub(crate) fn extreme_back(cx: &mut GradCx<'_>, list: &[i64], keepdims: bool) -> GVal {
    let (x, g) = (cx.operands[0], spread(cx, list, keepdims));
    let (d, shape) = (cx.b.ty(x).dtype, cx.b.ty(g).shape);
    let y = cx.reshape(cx.results[0], shape);
    let hit = cx.op1(Eq {}, &[x, y]);
    let hit = cx.cast(hit, d);
    let count = cx.op1(ReduceSum { axes: list.to_vec(), keepdims: true }, &[hit]);
    let part = cx.op1(Div {}, &[g, count]);
    cx.mul(part, hit)
}
