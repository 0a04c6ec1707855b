//! Reads and writes at positions that are data, and what finds positions.

use super::{Form, axis, direct, index, needs, one};
use crate::onnx::build::{Cx, int, text};
use crate::onnx::graph::Node;
use crate::onnx::scalar::{binary, select};
use tgc_ir::ops::{ScatterElements, TopK, UpdateSlice};
use tgc_ir::scalar::Bin;
use tgc_ir::types::{DType, Dim};

pub(super) fn gather(cx: &mut Cx<'_>, n: &Node<'_>, name: &str, at: i64) -> Form {
    let i = index(cx, &n.ins[1]);
    let attrs = vec![int("axis", axis(at, n.in_types[0].rank()) as i64)];
    Ok(Some(vec![cx.node(name, &[&n.ins[0], &i], attrs, n.outs[0].dtype)]))
}

pub(super) fn scatter(cx: &mut Cx<'_>, n: &Node<'_>, op: &ScatterElements) -> Form {
    let i = index(cx, &n.ins[1]);
    let mut attrs = vec![int("axis", axis(op.axis, n.in_types[0].rank()) as i64)];
    let since = match op.reduction.as_str() {
        "none" => 13,
        "add" | "mul" => 16,
        _ => 18,
    };
    if cx.opset < since {
        return Err(needs(cx, &format!("ScatterElements with reduction `{}`", op.reduction), since));
    }
    if since > 13 {
        attrs.push(text("reduction", &op.reduction));
    }
    one(cx.typed1("ScatterElements", &[&n.ins[0], &i, &n.ins[2]], attrs, n.outs[0].dtype))
}

/// What is before the update, the update, and what is after it.
pub(super) fn update_slice(cx: &mut Cx<'_>, n: &Node<'_>, op: &UpdateSlice) -> Form {
    let at = axis(op.axis, n.in_types[0].rank());
    let (all, part) = (n.in_types[0].shape[at].clone(), n.in_types[2].shape[at].clone());
    let (x, update) = (&n.ins[0], &n.ins[2]);
    let start = cx.cast(&n.ins[1], DType::I64);
    let zero = cx.num(DType::I64, 0.0);
    let start = if n.ins[1].dtype.is_unsigned() {
        start
    } else {
        let places = cx.size_scalar(&(all - part.clone() + Dim::from(1)))?;
        let from_end = binary(cx, Bin::Add, &start, &places)?;
        let negative = binary(cx, Bin::Lt, &start, &zero)?;
        select(cx, &negative, &from_end, &start)?
    };
    let one = cx.ints(&[1], "shape");
    let start = cx.node("Reshape", &[&start, &one], Vec::new(), DType::I64);
    let part = cx.size(&part)?;
    let end = binary(cx, Bin::Add, &start, &part)?;
    let (first, beyond) = (cx.ints(&[0], "starts"), cx.ints(&[i64::MAX], "ends"));
    let axes = cx.ints(&[at as i64], "axes");
    let before = cx.node("Slice", &[x, &first, &start, &axes], Vec::new(), x.dtype);
    let after = cx.node("Slice", &[x, &end, &beyond, &axes], Vec::new(), x.dtype);
    let y = cx.node("Concat", &[&before, update, &after], vec![int("axis", at as i64)], x.dtype);
    Ok(Some(vec![y]))
}

/// NonZero gives as many columns as there are; the op's indices have one for every element, the rest 0.
pub(super) fn non_zero(cx: &mut Cx<'_>, n: &Node<'_>) -> Form {
    let d = n.ins[0].dtype;
    let x = if direct(cx, n, "NonZero") || d == DType::Bool {
        n.ins[0].clone()
    } else {
        cx.cast(&n.ins[0], DType::Bool)
    };
    let found = cx.node("NonZero", &[&x], Vec::new(), DType::I64);
    let shape = cx.node("Shape", &[&found], Vec::new(), DType::I64);
    let at = cx.ints(&[1], "axes");
    let count = cx.node("Gather", &[&shape, &at], vec![int("axis", 0)], DType::I64);
    let all = cx.size(&n.in_types[0].numel())?;
    let rest = cx.node("Sub", &[&all, &count], Vec::new(), DType::I64);
    let none = cx.ints(&[0, 0, 0], "pads");
    let pads = cx.node("Concat", &[&none, &rest], vec![int("axis", 0)], DType::I64);
    let zero = cx.num(DType::I64, 0.0);
    let padded = cx.node("Pad", &[&found, &pads, &zero], Vec::new(), DType::I64);
    let axes = cx.ints(&[0], "axes");
    let count = cx.node("Squeeze", &[&count, &axes], Vec::new(), DType::I64);
    Ok(Some(vec![padded, count]))
}

pub(super) fn top_k(cx: &mut Cx<'_>, n: &Node<'_>, op: &TopK) -> Form {
    let k = cx.size(&op.k)?;
    let mut attrs = vec![int("axis", axis(op.axis, n.in_types[0].rank()) as i64)];
    if !op.largest {
        attrs.push(int("largest", 0));
    }
    let d = n.ins[0].dtype;
    if d == DType::I64 || d == DType::I32 {
        return Ok(Some(cx.node_n("TopK", &[&n.ins[0], &k], attrs, &[d, DType::I64])));
    }
    let c = cx.compute_type("TopK", d)?;
    let x = cx.cast(&n.ins[0], c);
    let mut found = cx.node_n("TopK", &[&x, &k], attrs, &[c, DType::I64]);
    found[0] = cx.cast(&found[0], d);
    Ok(Some(found))
}
