//! Pooling: windows as in `conv`, and the global forms.

use super::conv::{Padding, kernel, padded, window};
use super::max_index::{Windows, places};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{AvgPool, MaxPool, ReduceMax, ReduceMean};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Dim;

pub(crate) const ROWS: &[Row] = &[
    ("MaxPool", 1, ANY, |cx| pool(cx, true)),
    ("AveragePool", 1, ANY, |cx| pool(cx, false)),
    ("GlobalMaxPool", 1, ANY, |cx| {
        let (x, axes) = spatial(cx)?;
        Ok(vec![cx.op(ReduceMax { axes, keepdims: true }, &[x])?])
    }),
    ("GlobalAveragePool", 1, ANY, |cx| {
        let (x, axes) = spatial(cx)?;
        Ok(vec![cx.op(ReduceMean { axes, keepdims: true }, &[x])?])
    }),
];

/// The operand and its spatial axes, of which there is one or more.
pub(super) fn spatial(cx: &NodeCx<'_, '_>) -> Res<(Value, Vec<i64>)> {
    let x = cx.x(0)?;
    let rank = cx.rank(x);
    if rank < 3 {
        return Err(cx.fail("E-ONNX-022", format!("the operand needs rank 3 or more, found {rank}")).into());
    }
    Ok((x, (2..rank as i64).collect()))
}

fn pool(cx: &mut NodeCx<'_, '_>, max: bool) -> Res<Vec<Value>> {
    let (x, axes) = spatial(cx)?;
    let shape = cx.shape(x);
    let columns = cx.opset >= 8 && cx.attrs.flag("storage_order", false)?;
    let Some(kernel) = kernel(cx, axes.len())? else {
        return Err(cx.fail("E-ONNX-007", "attribute `kernel_shape` is missing").into());
    };
    let win = window(cx, &shape[2..], kernel)?;
    let ceil = cx.opset >= 10 && cx.attrs.flag("ceil_mode", false)?;
    let (kernel, strides, dilations) = (win.kernel, win.strides, win.dilations);
    if max {
        let before = match &win.padding {
            Padding::Fixed(p) => p[..axes.len()].iter().map(|p| Dim::from(*p)).collect(),
            Padding::Sizes(b, _) => b.clone(),
        };
        let lowest = Scalar::extreme(cx.dtype(x), false);
        let (wide, pads) = padded(cx, x, win.padding, lowest)?;
        let windows =
            Windows { kernel: &kernel, strides: &strides, dilations: &dilations, before: &before };
        let op = MaxPool {
            kernel: kernel.clone(),
            strides: strides.clone(),
            pads,
            dilations: dilations.clone(),
            ceil,
            channels_last: false,
        };
        let y = cx.op(op, &[wide])?;
        if !cx.wants(1) {
            return Ok(vec![y]);
        }
        return Ok(vec![y, places(cx, x, y, &windows, columns)?]);
    }
    let count_include_pad = cx.opset >= 7 && cx.attrs.flag("count_include_pad", false)?;
    let (x, pads) = match win.padding {
        Padding::Fixed(p) => (x, p),
        sizes if count_include_pad => {
            let zero = Scalar::from_int(cx.dtype(x), 0);
            padded(cx, x, sizes, zero)?
        }
        Padding::Sizes(..) => {
            let m = "auto_pad with a stride needs fixed spatial sizes, as padding does not count in the average";
            return Err(cx.fail("E-ONNX-016", m).help("give these sizes fixed values with --dim").into());
        }
    };
    let op = AvgPool { kernel, strides, pads, dilations, ceil, count_include_pad, channels_last: false };
    Ok(vec![cx.op(op, &[x])?])
}
