//! `Clip`: `x < min ? min : x`, then `max < x ? max : x`. NaN stays, a NaN bound does nothing, max wins over min. A bound left
//! out is the type's least or greatest number, so that infinities become it.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Lt, Select};
use tgc_ir::types::DType;

pub(crate) const ROWS: &[Row] = &[("Clip", 6, ANY, clip)];

fn clip(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let d = cx.dtype(x);
    let (lo, hi) = if cx.opset < 11 {
        cx.attrs.ignore(&["consumed_inputs"]);
        // attributes are f32, and so are their defaults
        let most = f32::MAX;
        let (lo, hi) = (cx.attrs.float("min", -most)?, cx.attrs.float("max", most)?);
        (Some(cx.num(d, lo)?), Some(cx.num(d, hi)?))
    } else {
        let most = d.is_float().then(|| greatest(d));
        let mut bound = |i: usize, default: Option<f64>| match cx.opt(i) {
            Some(v) => Ok(Some(v)),
            None => default.map(|v| cx.num(d, v)).transpose(),
        };
        (bound(1, most.map(|m| -m))?, bound(2, most)?)
    };
    for v in [lo, hi].into_iter().flatten() {
        if cx.rank(v) > 0 {
            return Err(cx.fail("E-ONNX-022", "the bounds must have rank 0").into());
        }
    }
    let mut y = x;
    if let Some(lo) = lo {
        let c = cx.op(Lt {}, &[y, lo])?;
        y = cx.op(Select {}, &[c, lo, y])?;
    }
    if let Some(hi) = hi {
        let c = cx.op(Lt {}, &[hi, y])?;
        y = cx.op(Select {}, &[c, hi, y])?;
    }
    Ok(vec![y])
}

/// The greatest finite number of a float type.
fn greatest(d: DType) -> f64 {
    match d {
        DType::F64 => f64::MAX,
        DType::F16 => 65504.0,
        // 8 bits of significand
        DType::BF16 => f64::from(f32::from_bits(0x7f7f_0000)),
        _ => f64::from(f32::MAX),
    }
}
