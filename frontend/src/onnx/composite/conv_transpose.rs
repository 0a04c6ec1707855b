//! `ConvTranspose`, as one convolution: with stride s the results at positions q * s + r, for one r, are a convolution with
//! every s-th element of the kernel. The s of each axis become channels, and channels become positions afterwards, so no
//! product with a zero between elements is computed.

use super::conv::{self, Padding};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Conv, Pad, Slice, Transpose};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("ConvTranspose", 1, ANY, conv_transpose)];

/// What one axis asks for.
struct Axis {
    stride: i64,
    /// Elements of the kernel for each residue of the stride.
    taps: i64,
    /// Results that are cut off in front.
    before: Dim,
    size: Dim,
}

fn conv_transpose(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (x, w) = (cx.x(0)?, cx.x(1)?);
    let bias = cx.opt(2);
    let y = cx.wide(x, |cx, x| {
        let d = cx.dtype(x);
        let w = cx.cast(w, d)?;
        let y = products(cx, x, w)?;
        let Some(bias) = bias else { return Ok(y) };
        let mut along = vec![Dim::from(1); cx.rank(y) - 1];
        along[0] = cx.shape(y)[1].clone();
        let bias = cx.cast(bias, d)?;
        let bias = cx.reshape(bias, along)?;
        cx.op(Add {}, &[y, bias])
    })?;
    Ok(vec![y])
}

fn products(cx: &mut NodeCx<'_, '_>, x: Value, w: Value) -> Res<Value> {
    let (xs, extents) = (cx.shape(x), conv::extents(cx, x, w)?);
    let groups = conv::groups(cx)?;
    let ws = cx.shape(w);
    let channels = "the operand's channels must be the first dim of the weight";
    cx.require(Pred::Eq(xs[1].clone(), ws[0].clone()), channels)?;
    let g = Dim::from(groups);
    let Some(inputs) = ws[0].div_exact(&g) else {
        let m = format!("group = {groups} must divide the {} input channels", ws[0]);
        return Err(cx.fail("E-ONNX-022", m).into());
    };
    let axes = geometry(cx, &xs[2..], &extents)?;
    let w = dilated(cx, w, &extents, &axes)?;
    let w = by_residue(cx, w, [g.clone(), inputs, ws[1].clone()], &axes)?;
    let op = Conv {
        strides: vec![1; axes.len()],
        pads: [(); 2].iter().flat_map(|()| axes.iter().map(|a| a.taps - 1)).collect(),
        dilations: vec![1; axes.len()],
        groups,
        channels_last: false,
    };
    let y = cx.op(op, &[x, w])?;
    let y = interleaved(cx, y, [g, ws[1].clone()], &axes)?;
    cut(cx, y, &axes)
}

/// Sizes of the result, and where it starts in the whole of all products.
fn geometry(cx: &mut NodeCx<'_, '_>, sizes: &[Dim], extents: &[i64]) -> Res<Vec<Axis>> {
    let win = conv::window(cx, sizes, extents.to_vec())?;
    let n = sizes.len();
    let extra = conv::list(cx, "output_padding", n, 0, 0)?;
    let wanted = match cx.attrs.ints("output_shape")? {
        Some(v) if v.len() == n + 2 => Some(v[2..].to_vec()),
        Some(v) if v.len() == n => Some(v),
        Some(v) => {
            let m = format!("attribute `output_shape` has {} numbers; {n} are wanted", v.len());
            return Err(cx.fail("E-ONNX-007", m).into());
        }
        None => None,
    };
    let auto = cx.attrs.string("auto_pad", "NOTSET")?;
    let mut axes = Vec::new();
    for (i, d) in sizes.iter().enumerate() {
        let stride = win.strides[i];
        let reach = (extents[i] - 1) * win.dilations[i] + 1;
        let all = (d.clone() - Dim::from(1)) * Dim::from(stride) + Dim::from(reach + extra[i]);
        let fixed = match (&wanted, &win.padding, auto.as_str()) {
            (Some(v), ..) => Some(Dim::from(v[i])),
            (None, _, "SAME_UPPER" | "SAME_LOWER") => Some(d.clone() * Dim::from(stride)),
            _ => None,
        };
        let (before, size) = match (fixed, &win.padding) {
            (Some(size), _) => {
                let total = cx.simplify((all - size.clone()).dmax(&Dim::from(0)));
                let half = total.floordiv(&Dim::from(2));
                // the odd one goes behind for SAME_UPPER and in front otherwise
                let before = if auto == "SAME_UPPER" { half } else { total - half };
                (before, size)
            }
            (None, Padding::Fixed(p)) => (Dim::from(p[i]), all - Dim::from(p[i] + p[n + i])),
            (None, Padding::Sizes(..)) => return Err(cx.fail("E-ONNX-007", "padding is not known").into()),
        };
        cx.require(Pred::Le(Dim::from(0), size.clone()), "the padding must not be more than the result")?;
        axes.push(Axis { stride, taps: (reach + stride - 1) / stride, before, size });
    }
    Ok(axes)
}

