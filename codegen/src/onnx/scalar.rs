//! Scalar programs as elementwise nodes: what maps without a form of their own are written as, and the one table from scalar
//! operations to ONNX operators, with what makes their meanings equal.

use super::build::{Cx, Made, Val, int, text};
use tgc_ir::diag::Diag;
use tgc_ir::scalar::{Bin, ENode, Expr, Scalar, Un};
use tgc_ir::types::DType;

/// The results of a program over operands.
pub(super) fn program(cx: &mut Cx<'_>, expr: &Expr, args: &[Val]) -> Result<Vec<Val>, Diag> {
    let mut v: Vec<Val> = Vec::with_capacity(expr.nodes.len());
    for (node, dtype) in &expr.nodes {
        let at = |i: &u32| v[*i as usize].clone();
        let r = match node {
            ENode::Arg(i) => match args.get(*i as usize) {
                Some(a) => a.clone(),
                None => return Err(cx.fail("E-BUG", format!("a scalar program reads operand {i}"))),
            },
            ENode::Const(s) => cx.scalar(*s),
            ENode::Dim(d) => cx.size_scalar(d)?,
            ENode::Un(op, a) => unary(cx, *op, &at(a))?,
            ENode::Bin(op, a, b) => binary(cx, *op, &at(a), &at(b))?,
            ENode::Fma(a, b, c) => {
                let product = binary(cx, Bin::Mul, &at(a), &at(b))?;
                binary(cx, Bin::Add, &product, &at(c))?
            }
            ENode::Select(c, a, b) => select(cx, &at(c), &at(a), &at(b))?,
            ENode::Cast(a) => cx.cast(&at(a), *dtype),
            ENode::Bitcast(_) => {
                let m = "ONNX has no operator that takes the bits of a value for another type";
                return Err(cx.fail("E-EXP-002", m));
            }
        };
        v.push(r);
    }
    Ok(expr.roots.iter().map(|r| v[*r as usize].clone()).collect())
}

/// `c ? a : b`. A value that is kept within limits by comparisons is written as what it is: of equal values it does not matter which
/// is taken, and NaN is neither less nor greater.
pub(super) fn select(cx: &mut Cx<'_>, c: &Val, a: &Val, b: &Val) -> Result<Val, Diag> {
    if let Some(Made::Less(low, high)) = cx.made.get(&c.name).cloned()
        && a.dtype != DType::Bool
    {
        if (&low, &high) == (b, a) {
            return limited(cx, Bin::Max, b, a);
        }
        if (&low, &high) == (a, b) {
            return limited(cx, Bin::Min, b, a);
        }
    }
    if a.dtype == DType::Bool {
        // the condition has that type too, and stays
        let (a, b) = (cx.cast(a, DType::U8), cx.cast(b, DType::U8));
        let y = cx.node("Where", &[c, &a, &b], Vec::new(), DType::U8);
        return Ok(cx.cast(&y, DType::Bool));
    }
    Ok(cx.typed("Where", 1, &[c, a, b], Vec::new(), &[a.dtype])?.swap_remove(0))
}

/// The greater, or smaller, of a value and a limit.
fn limited(cx: &mut Cx<'_>, op: Bin, x: &Val, limit: &Val) -> Result<Val, Diag> {
    let below = cx.made.get(&x.name).cloned();
    let scalar = |cx: &Cx<'_>, v: &Val| cx.rank(v) == Some(0);
    if let (Bin::Min, Some(Made::Limited(inner, low))) = (op, below)
        && scalar(cx, &low)
        && scalar(cx, limit)
    {
        return cx.typed1("Clip", &[&inner, &low, limit], Vec::new(), x.dtype);
    }
    let y = binary(cx, op, x, limit)?;
    if op == Bin::Max {
        cx.made.insert(y.name.clone(), Made::Limited(x.clone(), limit.clone()));
    }
    Ok(y)
}

