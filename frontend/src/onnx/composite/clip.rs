//! `Clip`: `x < min ? min : x`, then `max < x ? max : x`. NaN stays, a NaN bound does nothing, max wins over min.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Lt, Select};

pub(crate) const ROWS: &[Row] = &[("Clip", 6, ANY, clip)];

fn clip(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let d = cx.dtype(x);
    let (lo, hi) = if cx.opset < 11 {
        cx.attrs.ignore(&["consumed_inputs"]);
        let (lo, hi) = (cx.attrs.opt_float("min")?, cx.attrs.opt_float("max")?);
        let mut num = |v: Option<f64>| v.map(|v| cx.num(d, v)).transpose();
        (num(lo)?, num(hi)?)
    } else {
        (cx.opt(1), cx.opt(2))
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
