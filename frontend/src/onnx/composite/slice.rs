//! `Slice`: starts, ends, axes and steps become exact symbolic offsets and sizes, clamped as ONNX says.

use crate::limits::TO_THE_END;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::Slice;
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("Slice", 1, ANY, slice)];

/// Start and size of one axis, and the step.
struct Part {
    start: Dim,
    size: Dim,
    step: i64,
}

/// A position: counted from the front, or back from the end.
enum Pos {
    Front(Dim),
    Back(Dim),
    BeforeAll,
}

fn slice(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let (starts, ends, axes, steps) = operands(cx)?;
    if starts.len() != ends.len() || axes.as_ref().is_some_and(|a| a.len() != starts.len()) {
        return Err(cx.fail("E-ONNX-022", "starts, ends and axes must have the same length").into());
    }
    if axes.is_none() && starts.len() > shape.len() {
        let m = format!("{} starts given for rank {}", starts.len(), shape.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if steps.len() != starts.len() {
        return Err(cx.fail("E-ONNX-022", "starts and steps must have the same length").into());
    }
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    cx.axes(&axes, shape.len())?;
    let whole = |d: &Dim| Part { start: Dim::from(0), size: d.clone(), step: 1 };
    let mut parts: Vec<Part> = shape.iter().map(whole).collect();
    for (i, &a) in axes.iter().enumerate() {
        let a = cx.axis(a, shape.len())?;
        parts[a] = part(cx, &shape[a], &starts[i], &ends[i], steps[i])?;
    }
    if parts.iter().zip(&shape).all(|(p, d)| p.start.is(0) && p.size == *d && p.step == 1) {
        return Ok(vec![x]);
    }
    let starts = parts.iter().map(|p| p.start.clone()).collect();
    let steps = parts.iter().map(|p| p.step).collect();
    let sizes = parts.into_iter().map(|p| p.size).collect();
    Ok(vec![cx.op(Slice { starts, sizes, steps }, &[x])?])
}

type Operands = (Vec<Dim>, Vec<Dim>, Option<Vec<i64>>, Option<Vec<i64>>);

fn operands(cx: &mut NodeCx<'_, '_>) -> Res<Operands> {
    if cx.opset < 10 {
        let (starts, ends) = (cx.attrs.ints("starts")?, cx.attrs.ints("ends")?);
        let (Some(s), Some(e)) = (starts, ends) else {
            return Err(cx.fail("E-ONNX-007", "attributes `starts` and `ends` are needed").into());
        };
        let dims = |v: Vec<i64>| v.into_iter().map(Dim::from).collect();
        return Ok((dims(s), dims(e), cx.attrs.ints("axes")?, None));
    }
    let axes = cx.opt(3).map(|_| cx.ints(3, "axes")).transpose()?;
    let steps = cx.opt(4).map(|_| cx.ints(4, "steps")).transpose()?;
    Ok((cx.sizes(1, "starts")?, cx.sizes(2, "ends")?, axes, steps))
}

fn position(cx: &mut NodeCx<'_, '_>, s: &Dim) -> Res<Pos> {
    match s.as_const() {
        Some(c) if c >= TO_THE_END => return Ok(Pos::Back(Dim::from(0))),
        Some(c) if c <= -TO_THE_END => return Ok(Pos::BeforeAll),
        _ => {}
    }
    let (lo, hi) = cx.range(s);
    if hi < 0 {
        return Ok(Pos::Back(-s.clone()));
    }
    if lo < 0 {
        cx.require(Pred::Le(Dim::from(0), s.clone()), "a computed start or end must not be negative")?;
    }
    Ok(Pos::Front(s.clone()))
}

fn part(cx: &mut NodeCx<'_, '_>, d: &Dim, start: &Dim, end: &Dim, step: i64) -> Res<Part> {
    if step == 0 {
        return Err(cx.fail("E-ONNX-022", "a step is 0; allowed are other numbers").into());
    }
    let (s, e) = (position(cx, start)?, position(cx, end)?);
    let (start, len) = if step > 0 { forward(cx, d, s, e) } else { backward(cx, d, s, e) };
    let k = Dim::from(i128::from(step).abs());
    let size = cx.simplify((len + k.clone() - Dim::from(1)).floordiv(&k));
    let start = if size.is(0) { Dim::from(0) } else { start };
    // a size of at most one element never takes a step, so a huge step is as good as 1
    let step = if size.is(0) || size.is(1) { 1 } else { step };
    Ok(Part { start, size, step })
}

/// Clamped start and the length up to the end, which is never below 0.
fn forward(cx: &NodeCx<'_, '_>, d: &Dim, s: Pos, e: Pos) -> (Dim, Dim) {
    let zero = Dim::from(0);
    let end = cx.simplify(match &e {
        Pos::Front(b) => b.dmin(d),
        Pos::Back(b) => (d.clone() - b.clone()).dmax(&zero),
        Pos::BeforeAll => zero.clone(),
    });
    let (start, len) = match (s, e) {
        (Pos::BeforeAll, _) => (zero.clone(), end),
        // sizes are never negative, even where their range does not show it
        (Pos::Front(a), _) if a.is(0) => (a, end),
        (Pos::Front(a), _) => (a.dmin(d), (end - a).dmax(&zero)),
        (Pos::Back(a), Pos::Back(b)) => {
            let reach = cx.simplify(a.dmin(d));
            ((d.clone() - a).dmax(&zero), (reach - b).dmax(&zero))
        }
        (Pos::Back(a), _) => {
            let start = cx.simplify((d.clone() - a).dmax(&zero));
            let len = (end - start.clone()).dmax(&zero);
            (start, len)
        }
    };
    (cx.simplify(start), cx.simplify(len))
}

/// As [`forward`] for negative steps: a start is clamped to the first up to the last element, an end may be before all.
fn backward(cx: &NodeCx<'_, '_>, d: &Dim, s: Pos, e: Pos) -> (Dim, Dim) {
    let (zero, before) = (Dim::from(0), Dim::from(-1));
    let last = d.clone() - Dim::from(1);
    let start = cx.simplify(match s {
        Pos::Front(a) => a.dmin(&last),
        // "to the end" means the last element here
        Pos::Back(a) if a.is(0) || a.is(1) => last.clone(),
        // the last element comes after: without elements it is before the first
        Pos::Back(a) => (d.clone() - a).dmax(&zero).dmin(&last),
        Pos::BeforeAll => zero.dmin(&last),
    });
    let end = cx.simplify(match e {
        Pos::Front(a) => a.dmin(&last),
        Pos::Back(a) if a.is(0) => last,
        Pos::Back(a) => (d.clone() - a).dmax(&before),
        Pos::BeforeAll => before,
    });
    let len = cx.simplify((start.clone() - end).dmax(&zero));
    (start, len)
}
