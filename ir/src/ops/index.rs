//! Shared by ops that read or write at positions that are data: checks of index operands and the class payload. No op is
//! named here.

use super::{InferCx, Lowering};
use crate::class::{Class, Combine, Index};
use crate::diag::Diag;
use crate::types::Dim;

/// Checks that operand `i` holds integers (constraint `id`).
pub(crate) fn check_type(cx: &InferCx<'_>, i: usize, id: &str) -> Result<(), Diag> {
    let d = cx.ty(i)?.dtype;
    cx.check(d.is_int(), id, format!("indices must be integers, not {d}"))
}

/// A non-negative axis from a checked attribute.
pub(crate) fn axis(axis: i64, rank: usize) -> usize {
    (if axis < 0 { axis + rank as i64 } else { axis }).max(0) as usize
}

/// The class with one index operand, number 1.
pub(crate) fn class(read: Vec<Dim>, bound: Dim, at: Vec<Dim>, scatter: Option<Combine>) -> Lowering {
    Lowering::Class(Class::Index(Index { reads: vec![(1, read, bound)], at, scatter }))
}
