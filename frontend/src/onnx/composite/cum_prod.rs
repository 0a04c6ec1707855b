//! `CumProd`: for each place of the axis, a product over the axis in which the elements not to be counted are 1. Narrow
//! floats are computed in f32 and rounded once.

use super::activation::like;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Iota, Le, Lt, ReduceProd, Select};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[("CumProd", 26, ANY, cum_prod)];

fn cum_prod(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (exclusive, reverse) = (cx.attrs.flag("exclusive", false)?, cx.attrs.flag("reverse", false)?);
    let x = cx.x(0)?;
    let axis = cx.ints(1, "the axis")?;
    let [axis] = axis[..] else { return Err(cx.fail("E-ONNX-022", "the axis must be one number").into()) };
    let axis = cx.axis(axis, cx.rank(x))?;
    Ok(vec![cx.wide(x, |cx, x| {
        let mut shape = cx.shape(x);
        let (to, from) = (along(cx, &shape, axis, axis)?, along(cx, &shape, axis, axis + 1)?);
        let order = if reverse { [to, from] } else { [from, to] };
        let counts = if exclusive { cx.op(Lt {}, &order)? } else { cx.op(Le {}, &order)? };
        shape.insert(axis, Dim::from(1));
        let (line, one) = (cx.reshape(x, shape)?, like(cx, x, 1.0)?);
        let factors = cx.op(Select {}, &[counts, line, one])?;
        cx.op(ReduceProd { axes: vec![axis as i64 + 1], keepdims: false }, &[factors])
    })?])
}

/// Indices along the axis as axis `at` of a shape with one axis more.
fn along(cx: &mut NodeCx<'_, '_>, shape: &[Dim], axis: usize, at: usize) -> Res<Value> {
    let mut line = vec![Dim::from(1); shape.len() + 1];
    line[at] = shape[axis].clone();
    cx.op(Iota { axis: at as i64, shape: line, dtype: DType::I64 }, &[])
}
