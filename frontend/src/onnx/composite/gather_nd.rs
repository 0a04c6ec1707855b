//! `GatherND` and `ScatterND`: the indexed axes become one, and each tuple of indices its linear index. A tuple with an index out of range
//! becomes one that `gather` refuses, so that none reads a wrong element.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, And, Gather, Iota, Le, Lt, Mul, ScatterElements, Select, Slice};
use tgc_ir::types::{DType, Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("GatherND", 11, ANY, gather_nd), ("ScatterND", 11, ANY, scatter_nd)];

/// Updates along the flattened indexed axes, one row for each tuple.
fn scatter_nd(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let reduction = super::index::reduction(cx)?;
    let (x, i, u) = (cx.x(0)?, cx.x(1)?, cx.x(2)?);
    let i = cx.cast(i, DType::I64)?;
    let (xs, is) = (cx.shape(x), cx.shape(i));
    let k = tuple_length(cx, &is)?;
    if k < 1 || k > xs.len() {
        let m = format!("tuples of {k} do not fit data of rank {}", xs.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let over = is[..is.len() - 1].to_vec();
    let want = [over.clone(), xs[k..].to_vec()].concat();
    let found = cx.shape(u);
    if found.len() != want.len() {
        let m = format!("the updates have {} axes, {} are wanted", found.len(), want.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    for (f, w) in found.iter().zip(&want) {
        cx.require(Pred::Eq(f.clone(), w.clone()), "updates must have the shape of the indexed parts")?;
    }
    let at = tuples(cx, i, 0, &xs[..k])?;
    let (count, row): (Dim, Dim) = (over.into_iter().product(), xs[k..].iter().cloned().product());
    let at = cx.reshape(at, vec![count.clone(), Dim::from(1)])?;
    let at = cx.expand(at, vec![count.clone(), row.clone()])?;
    let u = cx.reshape(u, vec![count, row.clone()])?;
    let flat = cx.reshape(x, vec![xs[..k].iter().cloned().product(), row])?;
    let y = cx.op(ScatterElements { axis: 0, reduction }, &[flat, at, u])?;
    Ok(vec![cx.reshape(y, xs)?])
}

/// The last dim of the indices.
fn tuple_length(cx: &NodeCx<'_, '_>, is: &[Dim]) -> Res<usize> {
    let Some(last) = is.last() else {
        return Err(cx.fail("E-ONNX-022", "the indices need one axis or more").into());
    };
    last.as_const().and_then(|k| usize::try_from(k).ok()).ok_or_else(|| {
        let m = format!("the last dim of the indices is the length of a tuple and must be a number, found `{last}`");
        cx.fail("E-ONNX-016", m).help("give it a fixed size with --dim").into()
    })
}

fn gather_nd(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let batch = cx.attrs.int("batch_dims", 0)?;
    let (x, i) = (cx.x(0)?, cx.x(1)?);
    let i = cx.cast(i, DType::I64)?;
    let (xs, is) = (cx.shape(x), cx.shape(i));
    let k = tuple_length(cx, &is)?;
    let b = usize::try_from(batch).ok().filter(|b| *b < is.len());
    let Some(b) = b.filter(|b| k >= 1 && k.checked_add(*b).is_some_and(|n| n <= xs.len())) else {
        let m = format!(
            "batch_dims = {batch} and tuples of {k} do not fit data of rank {} and indices of rank {}",
            xs.len(),
            is.len()
        );
        return Err(cx.fail("E-ONNX-022", m).into());
    };
    for (d, e) in xs.iter().zip(&is).take(b) {
        let pred = Pred::Eq(d.clone(), e.clone());
        cx.require(pred, "the first batch_dims dims of data and indices must be equal")?;
    }
    let at = tuples(cx, i, b, &xs[..b + k])?;
    let flat = [vec![xs[..b + k].iter().cloned().product()], xs[b + k..].to_vec()].concat();
    let x = cx.reshape(x, flat)?;
    Ok(vec![cx.op(Gather { axis: 0 }, &[x, at])?])
}

/// The linear index in the leading `dims` of each tuple: its batch indices (the first `b`), then its elements. It is the
/// number of elements where one is out of range.
fn tuples(cx: &mut NodeCx<'_, '_>, i: Value, b: usize, dims: &[Dim]) -> Res<Value> {
    let is = cx.shape(i);
    let over = is[..is.len() - 1].to_vec();
    let zero = cx.dim_value(Dim::from(0))?;
    let (mut linear, mut fits) = (None, None);
    for (n, dim) in dims.iter().enumerate() {
        let size = cx.dim_value(dim.clone())?;
        let at = if n < b {
            let mut along = vec![Dim::from(1); over.len()];
            along[n] = dim.clone();
            cx.op(Iota { axis: n as i64, shape: along, dtype: DType::I64 }, &[])?
        } else {
            let raw = element(cx, i, n - b, &over)?;
            let (negative, plus) = (cx.op(Lt {}, &[raw, zero])?, cx.op(Add {}, &[raw, size])?);
            let at = cx.op(Select {}, &[negative, plus, raw])?;
            let (low, high) = (cx.op(Le {}, &[zero, at])?, cx.op(Lt {}, &[at, size])?);
            for test in [low, high] {
                fits = Some(fits.map_or(Ok(test), |f| cx.op(And {}, &[f, test]))?);
            }
            at
        };
        linear = Some(match linear {
            None => at,
            Some(l) => {
                let l = cx.op(Mul {}, &[l, size])?;
                cx.op(Add {}, &[l, at])?
            }
        });
    }
    let (Some(linear), Some(fits)) = (linear, fits) else {
        return Err(cx.fail("E-ONNX-022", "a tuple of indices needs one element or more").into());
    };
    let linear = cx.expand(linear, over)?;
    let all = cx.dim_value(dims.iter().cloned().product())?;
    cx.op(Select {}, &[fits, linear, all])
}

/// Element `n` of each tuple.
fn element(cx: &mut NodeCx<'_, '_>, i: Value, n: usize, over: &[Dim]) -> Res<Value> {
    let (one, zero) = (Dim::from(1), Dim::from(0));
    let mut starts = vec![zero; over.len()];
    starts.push(Dim::from(n));
    let sizes = [over, &[one]].concat();
    let steps = vec![1; sizes.len()];
    let part = cx.op(Slice { starts, sizes, steps }, &[i])?;
    cx.reshape(part, over.to_vec())
}
