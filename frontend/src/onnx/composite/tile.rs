//! `Tile`: repeats as a reshape, an expand and a reshape.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::types::{Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("Tile", 6, ANY, tile)];

fn tile(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let repeats = cx.sizes(1, "the repeats")?;
    if repeats.len() != shape.len() {
        let m = format!("{} repeats given for rank {}", repeats.len(), shape.len());
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    let (mut split, mut wide, mut to) = (Vec::new(), Vec::new(), Vec::new());
    for (d, r) in shape.iter().zip(&repeats) {
        if !r.is(1) {
            cx.require(Pred::Le(Dim::from(0), r.clone()), "a repeat must not be negative")?;
            split.push(Dim::from(1));
            wide.push(r.clone());
        }
        split.push(d.clone());
        wide.push(d.clone());
        to.push(r.clone() * d.clone());
    }
    let y = cx.reshape(x, split)?;
    let y = cx.expand(y, wide)?;
    Ok(vec![cx.reshape(y, to)?])
}
