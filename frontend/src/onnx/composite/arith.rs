//! Arithmetic, comparison and logic where ONNX differs from the IR's binary ops: many operands, mixed types, names of
//! the opposite comparison, and the broadcasting of opset 6.

use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, And, Div, Eq, Le, Lt, Max, Min, Modulo, Mul, Not, Op, Or, Pow, Rem, Shl, Shr, Sub, Xor};
use tgc_ir::types::{DType, Dim};

pub(crate) const ROWS: &[Row] = &[
    ("Add", 6, ANY, |cx| pair(cx, Add {}.into())),
    ("Sub", 6, ANY, |cx| pair(cx, Sub {}.into())),
    ("Mul", 6, ANY, |cx| pair(cx, Mul {}.into())),
    ("Div", 6, ANY, |cx| pair(cx, Div {}.into())),
    ("And", 6, ANY, |cx| pair(cx, And {}.into())),
    ("Or", 6, ANY, |cx| pair(cx, Or {}.into())),
    ("Xor", 6, ANY, |cx| pair(cx, Xor {}.into())),
    ("Equal", 6, ANY, |cx| pair(cx, Eq {}.into())),
    ("Less", 6, ANY, |cx| pair(cx, Lt {}.into())),
    ("LessOrEqual", 12, ANY, |cx| pair(cx, Le {}.into())),
    ("Greater", 6, ANY, |cx| swapped(cx, Lt {}.into())),
    ("GreaterOrEqual", 12, ANY, |cx| swapped(cx, Le {}.into())),
    ("BitwiseAnd", 18, ANY, |cx| pair(cx, And {}.into())),
    ("BitwiseOr", 18, ANY, |cx| pair(cx, Or {}.into())),
    ("BitwiseXor", 18, ANY, |cx| pair(cx, Xor {}.into())),
    ("BitwiseNot", 18, ANY, |cx| {
        let x = cx.x(0)?;
        Ok(vec![cx.op(Not {}, &[x])?])
    }),
    ("BitShift", 11, ANY, bit_shift),
    ("Mod", 10, ANY, modulo),
    ("Pow", 6, ANY, pow),
    ("Min", 6, ANY, |cx| chain(cx, Min {}.into(), false)),
    ("Max", 6, ANY, |cx| chain(cx, Max {}.into(), false)),
    ("Sum", 6, ANY, |cx| chain(cx, Add {}.into(), false)),
    ("Mean", 6, ANY, |cx| chain(cx, Add {}.into(), true)),
];

/// Both operands, the second laid out for numpy broadcasting when the opset still says how by attributes.
fn operands(cx: &mut NodeCx<'_, '_>) -> Res<[Value; 2]> {
    let (a, b) = (cx.x(0)?, cx.x(1)?);
    if cx.opset >= 7 {
        return Ok([a, b]);
    }
    cx.attrs.ignore(&["consumed_inputs"]);
    let broadcast = cx.attrs.flag("broadcast", false)?;
    let axis = cx.attrs.opt_int("axis")?;
    let (ra, rb) = (cx.rank(a), cx.rank(b));
    let (Some(axis), true) = (axis, broadcast && rb > 0) else { return Ok([a, b]) };
    let axis = cx.axis(axis, ra)?;
    let Some(tail) = ra.checked_sub(axis + rb) else {
        let m = format!("broadcasting rank {rb} from axis {axis} does not fit rank {ra}");
        return Err(cx.fail("E-ONNX-022", m).into());
    };
    let mut shape = cx.shape(b);
    shape.extend(vec![Dim::from(1); tail]);
    Ok([a, cx.reshape(b, shape)?])
}

fn pair(cx: &mut NodeCx<'_, '_>, op: Op) -> Res<Vec<Value>> {
    let ins = operands(cx)?;
    Ok(vec![cx.op(op, &ins)?])
}

fn swapped(cx: &mut NodeCx<'_, '_>, op: Op) -> Res<Vec<Value>> {
    let [a, b] = operands(cx)?;
    Ok(vec![cx.op(op, &[b, a])?])
}

fn chain(cx: &mut NodeCx<'_, '_>, op: Op, mean: bool) -> Res<Vec<Value>> {
    let ins = cx.all()?;
    let d = cx.dtype(ins[0]);
    // one rounding for a mean or sum of several narrow floats
    let wide = ins.len() > 2 && matches!(d, DType::F16 | DType::BF16);
    let mut acc = ins[0];
    if wide {
        acc = cx.cast(acc, DType::F32)?;
    }
    for &x in &ins[1..] {
        let x = if wide { cx.cast(x, DType::F32)? } else { x };
        acc = cx.op(op.clone(), &[acc, x])?;
    }
    if mean && ins.len() > 1 {
        let t = cx.dtype(acc);
        let n = cx.num(t, ins.len() as f64)?;
        acc = cx.op(Div {}, &[acc, n])?;
    }
    Ok(vec![cx.cast(acc, d)?])
}

fn bit_shift(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let op: Op = match cx.attrs.string("direction", "")?.as_str() {
        "LEFT" => Shl {}.into(),
        "RIGHT" => Shr {}.into(),
        other => {
            let m = format!("direction = `{other}` is not known (allowed: LEFT, RIGHT)");
            return Err(cx.fail("E-ONNX-007", m).into());
        }
    };
    let (a, b) = (cx.x(0)?, cx.x(1)?);
    Ok(vec![cx.op(op, &[a, b])?])
}

fn modulo(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let fmod = cx.attrs.flag("fmod", false)?;
    let (a, b) = (cx.x(0)?, cx.x(1)?);
    if !fmod && cx.dtype(a).is_float() {
        let m = "fmod = 0 is for integers only; with floats it must be 1";
        return Err(cx.fail("E-ONNX-007", m).help("set fmod = 1 in the exporting program").into());
    }
    let op: Op = if fmod { Rem {}.into() } else { Modulo {}.into() };
    Ok(vec![cx.op(op, &[a, b])?])
}

/// The result has the base's type. With other types mixed in, the computation is in one that holds both.
fn pow(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let [a, b] = operands(cx)?;
    let (ta, tb) = (cx.dtype(a), cx.dtype(b));
    if ta == tb {
        return Ok(vec![cx.op(Pow {}, &[a, b])?]);
    }
    let inner = match (ta.is_float(), tb.is_float()) {
        (false, false) => DType::I64,
        (true, false) => ta,
        (false, true) => DType::F64,
        (true, true) if ta == DType::F64 || tb == DType::F64 => DType::F64,
        (true, true) => DType::F32,
    };
    let (a, b) = (cx.cast(a, inner)?, cx.cast(b, inner)?);
    let y = cx.op(Pow {}, &[a, b])?;
    Ok(vec![cx.cast(y, ta)?])
}
