//! Values of each place of an axis that depend on all before it: over a second copy of the axis, in which the elements not
//! to be counted are left out.

use super::{Build, R, like};
use tgc_ir::ops::{Iota, Le, Lt, ReduceProd, Select};
use tgc_ir::types::{DType, Dim};

/// Running product along an axis, the element itself included unless `exclusive`; from the end with `reverse`.
pub(crate) fn product<B: Build>(b: &mut B, x: B::V, axis: usize, exclusive: bool, reverse: bool) -> R<B> {
    let counts = counted(b, x, axis, exclusive, reverse)?;
    let (line, one) = (doubled(b, x, axis)?, like(b, x, 1.0)?);
    let factors = b.op(Select {}, &[counts, line, one])?;
    b.op(ReduceProd { axes: vec![axis as i64 + 1], keepdims: false }, &[factors])
}

/// The axis of `x` as axis `axis + 1`, with an axis of extent 1 before it for the places.
pub(crate) fn doubled<B: Build>(b: &mut B, x: B::V, axis: usize) -> R<B> {
    let mut shape = b.shape(x);
    shape.insert(axis, Dim::from(1));
    b.reshape(x, shape)
}

/// Which elements (axis `axis + 1`) count at which place (axis `axis`).
pub(crate) fn counted<B: Build>(b: &mut B, x: B::V, axis: usize, exclusive: bool, reverse: bool) -> R<B> {
    let shape = b.shape(x);
    let (to, from) = (along(b, &shape, axis, axis)?, along(b, &shape, axis, axis + 1)?);
    let order = if reverse { [to, from] } else { [from, to] };
    if exclusive { b.op(Lt {}, &order) } else { b.op(Le {}, &order) }
}

/// Indices along the axis as axis `at` of a shape with one axis more.
fn along<B: Build>(b: &mut B, shape: &[Dim], axis: usize, at: usize) -> R<B> {
    let mut line = vec![Dim::from(1); shape.len() + 1];
    line[at] = shape[axis].clone();
    b.op(Iota { axis: at as i64, shape: line, dtype: DType::I64 }, &[])
}