/// `op x`.
pub(super) fn unary(cx: &mut Cx<'_>, op: Un, x: &Val) -> Result<Val, Diag> {
    let d = x.dtype;
    let name = match op {
        Un::Neg if d.is_unsigned() => {
            let zero = cx.num(d, 0.0);
            return binary(cx, Bin::Sub, &zero, x);
        }
        Un::Not if d != DType::Bool && cx.opset < 18 => {
            // all bits set, less x: no bit is borrowed
            let ones = cx.scalar(Scalar::from_int(d, -1));
            return binary(cx, Bin::Sub, &ones, x);
        }
        Un::Trunc => return truncate(cx, x),
        Un::Neg => "Neg",
        Un::Abs => "Abs",
        Un::Exp => "Exp",
        Un::Log => "Log",
        Un::Sqrt => "Sqrt",
        Un::Tanh => "Tanh",
        Un::Erf => "Erf",
        Un::Sin => "Sin",
        Un::Cos => "Cos",
        Un::Floor => "Floor",
        Un::Ceil => "Ceil",
        Un::Round => "Round",
        Un::Not if d == DType::Bool => "Not",
        Un::Not => "BitwiseNot",
        Un::IsNan => "IsNaN",
    };
    cx.typed1(name, &[x], Vec::new(), op.result(d).unwrap_or(d))
}

fn truncate(cx: &mut Cx<'_>, x: &Val) -> Result<Val, Diag> {
    let zero = cx.num(x.dtype, 0.0);
    let negative = binary(cx, Bin::Lt, x, &zero)?;
    let (up, down) = (unary(cx, Un::Ceil, x)?, unary(cx, Un::Floor, x)?);
    select(cx, &negative, &up, &down)
}

/// `a op b`.
pub(super) fn binary(cx: &mut Cx<'_>, op: Bin, a: &Val, b: &Val) -> Result<Val, Diag> {
    let d = a.dtype;
    let bits = d != DType::Bool;
    let name = match op {
        Bin::Shl | Bin::Shr => return shift(cx, op == Bin::Shl, a, b),
        Bin::Mod if d.is_float() => return floored(cx, a, b),
        Bin::Div | Bin::Rem | Bin::Mod
            if d.is_int() && !cx.known(b).is_some_and(|t| t.scalars().all(Scalar::is_true)) =>
        {
            return divided(cx, op, a, b);
        }
        Bin::Pow if d.is_int() && d != DType::I64 => return wide_power(cx, a, b),
        Bin::Min | Bin::Max | Bin::Lt | Bin::Le if !bits => {
            let (a, b) = (cx.cast(a, DType::U8), cx.cast(b, DType::U8));
            let y = binary(cx, op, &a, &b)?;
            return Ok(cx.cast(&y, DType::Bool));
        }
        Bin::Add => "Add",
        Bin::Sub => "Sub",
        Bin::Mul => "Mul",
        Bin::Div => "Div",
        Bin::Rem | Bin::Mod => "Mod",
        Bin::Pow => "Pow",
        Bin::Min => "Min",
        Bin::Max => "Max",
        Bin::Eq => "Equal",
        Bin::Lt => "Less",
        Bin::Le => "LessOrEqual",
        Bin::And if bits => "BitwiseAnd",
        Bin::Or if bits => "BitwiseOr",
        Bin::Xor if bits => "BitwiseXor",
        Bin::And => "And",
        Bin::Or => "Or",
        Bin::Xor => "Xor",
    };
    let attrs = if op == Bin::Rem { vec![int("fmod", 1)] } else { Vec::new() };
    let y = cx.typed1(name, &[a, b], attrs, op.result(d).unwrap_or(d))?;
    match op {
        Bin::Lt => {
            cx.made.insert(y.name.clone(), Made::Less(a.clone(), b.clone()));
        }
        Bin::Sub if d == DType::I32 => shifted(cx, &y, a, b),
        _ => {}
    }
    Ok(y)
}

/// Notes a difference that is a quantized value less its zero point.
fn shifted(cx: &mut Cx<'_>, y: &Val, a: &Val, b: &Val) {
    let narrow = |cx: &Cx<'_>, v: &Val| match cx.made.get(&v.name) {
        Some(Made::Widened(x, None)) => Some(x.clone()),
        _ => None,
    };
    if let (Some(x), Some(zero)) = (narrow(cx, a), narrow(cx, b))
        && x.dtype == zero.dtype
        && cx.is_single(&zero)
    {
        cx.made.insert(y.name.clone(), Made::Widened(x, Some(zero)));
    }
}

