//! Convolutions and pools.

use super::{Form, needs, one, quant};
use crate::onnx::build::{Cx, Val, int, ints};
use crate::onnx::graph::Node;
use tgc_ir::diag::Diag;
use tgc_ir::ops::{AvgPool, Conv, MaxPool};
use tgc_ir::types::{DType, Dim};
use tgc_proto::AttributeProto;

/// Opset from which on averages are taken over windows with gaps.
const AVERAGE_WITH_GAPS: i64 = 19;

/// Extents, steps, padding and gaps of a window.
struct Window<'a> {
    kernel: &'a [i64],
    strides: &'a [i64],
    pads: &'a [i64],
    dilations: &'a [i64],
}

pub(super) fn conv(cx: &mut Cx<'_>, n: &Node<'_>, op: &Conv) -> Form {
    let attrs = vec![
        ints("strides", &op.strides),
        ints("pads", &op.pads),
        ints("dilations", &op.dilations),
        int("group", op.groups),
    ];
    let d = n.ins[0].dtype;
    if !op.channels_last
        && let Some(found) = quant::conv(cx, n, &attrs)?
    {
        return Ok(Some(found));
    }
    one(channels_second(cx, n, op.channels_last, |cx, x| {
        let mut ins: Vec<Val> = [x.clone()].into_iter().chain(n.ins[1..].iter().cloned()).collect();
        if d.is_int() {
            // sums of products of up to 32 bits are exact in f64, except beyond 2^53
            if d.bits() > 32 {
                let m = format!("ONNX has no convolution of {d}, and no float type holds its sums");
                return Err(cx.fail("E-EXP-002", m).help("cast the operands to a narrower type"));
            }
            ins = ins.iter().map(|v| cx.cast(v, DType::F64)).collect();
            let y = cx.typed1("Conv", &ins.iter().collect::<Vec<_>>(), attrs, DType::F64)?;
            let y = cx.cast(&y, DType::I64);
            return Ok(cx.cast(&y, d));
        }
        cx.typed1("Conv", &ins.iter().collect::<Vec<_>>(), attrs, d)
    }))
}

pub(super) fn max_pool(cx: &mut Cx<'_>, n: &Node<'_>, op: &MaxPool) -> Form {
    let w = Window { kernel: &op.kernel, strides: &op.strides, pads: &op.pads, dilations: &op.dilations };
    let mut attrs = window(n, op.channels_last, &w, op.ceil);
    if op.dilations.iter().any(|d| *d != 1) {
        attrs.push(ints("dilations", &op.dilations));
    }
    let d = n.outs[0].dtype;
    one(channels_second(cx, n, op.channels_last, |cx, x| cx.typed1("MaxPool", &[x], attrs, d)))
}

pub(super) fn avg_pool(cx: &mut Cx<'_>, n: &Node<'_>, op: &AvgPool) -> Form {
    let w = Window { kernel: &op.kernel, strides: &op.strides, pads: &op.pads, dilations: &op.dilations };
    let mut attrs = window(n, op.channels_last, &w, op.ceil);
    if op.dilations.iter().any(|d| *d != 1) {
        if cx.opset < AVERAGE_WITH_GAPS {
            return Err(needs(cx, "AveragePool with dilations", AVERAGE_WITH_GAPS));
        }
        attrs.push(ints("dilations", &op.dilations));
    }
    if op.count_include_pad {
        attrs.push(int("count_include_pad", 1));
    }
    let d = n.outs[0].dtype;
    one(channels_second(cx, n, op.channels_last, |cx, x| cx.typed1("AveragePool", &[x], attrs, d)))
}

/// Attributes of a window. Where rounding up the number of windows adds none, it is not asked for: operators older than opset 22
/// count one that would start beyond the operand.
fn window(n: &Node<'_>, last: bool, w: &Window<'_>, ceil: bool) -> Vec<AttributeProto> {
    let mut v = vec![ints("kernel_shape", w.kernel), ints("strides", w.strides), ints("pads", w.pads)];
    let first = if last { 1 } else { 2 };
    let down = (0..w.kernel.len()).all(|i| {
        let pads = w.pads[i] + w.pads[i + w.kernel.len()];
        let room =
            n.in_types[0].shape[first + i].clone() + Dim::from(pads - (w.kernel[i] - 1) * w.dilations[i] - 1);
        room.floordiv(&Dim::from(w.strides[i])) + Dim::from(1) == n.outs[0].shape[first + i]
    });
    if ceil && !down {
        v.push(int("ceil_mode", 1));
    }
    v
}

/// Runs `f` on the operand with its channels second, and puts those of the result where they were.
fn channels_second(
    cx: &mut Cx<'_>,
    n: &Node<'_>,
    last: bool,
    f: impl FnOnce(&mut Cx<'_>, &Val) -> Result<Val, Diag>,
) -> Result<Val, Diag> {
    if !last {
        return f(cx, &n.ins[0]);
    }
    let rank = n.in_types[0].rank() as i64;
    let second: Vec<i64> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    let back: Vec<i64> = [0].into_iter().chain(2..rank).chain([1]).collect();
    let x = cx.node("Transpose", &[&n.ins[0]], vec![ints("perm", &second)], n.ins[0].dtype);
    let y = f(cx, &x)?;
    Ok(cx.node("Transpose", &[&y], vec![ints("perm", &back)], y.dtype))
}
