//! `Conv`, `ConvInteger`, and the window attributes they share with pooling: strides, dilations, explicit and automatic
//! padding.

use crate::limits::MAX_WINDOW;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Conv, Pad};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Dim;

pub(crate) const ROWS: &[Row] = &[
    ("Conv", 1, ANY, |cx| {
        let (x, w, bias) = (cx.x(0)?, cx.x(1)?, cx.opt(2));
        Ok(vec![convolved(cx, x, w, bias)?])
    }),
    ("ConvInteger", 10, ANY, |cx| {
        let rank = cx.x(1).map(|w| cx.rank(w))?;
        let (x, w) = (super::matmul::shifted(cx, 0, 2, 0)?, super::matmul::shifted(cx, 1, 3, rank.saturating_sub(1))?);
        Ok(vec![convolved(cx, x, w, None)?])
    }),
];

/// Attributes of a window.
pub(super) struct Window {
    pub(super) kernel: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) dilations: Vec<i64>,
    pub(super) padding: Padding,
}

/// Padding as numbers (begins, then ends), or as sizes where it depends on the operand.
pub(super) enum Padding {
    Fixed(Vec<i64>),
    Sizes(Vec<Dim>, Vec<Dim>),
}

/// A list attribute with one number an axis, each at least `least`.
pub(super) fn list(cx: &NodeCx<'_, '_>, name: &str, n: usize, least: i64, default: i64) -> Res<Vec<i64>> {
    let v = cx.attrs.ints(name)?.unwrap_or_else(|| vec![default; n]);
    if v.len() != n {
        let m = format!("attribute `{name}` has {} numbers; {n} are wanted", v.len());
        return Err(cx.fail("E-ONNX-007", m).into());
    }
    if let Some(bad) = v.iter().find(|x| !(least..=MAX_WINDOW).contains(*x)) {
        let m = format!("attribute `{name}` holds {bad}; allowed are {least} to {MAX_WINDOW}");
        return Err(cx.fail("E-ONNX-007", m).into());
    }
    Ok(v)
}

/// The kernel's extents from attribute `kernel_shape`; for a convolution the weight tells when it is absent.
pub(super) fn kernel(cx: &NodeCx<'_, '_>, n: usize) -> Res<Option<Vec<i64>>> {
    if cx.attrs.raw("kernel_shape").is_none() {
        return Ok(None);
    }
    list(cx, "kernel_shape", n, 1, 1).map(Some)
}

/// Reads the window attributes for spatial sizes `sizes` and a kernel of these extents.
pub(super) fn window(cx: &NodeCx<'_, '_>, sizes: &[Dim], kernel: Vec<i64>) -> Res<Window> {
    let n = sizes.len();
    let strides = list(cx, "strides", n, 1, 1)?;
    let dilations = list(cx, "dilations", n, 1, 1)?;
    let auto = cx.attrs.string("auto_pad", "NOTSET")?;
    let pads = list(cx, "pads", 2 * n, 0, 0)?;
    let padding = match auto.as_str() {
        "NOTSET" | "" => Padding::Fixed(pads),
        "VALID" => Padding::Fixed(vec![0; 2 * n]),
        "SAME_UPPER" | "SAME_LOWER" => same(cx, sizes, &kernel, &strides, &dilations, auto == "SAME_LOWER"),
        other => {
            let m = format!("auto_pad = `{other}` is not known (allowed: NOTSET, VALID, SAME_UPPER, SAME_LOWER)");
            return Err(cx.fail("E-ONNX-007", m).into());
        }
    };
    Ok(Window { kernel, strides, dilations, padding })
}

/// Padding that gives ceil(size / stride) windows; the odd one goes behind, or in front for `lower`.
fn same(cx: &NodeCx<'_, '_>, sizes: &[Dim], kernel: &[i64], strides: &[i64], dilations: &[i64], lower: bool) -> Padding {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (i, d) in sizes.iter().enumerate() {
        let (s, reach) = (Dim::from(strides[i]), Dim::from((kernel[i] - 1) * dilations[i] + 1));
        let windows = (d.clone() + s.clone() - Dim::from(1)).floordiv(&s);
        let total = (windows - Dim::from(1)) * s + reach - d.clone();
        let total = cx.simplify(total.dmax(&Dim::from(0)));
        let half = total.floordiv(&Dim::from(2));
        let rest = total - half.clone();
        let (b, a) = if lower { (rest, half) } else { (half, rest) };
        before.push(b);
        after.push(a);
    }
    let fixed: Option<Vec<i64>> = before.iter().chain(&after).map(Dim::as_const).collect();
    fixed.map_or(Padding::Sizes(before, after), Padding::Fixed)
}

/// The operand with symbolic padding applied, and the padding that is left for the op itself.
pub(super) fn padded(cx: &mut NodeCx<'_, '_>, x: Value, padding: Padding, value: Scalar) -> Res<(Value, Vec<i64>)> {
    match padding {
        Padding::Fixed(p) => Ok((x, p)),
        Padding::Sizes(b, a) => {
            let left = vec![0; b.len() + a.len()];
            let lead = |v: Vec<Dim>| [vec![Dim::from(0); 2], v].concat();
            let y = cx.op(Pad { before: lead(b), after: lead(a), value }, &[x])?;
            Ok((y, left))
        }
    }
}

/// Extents of a convolution's kernel, which the weight tells and `kernel_shape` may repeat.
pub(super) fn extents(cx: &NodeCx<'_, '_>, x: Value, w: Value) -> Res<Vec<i64>> {
    let (xs, ws) = (cx.shape(x), cx.shape(w));
    if xs.len() < 3 || ws.len() != xs.len() {
        let m = format!("the operand needs rank 3 or more and the weight the same, found {} and {}", xs.len(), ws.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let extents: Option<Vec<i64>> = ws[2..].iter().map(Dim::as_const).collect();
    let Some(extents) = extents.filter(|e| e.iter().all(|k| (1..=MAX_WINDOW).contains(k))) else {
        let m = format!("the kernel's extents must be numbers of at least 1, found a weight of {:?}", cx.g.ty(w).map(|t| t.to_string()));
        return Err(cx.fail("E-ONNX-022", m).into());
    };
    if let Some(k) = kernel(cx, extents.len())?
        && k != extents
    {
        let m = format!("kernel_shape = {k:?}, but the weight's is {extents:?}");
        return Err(cx.fail("E-ONNX-007", m).into());
    }
    Ok(extents)
}

/// Attribute `group`.
pub(super) fn groups(cx: &NodeCx<'_, '_>) -> Res<i64> {
    let groups = cx.attrs.int("group", 1)?;
    if (1..=MAX_WINDOW).contains(&groups) {
        return Ok(groups);
    }
    Err(cx.fail("E-ONNX-007", format!("group = {groups}; allowed are numbers of at least 1")).into())
}

/// The convolution that the node's attributes describe, of these operands.
pub(super) fn convolved(cx: &mut NodeCx<'_, '_>, x: Value, w: Value, bias: Option<Value>) -> Res<Value> {
    let extents = extents(cx, x, w)?;
    let groups = groups(cx)?;
    let win = window(cx, &cx.shape(x)[2..], extents)?;
    let zero = Scalar::from_int(cx.dtype(x), 0);
    let (x, pads) = padded(cx, x, win.padding, zero)?;
    let op = Conv { strides: win.strides, pads, dilations: win.dilations, groups, channels_last: false };
    let ins: Vec<Value> = [x, w].into_iter().chain(bias).collect();
    cx.op(op, &ins)
}