/// The kernel with zeros between its elements where it is dilated, and behind them up to a multiple of the stride.
fn dilated(cx: &mut NodeCx<'_, '_>, mut w: Value, extents: &[i64], axes: &[Axis]) -> Res<Value> {
    let dilations = conv::list(cx, "dilations", axes.len(), 1, 1)?;
    let value = Scalar::from_int(cx.dtype(w), 0);
    let zero = Dim::from(0);
    for (i, (&k, &d)) in extents.iter().zip(&dilations).enumerate().filter(|(_, (_, d))| **d > 1) {
        let (at, mut shape) = (i + 2, cx.shape(w));
        shape.insert(at + 1, Dim::from(1));
        w = cx.reshape(w, shape.clone())?;
        let (before, mut after) = (vec![zero.clone(); shape.len()], vec![zero.clone(); shape.len()]);
        after[at + 1] = Dim::from(d - 1);
        w = cx.op(Pad { before, after, value }, &[w])?;
        shape.remove(at + 1);
        shape[at] = Dim::from(k * d);
        w = cx.reshape(w, shape)?;
    }
    let shape = cx.shape(w);
    let wanted = axes.iter().map(|a| a.taps * a.stride);
    let missing: Vec<Dim> = wanted.zip(&shape[2..]).map(|(n, d)| Dim::from(n) - d.clone()).collect();
    // a dilated kernel may have more zeros behind it than the stride wants
    if missing.iter().any(|m| m.as_const().is_some_and(|m| m < 0)) {
        let keep = |(m, d): (&Dim, &Dim)| if m.as_const() < Some(0) { d.clone() + m.clone() } else { d.clone() };
        let sizes = [shape[..2].to_vec(), missing.iter().zip(&shape[2..]).map(keep).collect()].concat();
        let (starts, steps) = (vec![zero.clone(); sizes.len()], vec![1; sizes.len()]);
        w = cx.op(Slice { starts, sizes, steps }, &[w])?;
    }
    let after: Vec<Dim> = missing.into_iter().map(|m| m.dmax(&zero)).collect();
    if after.iter().all(|m| m.is(0)) {
        return Ok(w);
    }
    let after = [vec![zero.clone(); 2], after].concat();
    cx.op(Pad { before: vec![zero; after.len()], after, value }, &[w])
}

/// The weight [G * C, O, kernel..] as that of a convolution, [G * residues.. * O, C, taps..], taps in reverse. Within a
/// residue channels stay together, so that with channels last the results need no rearrangement along one axis.
fn by_residue(cx: &mut NodeCx<'_, '_>, w: Value, [g, c, o]: [Dim; 3], axes: &[Axis]) -> Res<Value> {
    let n = axes.len();
    let (taps, strides) = (axes.iter().map(|a| a.taps), axes.iter().map(|a| a.stride));
    let split = taps.clone().zip(strides.clone()).flat_map(|(t, s)| [Dim::from(t), Dim::from(s)]);
    let w = cx.reshape(w, [g.clone(), c.clone(), o.clone()].into_iter().chain(split).collect())?;
    let (residues, taken) = ((0..n).map(|i| 4 + 2 * i), (0..n).map(|i| 3 + 2 * i));
    let perm = [0].into_iter().chain(residues).chain([2, 1]).chain(taken);
    let perm: Vec<i64> = perm.map(|a| a as i64).collect();
    let w = cx.op(Transpose { perm }, &[w])?;
    let residues: Dim = strides.map(Dim::from).product();
    let shape: Vec<Dim> = [g * o * residues, c].into_iter().chain(taps.map(Dim::from)).collect();
    let w = cx.reshape(w, shape.clone())?;
    let mut starts = vec![Dim::from(0); n + 2];
    let mut steps = vec![1; n + 2];
    for (i, a) in axes.iter().enumerate().filter(|(_, a)| a.taps > 1) {
        starts[i + 2] = Dim::from(a.taps - 1);
        steps[i + 2] = -1;
    }
    if steps.iter().all(|s| *s == 1) { Ok(w) } else { cx.op(Slice { starts, sizes: shape, steps }, &[w]) }
}

/// [N, G * residues.. * O, positions..] as [N, G * O, positions * stride..].
fn interleaved(cx: &mut NodeCx<'_, '_>, y: Value, [g, o]: [Dim; 2], axes: &[Axis]) -> Res<Value> {
    let n = axes.len();
    let ys = cx.shape(y);
    let strides = axes.iter().map(|a| Dim::from(a.stride));
    let split = [ys[0].clone(), g.clone()].into_iter().chain(strides.clone()).chain([o.clone()]);
    let y = cx.reshape(y, split.chain(ys[2..].to_vec()).collect())?;
    let perm = [0, 1, 2 + n].into_iter().chain((0..n).flat_map(|i| [3 + n + i, 2 + i]));
    let perm: Vec<i64> = perm.map(|a| a as i64).collect();
    let y = if axes.iter().all(|a| a.stride == 1) { y } else { cx.op(Transpose { perm }, &[y])? };
    let joined = ys[2..].iter().cloned().zip(strides).map(|(q, s)| q * s);
    cx.reshape(y, [ys[0].clone(), g * o].into_iter().chain(joined).collect())
}

/// The part that the attributes ask for; zeros where it reaches beyond the last product.
fn cut(cx: &mut NodeCx<'_, '_>, y: Value, axes: &[Axis]) -> Res<Value> {
    let (ys, zero) = (cx.shape(y), Dim::from(0));
    let behind = |(a, d): (&Axis, &Dim)| (a.before.clone() + a.size.clone() - d.clone()).dmax(&zero);
    let after: Vec<Dim> = axes.iter().zip(&ys[2..]).map(behind).map(|d| cx.simplify(d)).collect();
    let y = if after.iter().all(|d| d.is(0)) {
        y
    } else {
        let value = Scalar::from_int(cx.dtype(y), 0);
        let after = [vec![zero.clone(); 2], after].concat();
        cx.op(Pad { before: vec![zero.clone(); after.len()], after, value }, &[y])?
    };
    let sizes: Vec<Dim> = ys[..2].iter().cloned().chain(axes.iter().map(|a| a.size.clone())).collect();
    let starts = [zero.clone(), zero].into_iter().chain(axes.iter().map(|a| a.before.clone())).collect();
    if cx.shape(y) == sizes {
        return Ok(y);
    }
    let steps = vec![1; sizes.len()];
    cx.op(Slice { starts, sizes, steps }, &[y])
}
