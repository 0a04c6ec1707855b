//! Indexing: `Gather`, `GatherElements`, `ScatterElements`, `NonZero`, `CumSum`.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{BindDim, CumSum, Gather, GatherElements, NonZero, ScatterElements, Slice};
use tgc_ir::types::{DType, Dim, SymInfo};

pub(crate) const ROWS: &[Row] = &[
    ("Gather", 1, ANY, |cx| {
        let axis = cx.attrs.int("axis", 0)?;
        let (x, i) = (cx.x(0)?, indices(cx)?);
        Ok(vec![cx.op(Gather { axis }, &[x, i])?])
    }),
    ("GatherElements", 11, ANY, |cx| {
        let axis = cx.attrs.int("axis", 0)?;
        let (x, i) = (cx.x(0)?, indices(cx)?);
        Ok(vec![cx.op(GatherElements { axis }, &[x, i])?])
    }),
    ("Scatter", 9, 10, scatter),
    ("ScatterElements", 11, ANY, scatter),
    ("NonZero", 9, ANY, non_zero),
    ("CumSum", 11, ANY, cum_sum),
];

/// Operand 1 as i64.
fn indices(cx: &mut NodeCx<'_, '_>) -> Res<Value> {
    let i = cx.x(1)?;
    cx.cast(i, DType::I64)
}

fn scatter(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let axis = cx.attrs.int("axis", 0)?;
    let reduction = reduction(cx)?;
    let (x, i, u) = (cx.x(0)?, indices(cx)?, cx.x(2)?);
    Ok(vec![cx.op(ScatterElements { axis, reduction }, &[x, i, u])?])
}

/// How an update joins what is there: an attribute since opset 16.
pub(super) fn reduction(cx: &NodeCx<'_, '_>) -> Res<String> {
    let reduction = if cx.opset < 16 { "none".to_string() } else { cx.attrs.string("reduction", "none")? };
    if !matches!(reduction.as_str(), "none" | "add" | "mul" | "min" | "max") {
        let m = format!("reduction = `{reduction}` is not known (allowed: none, add, mul, min, max)");
        return Err(cx.fail("E-ONNX-007", m).into());
    }
    Ok(reduction)
}

/// The number of hits is known only when the model runs: a new symbol stands for it from here on.
fn non_zero(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    if cx.scope.region {
        let m = "its result's size depends on data, which is not supported inside a branch";
        return Err(cx.fail("E-ONNX-016", m).help("move it out of the branch").into());
    }
    let x = cx.x(0)?;
    let rank = cx.rank(x);
    let most = cx.shape(x).into_iter().product::<Dim>();
    let hi = i64::try_from(cx.range(&most).1).unwrap_or(i64::MAX);
    let found = cx.op_n(NonZero {}, &[x], 2)?;
    let base = cx.node.output.first().map_or("nonzero", |o| o.as_str());
    let symbol = cx.g.symbols.fresh(&format!("{base}_count"));
    cx.g.symbols.insert(&symbol, SymInfo { lo: 0, hi, named: false });
    cx.op(BindDim { symbol: symbol.clone() }, &[found[1]])?;
    let zero = Dim::from(0);
    let sizes = vec![Dim::from(rank), Dim::sym(&symbol)];
    Ok(vec![cx.op(Slice { starts: vec![zero.clone(), zero], sizes, steps: vec![1, 1] }, &[found[0]])?])
}

fn cum_sum(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (exclusive, reverse) = (cx.attrs.flag("exclusive", false)?, cx.attrs.flag("reverse", false)?);
    let x = cx.x(0)?;
    let axis = cx.ints(1, "the axis")?;
    let [axis] = axis[..] else { return Err(cx.fail("E-ONNX-022", "the axis must be one number").into()) };
    Ok(vec![cx.op(CumSum { axis, exclusive, reverse }, &[x])?])
}
