//! Shared by quantization ops: checks of scales and zero points, and their shapes against the operand. No op is named
//! here.

use super::InferCx;
use super::parts::{Parts, along};
use crate::diag::Diag;
use crate::graph::Value;
use crate::types::{DType, Dim, Type};

/// Integer types values are quantized to.
pub(crate) fn is_quantized(d: DType) -> bool {
    matches!(d, DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32)
}

/// Checks scale (operand 1) and zero point (operand 2): rank 0 or one element without an axis, else one an element of it
/// (constraint `id`).
pub(crate) fn check(cx: &mut InferCx<'_>, axis: Option<i64>, zero: DType, id: &str) -> Result<(), Diag> {
    let operands = cx.operands;
    let x = cx.ty(0)?;
    for f in &operands[1..] {
        match axis {
            None => {
                let one = f.ty.rank() == 0 || (f.ty.rank() == 1 && f.ty.shape[0].is(1));
                cx.check(one, id, "without an axis, scale and zero point have one element")?;
            }
            Some(a) => {
                let a = cx.axis(a, x.rank())?;
                cx.check(f.ty.rank() == 1, id, "with an axis, scale and zero point have one axis")?;
                cx.require_eq(
                    &f.ty.shape[0],
                    &x.shape[a],
                    &format!("one scale and zero point an element of the axis [{id}]"),
                )?;
            }
        }
    }
    if let Some(z) = operands.get(2) {
        let text = format!("the zero point must be {zero}, not {}", z.ty.dtype);
        cx.check(z.ty.dtype == zero, id, text)?;
    }
    Ok(())
}

/// Brings a scale or zero point to a shape that broadcasts over the operand.
pub(crate) fn fit(b: &mut Parts<'_>, v: Value, axis: Option<i64>, x: &Type) -> Result<Value, Diag> {
    let shape: Vec<Dim> = match axis {
        None => Vec::new(),
        Some(a) => {
            let a = super::index::axis(a, x.rank());
            along(a, x.rank(), &b.ty(v).shape[0])
        }
    };
    b.reshape(v, shape)
}
