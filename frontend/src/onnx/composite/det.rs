//! `Det`: elimination with the greatest pivot of each column, written out for the fixed size of the matrices. Narrow
//! floats are computed in f32 and rounded once.

use crate::formula::like;
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Abs, ArgMax, Div, Eq, GatherElements, Iota, Mul, Neg, Select, Slice, Sub};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[("Det", 11, ANY, det)];

/// Greatest matrix that is written out.
const MOST: i64 = 64;

fn det(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let x = cx.x(0)?;
    let shape = cx.shape(x);
    let Some((outer, [rows, cols])) = shape.split_last_chunk::<2>() else {
        return Err(cx.fail("E-ONNX-022", "the operand needs rank 2 or more").into());
    };
    if let (Some(r), Some(c)) = (rows.as_const(), cols.as_const())
        && r != c
    {
        return Err(cx.fail("E-ONNX-022", format!("the matrices must be square, found {r} by {c}")).into());
    }
    let n = rows.as_const().filter(|n| (1..=MOST).contains(n) && rows == cols);
    let Some(n) = n else {
        let m = format!("the size of the matrices must be a number from 1 to {MOST}, found {rows} by {cols}");
        return Err(cx.fail("E-ONNX-016", m).help("give the sizes in it fixed values with --dim").into());
    };
    let (outer, count) = (outer.to_vec(), outer.iter().cloned().product::<Dim>());
    Ok(vec![cx.wide(x, |cx, x| {
        let mut rest = cx.reshape(x, vec![count, n.into(), n.into()])?;
        let mut product: Option<Value> = None;
        for n in (1..=n).rev() {
            let (pivot, smaller) = eliminated(cx, rest, n)?;
            product = Some(product.map_or(Ok(pivot), |p| cx.op(Mul {}, &[p, pivot]))?);
            rest = smaller;
        }
        cx.reshape(product.unwrap_or(rest), outer)
    })?])
}

/// Of matrices [B, n, n]: the pivot [B, 1, 1], negative for a swap of rows, and the matrices without its row and column.
fn eliminated(cx: &mut NodeCx<'_, '_>, m: Value, n: i64) -> Res<(Value, Value)> {
    if n == 1 {
        return Ok((m, m));
    }
    let column = part(cx, m, [0, 0], [n, 1])?;
    let size = cx.op(Abs {}, &[column])?;
    let at = cx.op(ArgMax { axis: 1, keepdims: true, last: false, smallest: false }, &[size])?;
    let mut line = cx.shape(m);
    line[1] = Dim::from(1);
    let along = cx.expand(at, line)?;
    let row = cx.op(GatherElements { axis: 1 }, &[m, along])?;
    // the first row takes the place of the pivot's
    let first = part(cx, m, [0, 0], [1, n])?;
    let index = vec![Dim::from(1), Dim::from(n), Dim::from(1)];
    let index = cx.op(Iota { axis: 1, shape: index, dtype: DType::I64 }, &[])?;
    let mine = cx.op(Eq {}, &[index, at])?;
    let swapped = cx.op(Select {}, &[mine, first, m])?;
    let pivot = part(cx, row, [0, 0], [1, 1])?;
    let (zero, one) = (like(cx, m, 0.0)?, like(cx, m, 1.0)?);
    let none = cx.op(Eq {}, &[pivot, zero])?;
    let divisor = cx.op(Select {}, &[none, one, pivot])?;
    let factor = part(cx, swapped, [1, 0], [n - 1, 1])?;
    let factor = cx.op(Div {}, &[factor, divisor])?;
    let tail = part(cx, row, [0, 1], [1, n - 1])?;
    let change = cx.op(Mul {}, &[factor, tail])?;
    let rest = part(cx, swapped, [1, 1], [n - 1, n - 1])?;
    let rest = cx.op(Sub {}, &[rest, change])?;
    let start = cx.dim_value(Dim::from(0))?;
    let stays = cx.op(Eq {}, &[at, start])?;
    let minus = cx.op(Neg {}, &[pivot])?;
    Ok((cx.op(Select {}, &[stays, pivot, minus])?, rest))
}

/// Rows and columns of each matrix from `at` on.
fn part(cx: &mut NodeCx<'_, '_>, m: Value, at: [i64; 2], size: [i64; 2]) -> Res<Value> {
    let starts = vec![Dim::from(0), at[0].into(), at[1].into()];
    let batch = cx.shape(m).into_iter().next().unwrap_or_default();
    cx.op(Slice { starts, sizes: vec![batch, size[0].into(), size[1].into()], steps: vec![1; 3] }, &[m])
}
