//! The second output of `MaxPool`: where the maxima lie, as places in the whole operand. Every window's elements are
//! gathered along an axis of their own; the first one inside the operand that equals the maximum is the one.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use tgc_ir::graph::Value;
use tgc_ir::ops::{
    Add, And, ArgMax, Div, Eq, Gather, Iota, IsNan, Le, Lt, Max, Min, Mul, Or, Rem, Sub, Transpose,
};
use tgc_ir::types::{DType, Dim};

/// Windows of a pool: one entry a spatial axis.
pub(super) struct Windows<'a> {
    pub(super) kernel: &'a [i64],
    pub(super) strides: &'a [i64],
    pub(super) dilations: &'a [i64],
    /// Padding in front.
    pub(super) before: &'a [Dim],
}

/// Places of the maxima `y` of the windows of `x`; with `columns` the first spatial axis counts fastest.
pub(super) fn places(
    cx: &mut NodeCx<'_, '_>,
    x: Value,
    y: Value,
    w: &Windows<'_>,
    columns: bool,
) -> Res<Value> {
    let (xs, ys) = (cx.shape(x), cx.shape(y));
    let n = w.kernel.len();
    let (mut v, mut valid) = (x, None);
    for i in 0..n {
        let at = candidates(cx, w, i, &ys[2 + i])?;
        let (zero, size) = (cx.dim_value(Dim::from(0))?, cx.dim_value(xs[2 + i].clone())?);
        let last = cx.dim_value(xs[2 + i].clone() - Dim::from(1))?;
        let (low, high) = (cx.op(Le {}, &[zero, at])?, cx.op(Lt {}, &[at, size])?);
        let inside = cx.op(And {}, &[low, high])?;
        let mut spread = vec![Dim::from(1); 2 * n];
        (spread[i], spread[n + i]) = (ys[2 + i].clone(), Dim::from(w.kernel[i]));
        let inside = cx.reshape(inside, spread)?;
        valid = Some(valid.map_or(Ok(inside), |a| cx.op(And {}, &[a, inside]))?);
        let at = cx.op(Max {}, &[at, zero])?;
        let at = cx.op(Min {}, &[at, last])?;
        v = cx.op(Gather { axis: 2 + 2 * i as i64 }, &[v, at])?;
    }
    // [N, C, windows and their elements in turn] as [N, C, windows.., elements..]
    let perm = [0, 1].into_iter().chain((0..n).map(|i| 2 + 2 * i)).chain((0..n).map(|i| 3 + 2 * i));
    let v = cx.op(Transpose { perm: perm.map(|p| p as i64).collect() }, &[v])?;
    let single = [&ys[..], &vec![Dim::from(1); n][..]].concat();
    let most = cx.reshape(y, single)?;
    let mut hit = cx.op(Eq {}, &[v, most])?;
    if cx.dtype(x).is_float() {
        let (a, b) = (cx.op(IsNan {}, &[v])?, cx.op(IsNan {}, &[most])?);
        let both = cx.op(And {}, &[a, b])?;
        hit = cx.op(Or {}, &[hit, both])?;
    }
    if let Some(valid) = valid {
        hit = cx.op(And {}, &[hit, valid])?;
    }
    let count: i64 = w.kernel.iter().product();
    let hit = cx.reshape(hit, [&ys[..], &[Dim::from(count)]].concat())?;
    let chosen = cx.op(ArgMax { axis: -1, keepdims: false, last: false, smallest: false }, &[hit])?;
    linear(cx, chosen, &xs, w, columns)
}

/// Index in the operand of each element of each window along spatial axis `i`, which may lie outside: [windows, elements].
fn candidates(cx: &mut NodeCx<'_, '_>, w: &Windows<'_>, i: usize, windows: &Dim) -> Res<Value> {
    let first = starts(cx, w, i, vec![windows.clone(), Dim::from(1)], 0)?;
    let shape = vec![Dim::from(1), Dim::from(w.kernel[i])];
    let element = cx.op(Iota { axis: 1, shape, dtype: DType::I64 }, &[])?;
    let step = cx.dim_value(Dim::from(w.dilations[i]))?;
    let element = cx.op(Mul {}, &[element, step])?;
    cx.op(Add {}, &[first, element])
}

/// Index of each window's first element along spatial axis `i`, counted along `axis` of `shape`.
fn starts(cx: &mut NodeCx<'_, '_>, w: &Windows<'_>, i: usize, shape: Vec<Dim>, axis: usize) -> Res<Value> {
    let at = cx.op(Iota { axis: axis as i64, shape, dtype: DType::I64 }, &[])?;
    let (stride, before) = (cx.dim_value(Dim::from(w.strides[i]))?, cx.dim_value(w.before[i].clone())?);
    let at = cx.op(Mul {}, &[at, stride])?;
    cx.op(Sub {}, &[at, before])
}

/// The place in the whole operand of the chosen element of each window.
fn linear(cx: &mut NodeCx<'_, '_>, chosen: Value, xs: &[Dim], w: &Windows<'_>, columns: bool) -> Res<Value> {
    let (n, ys) = (w.kernel.len(), cx.shape(chosen));
    let mut rest = chosen;
    let mut along = Vec::new();
    for i in (0..n).rev() {
        let (k, d) = (cx.dim_value(Dim::from(w.kernel[i]))?, cx.dim_value(Dim::from(w.dilations[i]))?);
        let element = cx.op(Rem {}, &[rest, k])?;
        rest = cx.op(Div {}, &[rest, k])?;
        let mut shape = vec![Dim::from(1); ys.len()];
        shape[2 + i] = ys[2 + i].clone();
        let first = starts(cx, w, i, shape, 2 + i)?;
        let element = cx.op(Mul {}, &[element, d])?;
        along.push((cx.op(Add {}, &[first, element])?, xs[2 + i].clone()));
    }
    if !columns {
        along.reverse();
    }
    let mut place = None;
    for axis in [0, 1] {
        let mut shape = vec![Dim::from(1); ys.len()];
        shape[axis] = ys[axis].clone();
        let at = cx.op(Iota { axis: axis as i64, shape, dtype: DType::I64 }, &[])?;
        place = Some(behind(cx, place, at, xs[axis].clone())?);
    }
    for (at, size) in along {
        place = Some(behind(cx, place, at, size)?);
    }
    place.ok_or_else(|| cx.fail("E-ONNX-022", "the operand has no axes").into())
}

/// `before * size + at`.
fn behind(cx: &mut NodeCx<'_, '_>, before: Option<Value>, at: Value, size: Dim) -> Res<Value> {
    let Some(b) = before else { return Ok(at) };
    let size = cx.dim_value(size)?;
    let b = cx.op(Mul {}, &[b, size])?;
    cx.op(Add {}, &[b, at])
}
