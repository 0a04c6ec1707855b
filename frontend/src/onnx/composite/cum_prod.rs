//! `CumProd`. Narrow floats are computed in f32 and rounded once.

use crate::formula::running;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;

pub(crate) const ROWS: &[Row] = &[("CumProd", 26, ANY, cum_prod)];

fn cum_prod(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (exclusive, reverse) = (cx.attrs.flag("exclusive", false)?, cx.attrs.flag("reverse", false)?);
    let x = cx.x(0)?;
    let axis = cx.ints(1, "the axis")?;
    let [axis] = axis[..] else { return Err(cx.fail("E-ONNX-022", "the axis must be one number").into()) };
    let axis = cx.axis(axis, cx.rank(x))?;
    Ok(vec![cx.wide(x, |cx, x| running::product(cx, x, axis, exclusive, reverse))?])
}
