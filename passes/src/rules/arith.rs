//! Rules of arithmetic. Only identities that hold for every bit pattern: no reassociation of floats, no `x * 0 -> 0`,
//! and -0.0 counts.

use super::splat::splat_constant;
use super::{Rewrite, Rule, keep, pair, remake, result, rules, splat_of};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Constant, Mul, Op};
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::scalar::{Bin, Scalar, eval_bin};
use tgc_ir::types::DType;

pub(crate) const RULES: &[Rule] = rules![
    constant_right,
    add_zero,
    sub_zero,
    sub_same,
    mul_one,
    div_one,
    pow_one,
    pow_two,
    pow_three,
    div_power,
    double_neg,
    min_max_same,
    add_add,
    mul_mul,
];

/// `op(c, x) = op(x, c)` for a constant c and a commutative op.
fn constant_right(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let op = g.op_of(id).filter(|op| op.spec().commutative)?;
    let (a, b) = pair(g, id)?;
    let constant = |v: Value| matches!(g.op_of(v.node), Some(Op::Constant(_) | Op::ConstDims(_)));
    if !constant(a) || constant(b) {
        return None;
    }
    remake(g, id, op.clone(), &[b, a])
}

/// `x + 0 = x` for integers, `x + -0.0 = x` for floats (x + 0.0 turns -0.0 into 0.0).
fn add_zero(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Add(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if is_zero(splat_of(g, c)?, true) { keep(g, id, x) } else { None }
}

/// `x - 0 = x` for integers, `x - 0.0 = x` for floats (x - -0.0 turns -0.0 into 0.0).
fn sub_zero(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Sub(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if is_zero(splat_of(g, c)?, false) { keep(g, id, x) } else { None }
}

/// `x - x = 0` for integers (for floats an infinity or NaN gives NaN).
fn sub_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Sub(_)) = g.op_of(id) else { return None };
    let (a, b) = pair(g, id)?;
    let ty = g.ty(a).filter(|t| a == b && t.dtype.is_int())?;
    remake(g, id, splat_constant(ty, Scalar::from_int(ty.dtype, 0)), &[])
}

/// `x * 1 = x`.
fn mul_one(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Mul(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if is_number(splat_of(g, c)?, 1.0) { keep(g, id, x) } else { None }
}

/// `x / 1 = x`.
fn div_one(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Div(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if is_number(splat_of(g, c)?, 1.0) { keep(g, id, x) } else { None }
}

/// `pow(x, 1) = x`.
fn pow_one(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Pow(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if is_number(splat_of(g, c)?, 1.0) { keep(g, id, x) } else { None }
}

/// `pow(x, 2) = x * x`, which is the correctly rounded power.
fn pow_two(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Pow(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if is_number(splat_of(g, c)?, 2.0) { remake(g, id, Mul {}, &[x, x]) } else { None }
}

/// `pow(x, 3) = x * x * x` for f32. Two roundings, an error below 1.5 ulp, where the power itself may be 4 ulp off; and
/// the square neither overflows nor loses bits where the cube is a normal number.
fn pow_three(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Pow(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    if !is_number(splat_of(g, c)?, 3.0) || g.ty(x) != g.ty(result(id)) || g.ty(x)?.dtype != DType::F32 {
        return None;
    }
    let mut p = Patch::new(g, id);
    let square = p.op(Mul {}, &[PVal::Old(x), PVal::Old(x)]).ok()?;
    let cube = p.op(Mul {}, &[square, PVal::Old(x)]).ok()?;
    p.replace(result(id), cube);
    Some(p)
}

/// `x / c = x * (1 / c)` for a power of two whose reciprocal is a normal number, of f32 or f64: both are exact.
fn div_power(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Div(_)) = g.op_of(id) else { return None };
    let (x, c) = pair(g, id)?;
    let (dtype, value) = (g.ty(c)?.dtype, splat_of(g, c)?.as_f64());
    let normal = value.abs().log2().fract() == 0.0 && (-126.0..=126.0).contains(&value.abs().log2());
    if !matches!(dtype, DType::F32 | DType::F64) || !normal || value.to_bits() << 12 != 0 {
        return None;
    }
    let mut p = Patch::new(g, id);
    let factor = p.op(splat_constant(g.ty(c)?, Scalar::from_f64(dtype, 1.0 / value)), &[]).ok()?;
    let new = p.op(Mul {}, &[PVal::Old(x), factor]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// `-(-x) = x`.
fn double_neg(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Neg(_)) = g.op_of(id) else { return None };
    let y = *g.operands(id).first()?;
    let Some(Op::Neg(_)) = g.op_of(y.node) else { return None };
    keep(g, id, *g.operands(y.node).first()?)
}

/// `min(x, x) = max(x, x) = x`.
fn min_max_same(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Min(_) | Op::Max(_)) = g.op_of(id) else { return None };
    let (a, b) = pair(g, id)?;
    if a == b { keep(g, id, a) } else { None }
}

/// `(x + c) + d = x + (c + d)` for integers, which wrap.
fn add_add(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Add(_)) = g.op_of(id) else { return None };
    let Some(Op::Add(_)) = g.op_of(pair(g, id)?.0.node) else { return None };
    join(g, id, Bin::Add)
}

/// `(x * c) * d = x * (c * d)` for integers, which wrap.
fn mul_mul(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let Some(Op::Mul(_)) = g.op_of(id) else { return None };
    let Some(Op::Mul(_)) = g.op_of(pair(g, id)?.0.node) else { return None };
    join(g, id, Bin::Mul)
}

/// Joins the rank-0 constants of two nested integer nodes of one op.
fn join(g: &Graph, id: NodeId, bin: Bin) -> Rewrite<'_> {
    let (inner, d) = pair(g, id)?;
    let (x, c) = pair(g, inner.node)?;
    let rank0 = |v: Value| g.ty(v).is_some_and(|t| t.rank() == 0);
    if !rank0(c) || !rank0(d) || !g.ty(d)?.dtype.is_int() {
        return None;
    }
    let both = eval_bin(bin, splat_of(g, c)?, splat_of(g, d)?);
    let mut p = Patch::new(g, id);
    let constant = p.op(Constant::scalar(both), &[]).ok()?;
    let new = p.op(g.op_of(id)?.clone(), &[PVal::Old(x), constant]).ok()?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// Zero of an integer type, or the float zero of the given sign.
fn is_zero(s: Scalar, negative: bool) -> bool {
    match s.as_int() {
        Some(v) => v == 0,
        None => s.as_f64() == 0.0 && s.as_f64().is_sign_negative() == negative,
    }
}

fn is_number(s: Scalar, v: f64) -> bool {
    s.as_f64() == v
}
