//! The filters of linear and cubic resampling: weights of the elements around a position, and sums with them.

use super::resample::{Along, Line, Mode, Place, Sampling, along_axis, counter, place};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use tgc_ir::graph::Value;
use tgc_ir::ops::{
    Abs, Add, Constant, Div, Eq, Gather, Iota, Le, Lt, Max, Min, Mul, ReduceSum, Select, Slice, Sub,
};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, Pred};

/// Between two neighbours.
pub(super) fn linear(cx: &mut NodeCx<'_, '_>, x: Value, axis: usize, at: &Place, from: &Dim) -> Res<Value> {
    let float = cx.dtype(x);
    let (one, end) = (cx.dim_value(Dim::from(1))?, cx.dim_value(from.clone() - Dim::from(1))?);
    let next = cx.op(Add {}, &[at.whole, one])?;
    let next = cx.op(Min {}, &[next, end])?;
    let one = cx.num(float, 1.0)?;
    let weight = cx.op(Sub {}, &[one, at.rest])?;
    sum_of(cx, x, axis, &[(at.whole, weight), (next, at.rest)])
}

/// The sum of gathers with weights.
fn sum_of(cx: &mut NodeCx<'_, '_>, x: Value, axis: usize, terms: &[(Value, Value)]) -> Res<Value> {
    let mut sum = None;
    for &(index, weight) in terms {
        let part = cx.op(Gather { axis: axis as i64 }, &[x, index])?;
        let weight = along_axis(cx, weight, 1, cx.rank(x) - axis - 1)?;
        let part = cx.op(Mul {}, &[part, weight])?;
        sum = Some(sum.map_or(Ok(part), |s| cx.op(Add {}, &[s, part]))?);
    }
    Ok(sum.unwrap_or(x))
}

/// Among four neighbours.
pub(super) fn cubic(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    s: &Sampling,
    axis: usize,
    at: &Place,
    from: &Dim,
) -> Res<Value> {
    let float = cx.dtype(x);
    let one = cx.num(float, 1.0)?;
    let on = cx.op(Sub {}, &[one, at.rest])?;
    let weights = [
        far_weight(cx, at.rest, s)?,
        near_weight(cx, at.rest, s)?,
        near_weight(cx, on, s)?,
        far_weight(cx, on, s)?,
    ];
    let mut terms = Vec::new();
    for (offset, weight) in (-1i64..).zip(weights) {
        let step = cx.dim_value(Dim::from(offset))?;
        let index = cx.op(Add {}, &[at.whole, step])?;
        terms.push(term(cx, s, index, weight, from)?);
    }
    if s.exclude_outside {
        let mut total = terms[0].1;
        for t in &terms[1..] {
            total = cx.op(Add {}, &[total, t.1])?;
        }
        for t in &mut terms {
            t.1 = share(cx, t.1, total)?;
        }
    }
    sum_of(cx, x, axis, &terms)
}

/// An index made one of the operand's, and its weight, 0 where the index was none and none such is wanted.
fn term(
    cx: &mut NodeCx<'_, '_>,
    s: &Sampling,
    index: Value,
    weight: Value,
    from: &Dim,
) -> Res<(Value, Value)> {
    let (zero, end) = (cx.dim_value(Dim::from(0))?, cx.dim_value(from.clone() - Dim::from(1))?);
    let inner = cx.op(Max {}, &[index, zero])?;
    let inner = cx.op(Min {}, &[inner, end])?;
    if !s.exclude_outside {
        return Ok((inner, weight));
    }
    let inside = cx.op(Eq {}, &[inner, index])?;
    let dtype = cx.dtype(weight);
    let none = cx.num(dtype, 0.0)?;
    Ok((inner, cx.op(Select {}, &[inside, weight, none])?))
}

/// `weight / total`; of nothing, nothing.
fn share(cx: &mut NodeCx<'_, '_>, weight: Value, total: Value) -> Res<Value> {
    let dtype = cx.dtype(weight);
    let (zero, one) = (cx.num(dtype, 0.0)?, cx.num(dtype, 1.0)?);
    let none = cx.op(Eq {}, &[total, zero])?;
    let total = cx.op(Select {}, &[none, one, total])?;
    cx.op(Div {}, &[weight, total])
}

/// The cubic filter at distance `d` up to 1: `(a + 2)d^3 - (a + 3)d^2 + 1`, with its zero taken out, which keeps digits.
fn near_weight(cx: &mut NodeCx<'_, '_>, d: Value, s: &Sampling) -> Res<Value> {
    let dtype = cx.dtype(d);
    let (one, a) = (cx.num(dtype, 1.0)?, cx.num(dtype, s.cubic + 2.0)?);
    let (left, right) = (cx.op(Sub {}, &[one, d])?, cx.op(Add {}, &[one, d])?);
    let square = cx.op(Mul {}, &[d, d])?;
    let square = cx.op(Mul {}, &[square, a])?;
    let right = cx.op(Sub {}, &[right, square])?;
    cx.op(Mul {}, &[left, right])
}