/// Remainder of floored division of floats, from that of truncated division.
fn floored(cx: &mut Cx<'_>, a: &Val, b: &Val) -> Result<Val, Diag> {
    let zero = cx.num(a.dtype, 0.0);
    let rest = binary(cx, Bin::Rem, a, b)?;
    let (low, divisor_low) = (binary(cx, Bin::Lt, &rest, &zero)?, binary(cx, Bin::Lt, b, &zero)?);
    let apart = binary(cx, Bin::Xor, &low, &divisor_low)?;
    let none = binary(cx, Bin::Eq, &rest, &zero)?;
    let some = unary(cx, Un::Not, &none)?;
    let moves = binary(cx, Bin::And, &apart, &some)?;
    let moved = binary(cx, Bin::Add, &rest, b)?;
    select(cx, &moves, &moved, &rest)
}

/// Integers divided by what may be 0, which gives 0 here and an error in engines.
fn divided(cx: &mut Cx<'_>, op: Bin, a: &Val, b: &Val) -> Result<Val, Diag> {
    let (zero, one) = (cx.num(a.dtype, 0.0), cx.num(a.dtype, 1.0));
    let none = binary(cx, Bin::Eq, b, &zero)?;
    let divisor = select(cx, &none, &one, b)?;
    let (name, attrs) = match op {
        Bin::Div => ("Div", Vec::new()),
        Bin::Rem => ("Mod", vec![int("fmod", 1)]),
        _ => ("Mod", Vec::new()),
    };
    let y = cx.typed1(name, &[a, &divisor], attrs, a.dtype)?;
    select(cx, &none, &zero, &y)
}

/// Integer powers wrap at 64 bits.
fn wide_power(cx: &mut Cx<'_>, a: &Val, b: &Val) -> Result<Val, Diag> {
    let (x, y) = (cx.cast(a, DType::I64), cx.cast(b, DType::I64));
    let p = binary(cx, Bin::Pow, &x, &y)?;
    Ok(cx.cast(&p, a.dtype))
}

/// BitShift is on unsigned types, and says nothing of shifts by the width or more.
fn shift(cx: &mut Cx<'_>, left: bool, a: &Val, b: &Val) -> Result<Val, Diag> {
    let d = a.dtype;
    let (u, width) = (unsigned(d), i64::from(d.bits()));
    let inside = |t: &tgc_ir::tensor::Tensor| {
        t.scalars().all(|s| s.as_int().is_some_and(|v| (0..i128::from(width)).contains(&v)))
    };
    let fits = cx.known(b).is_some_and(inside);
    // a negative amount is a great one as an unsigned number
    let amount = cx.cast(b, u);
    let plain = |cx: &mut Cx<'_>, x: &Val| -> Result<Val, Diag> {
        let direction = text("direction", if left { "LEFT" } else { "RIGHT" });
        let y = cx.typed1("BitShift", &[x, &amount], vec![direction], u)?;
        if fits {
            return Ok(y);
        }
        let limit = cx.scalar(Scalar::from_int(u, i128::from(width)));
        let small = binary(cx, Bin::Lt, &amount, &limit)?;
        let zero = cx.num(u, 0.0);
        select(cx, &small, &y, &zero)
    };
    if left || d.is_unsigned() {
        let x = cx.cast(a, u);
        let y = plain(cx, &x)?;
        return Ok(cx.cast(&y, d));
    }
    // of a negative number the complement is shifted
    let zero = cx.num(d, 0.0);
    let negative = binary(cx, Bin::Lt, a, &zero)?;
    let turned = unary(cx, Un::Not, a)?;
    let x = select(cx, &negative, &turned, a)?;
    let x = cx.cast(&x, u);
    let y = plain(cx, &x)?;
    let y = cx.cast(&y, d);
    let back = unary(cx, Un::Not, &y)?;
    select(cx, &negative, &back, &y)
}

fn unsigned(d: DType) -> DType {
    match d {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        DType::I64 => DType::U64,
        d => d,
    }
}