/// The cubic filter at distance `1 + d`, d up to 1: `a * d * (1 - d)^2`.
fn far_weight(cx: &mut NodeCx<'_, '_>, d: Value, s: &Sampling) -> Res<Value> {
    let dtype = cx.dtype(d);
    let (one, a) = (cx.num(dtype, 1.0)?, cx.num(dtype, s.cubic)?);
    let left = cx.op(Sub {}, &[one, d])?;
    let square = cx.op(Mul {}, &[left, left])?;
    let d = cx.op(Mul {}, &[d, a])?;
    cx.op(Mul {}, &[d, square])
}

/// With a filter stretched by the step: the sum over a window. Also where the position lies outside the operand.
pub(super) fn windowed(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    s: &Sampling,
    along: &Along,
    l: &Line,
    from: &Dim,
) -> Res<(Value, Option<Value>)> {
    let float = cx.dtype(x);
    // no narrower than a step of 1, and a step that is a fraction needs one element more
    let (p, step) = (along.p.clone(), cx.simplify(along.q.dmax(&along.p)));
    let reach = Dim::from(if s.mode == Mode::Cubic { 2 } else { 1 });
    cx.require(Pred::Le(Dim::from(1), p.clone()), "antialias needs a result with elements")?;
    let half = cx.simplify((reach * step.clone() + p.clone() - Dim::from(1)).floordiv(&p));
    let i = counter(cx, &along.to, from, Some(&(half.clone() * Dim::from(2))))?;
    let at = place(cx, i, s, l, from, float)?;
    let offset = offsets(cx, i, &half)?;
    let index = cx.op(Add {}, &[at.whole, offset])?;
    let weight = stretched(cx, s, offset, at.rest, (p, step))?;
    let (index, weight) = term(cx, s, index, weight, from)?;
    let total = cx.op(ReduceSum { axes: vec![1], keepdims: true }, &[weight])?;
    let weight = share(cx, weight, total)?;
    let parts = cx.op(Gather { axis: along.axis as i64 }, &[x, index])?;
    let weight = along_axis(cx, weight, 2, cx.rank(x) - along.axis - 1)?;
    let parts = cx.op(Mul {}, &[parts, weight])?;
    let y = cx.op(ReduceSum { axes: vec![along.axis as i64 + 1], keepdims: false }, &[parts])?;
    let outside = at.outside.map(|o| first_column(cx, o)).transpose()?;
    Ok((y, outside))
}

/// The elements of a window, `half` of them after the position's whole part, counted from there: a row of them, or one a
/// row of `i` when that has columns.
fn offsets(cx: &mut NodeCx<'_, '_>, i: Value, half: &Dim) -> Res<Value> {
    let first = Dim::from(1) - half.clone();
    let all = Iota { axis: 1, shape: vec![Dim::from(1), half.clone() * Dim::from(2)], dtype: DType::I64 };
    if let (Some(f), [Some(rows), Some(columns)]) =
        (first.as_const(), &cx.shape(i).iter().map(Dim::as_const).collect::<Vec<_>>()[..])
        && *columns > 1
    {
        let all: Vec<i64> = (0..*rows).flat_map(|_| f..f + columns).collect();
        let value = Tensor::from_ints(DType::I64, &[*rows as usize, *columns as usize], &all);
        return cx.op(Constant { value, shape: None }, &[]);
    }
    let (all, first) = (cx.op(all, &[])?, cx.dim_value(first)?);
    cx.op(Add {}, &[all, first])
}

/// The filter at `(offset - rest) * p / q`.
fn stretched(
    cx: &mut NodeCx<'_, '_>,
    s: &Sampling,
    offset: Value,
    rest: Value,
    scale: (Dim, Dim),
) -> Res<Value> {
    let float = cx.dtype(rest);
    let (zero, one, two) = (cx.num(float, 0.0)?, cx.num(float, 1.0)?, cx.num(float, 2.0)?);
    let (p, q) = (cx.dim_value(scale.0)?, cx.dim_value(scale.1)?);
    let (p, q, offset) = (cx.cast(p, float)?, cx.cast(q, float)?, cx.cast(offset, float)?);
    let scale = cx.op(Div {}, &[p, q])?;
    let d = cx.op(Sub {}, &[offset, rest])?;
    let d = cx.op(Mul {}, &[d, scale])?;
    let d = cx.op(Abs {}, &[d])?;
    if s.mode == Mode::Linear {
        let w = cx.op(Sub {}, &[one, d])?;
        return cx.op(Max {}, &[w, zero]);
    }
    let beyond = cx.op(Sub {}, &[d, one])?;
    let (near, far) = (near_weight(cx, d, s)?, far_weight(cx, beyond, s)?);
    let (is_near, is_far) = (cx.op(Le {}, &[d, one])?, cx.op(Lt {}, &[d, two])?);
    let far = cx.op(Select {}, &[is_far, far, zero])?;
    cx.op(Select {}, &[is_near, near, far])
}

/// The first column of a matrix, as a vector.
fn first_column(cx: &mut NodeCx<'_, '_>, v: Value) -> Res<Value> {
    let rows = cx.shape(v)[0].clone();
    let part =
        Slice { starts: vec![Dim::from(0); 2], sizes: vec![rows.clone(), Dim::from(1)], steps: vec![1; 2] };
    let part = cx.op(part, &[v])?;
    cx.reshape(part, vec![rows])
}
