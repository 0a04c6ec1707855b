//! Scalar values and scalar programs with their normative semantics. Interpreter, folder, kernel interpreter and every
//! code generator follow [`eval_un`], [`eval_bin`] and [`cast`]; nothing here knows tensors.
//!
//! Rules: integers wrap; x/0 = 0 and INT_MIN/-1 wraps; remainders by 0 are 0; shift by >= width gives 0 (arithmetic
//! right shift of a negative: all ones); float to int truncates and saturates, NaN to 0; min and max propagate NaN and
//! order -0 < +0; denormals are kept; rounding is half to even; NaN payloads are unspecified. No reassociation.

use crate::types::{DType, Dim};
use half::{bf16, f16};
use std::fmt;

/// A value of any element type. Floats are held as the bits of their own format, integers sign- or zero-extended.
#[derive(Clone, Copy, Debug)]
pub struct Scalar {
    /// Element type.
    pub dtype: DType,
    /// Raw bits, in the low `dtype.bits()` bits.
    pub bits: u64,
}

impl PartialEq for Scalar {
    /// Bit equality, all NaNs of a type being equal.
    fn eq(&self, o: &Scalar) -> bool {
        self.dtype == o.dtype && (self.bits == o.bits || (self.is_nan() && o.is_nan()))
    }
}

impl Scalar {
    /// Rounds `v` to a float type, or truncates and saturates it to an integer one (bool: not zero).
    pub fn from_f64(dtype: DType, v: f64) -> Scalar {
        let bits = match dtype {
            DType::F64 => v.to_bits(),
            DType::F32 => u64::from((v as f32).to_bits()),
            DType::F16 => u64::from(f16::from_f32(f32_to_odd(v)).to_bits()),
            DType::BF16 => u64::from(bf16::from_f32(f32_to_odd(v)).to_bits()),
            DType::Bool => u64::from(v != 0.0),
            DType::I64 => (v as i64) as u64,
            DType::I32 => (v as i32) as u32 as u64,
            DType::I16 => (v as i16) as u16 as u64,
            DType::I8 => (v as i8) as u8 as u64,
            DType::U64 => v as u64,
            DType::U32 => u64::from(v as u32),
            DType::U16 => u64::from(v as u16),
            DType::U8 => u64::from(v as u8),
            DType::I4 => mask(dtype, (v as i64).clamp(-8, 7) as u64),
            DType::I2 => mask(dtype, (v as i64).clamp(-2, 1) as u64),
            DType::U4 => (v as u64).min(15),
            DType::U2 => (v as u64).min(3),
            _ => 0,
        };
        Scalar { dtype, bits }
    }

    /// Wraps `v` to an integer type (bool: not zero), or rounds it to a float one.
    pub fn from_int(dtype: DType, v: i128) -> Scalar {
        if dtype.is_float() {
            return match dtype {
                DType::F32 => Scalar { dtype, bits: u64::from((v as f32).to_bits()) },
                DType::F64 => Scalar { dtype, bits: (v as f64).to_bits() },
                _ => Scalar::from_f64(dtype, v as f64),
            };
        }
        if dtype == DType::Bool {
            return Scalar::bool(v != 0);
        }
        Scalar { dtype, bits: mask(dtype, v as u64) }
    }

    /// A bool.
    pub fn bool(v: bool) -> Scalar {
        Scalar { dtype: DType::Bool, bits: u64::from(v) }
    }

    /// Value of a float, integer or bool as f64 (64-bit integers round).
    pub fn as_f64(self) -> f64 {
        match self.dtype {
            DType::F64 => f64::from_bits(self.bits),
            DType::F32 => f64::from(f32::from_bits(self.bits as u32)),
            DType::F16 => f16::from_bits(self.bits as u16).to_f64(),
            DType::BF16 => bf16::from_bits(self.bits as u16).to_f64(),
            _ => self.as_int().unwrap_or(0) as f64,
        }
    }

    /// Value of an integer or bool.
    pub fn as_int(self) -> Option<i128> {
        match self.dtype {
            DType::Bool => Some(i128::from(self.bits & 1)),
            d if d.is_unsigned() || matches!(d, DType::U4 | DType::U2) => Some(i128::from(self.bits)),
            d if d.is_signed() || matches!(d, DType::I4 | DType::I2) => {
                let s = 64 - d.bits();
                Some(i128::from(((self.bits << s) as i64) >> s))
            }
            _ => None,
        }
    }

    /// True for a true bool or a number that is not zero.
    pub fn is_true(self) -> bool {
        match self.as_int() {
            Some(v) => v != 0,
            None => self.as_f64() != 0.0,
        }
    }

    /// True for a float NaN.
    pub fn is_nan(self) -> bool {
        self.dtype.is_float() && self.as_f64().is_nan()
    }

    /// Little-endian bytes appended to `out`.
    pub(crate) fn push_bytes(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bits.to_le_bytes()[..self.dtype.size()]);
    }

    /// Reads one element from the front of little-endian `bytes` (short input reads as zeros).
    pub fn from_bytes(dtype: DType, bytes: &[u8]) -> Scalar {
        let mut b = [0u8; 8];
        let n = dtype.size().min(bytes.len());
        b[..n].copy_from_slice(&bytes[..n]);
        Scalar { dtype, bits: u64::from_le_bytes(b) }
    }

    /// Smallest (`-inf` or the integer minimum) or greatest value of a type; the identity of max and min.
    pub fn extreme(dtype: DType, greatest: bool) -> Scalar {
        if dtype.is_float() {
            return Scalar::from_f64(dtype, if greatest { f64::INFINITY } else { f64::NEG_INFINITY });
        }
        if dtype == DType::Bool {
            return Scalar::bool(greatest);
        }
        let v = match (dtype.is_signed(), greatest) {
            (true, true) => (1i128 << (dtype.bits() - 1)) - 1,
            (true, false) => -(1i128 << (dtype.bits() - 1)),
            (false, true) => (1i128 << dtype.bits()) - 1,
            (false, false) => 0,
        };
        Scalar::from_int(dtype, v)
    }
}

/// `v` as f32 such that rounding it again to 16 bits gives what rounding `v` at once gives: inexact results are made odd.
/// (The conversions of `half` from f64 round twice where the CPU has F16C, and drop low bits where it has not.)
fn f32_to_odd(v: f64) -> f32 {
    let r = v as f32;
    let back = f64::from(r);
    if back == v || v.is_nan() || r.to_bits() & 1 == 1 {
        return r;
    }
    if (back.abs() > v.abs()) || r.is_infinite() {
        f32::from_bits(r.to_bits() - 1)
    } else {
        f32::from_bits(r.to_bits() + 1)
    }
}

fn mask(dtype: DType, v: u64) -> u64 {
    match dtype.bits() {
        64 => v,
        b => v & ((1 << b) - 1),
    }
}

impl fmt::Display for Scalar {
    /// Decimal that reads back to the same bits; `nan`, `inf`, `-inf`, `true`, `false`; raw bits for storage types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dtype == DType::Bool {
            return write!(f, "{}", self.is_true());
        }
        if let Some(v) = self.as_int() {
            return write!(f, "{v}");
        }
        if !self.dtype.is_float() {
            return write!(f, "0x{:x}", self.bits);
        }
        let v = self.as_f64();
        if v.is_nan() {
            return f.write_str("nan");
        }
        match self.dtype {
            DType::F64 => write!(f, "{v:?}"),
            DType::F32 => write!(f, "{:?}", v as f32),
            _ => write!(f, "{v:?}"),
        }
    }
}

/// Unary operations. Float functions are defined on floats, `Not` on bool and integers, `Neg` and `Abs` on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the mathematical functions
pub enum Un {
    Neg,
    Abs,
    Exp,
    Log,
    Sqrt,
    Tanh,
    Erf,
    Sin,
    Cos,
    Floor,
    Ceil,
    Round,
    Trunc,
    Not,
    IsNan,
}

/// Binary operations; both operands have one type. Comparisons give bool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Bin {
    Add,
    Sub,
    Mul,
    Div,
    /// Remainder of truncated division (sign of the dividend), C's `%` and `fmod`.
    Rem,
    /// Remainder of floored division (sign of the divisor).
    Mod,
    Pow,
    Min,
    Max,
    Eq,
    Lt,
    Le,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// All unary operations with their text names.
pub const UNARY: [(Un, &str); 15] = [
    (Un::Neg, "neg"),
    (Un::Abs, "abs"),
    (Un::Exp, "exp"),
    (Un::Log, "log"),
    (Un::Sqrt, "sqrt"),
    (Un::Tanh, "tanh"),
    (Un::Erf, "erf"),
    (Un::Sin, "sin"),
    (Un::Cos, "cos"),
    (Un::Floor, "floor"),
    (Un::Ceil, "ceil"),
    (Un::Round, "round"),
    (Un::Trunc, "trunc"),
    (Un::Not, "not"),
    (Un::IsNan, "isnan"),
];

/// All binary operations with their text names.
pub const BINARY: [(Bin, &str); 17] = [
    (Bin::Add, "add"),
    (Bin::Sub, "sub"),
    (Bin::Mul, "mul"),
    (Bin::Div, "div"),
    (Bin::Rem, "rem"),
    (Bin::Mod, "mod"),
    (Bin::Pow, "pow"),
    (Bin::Min, "min"),
    (Bin::Max, "max"),
    (Bin::Eq, "eq"),
    (Bin::Lt, "lt"),
    (Bin::Le, "le"),
    (Bin::And, "and"),
    (Bin::Or, "or"),
    (Bin::Xor, "xor"),
    (Bin::Shl, "shl"),
    (Bin::Shr, "shr"),
];

impl Un {
    /// Text name.
    pub fn name(self) -> &'static str {
        UNARY.iter().find(|u| u.0 == self).map_or("?", |u| u.1)
    }

    /// Result type for an operand type; None if not defined on it.
    pub fn result(self, d: DType) -> Option<DType> {
        match self {
            Un::Neg | Un::Abs => (d.is_float() || d.is_int()).then_some(d),
            Un::Not => (d.is_int() || d == DType::Bool).then_some(d),
            Un::IsNan => d.is_float().then_some(DType::Bool),
            _ => d.is_float().then_some(d),
        }
    }
}

impl Bin {
    /// Text name.
    pub fn name(self) -> &'static str {
        BINARY.iter().find(|u| u.0 == self).map_or("?", |u| u.1)
    }

    /// Result type for operands of type `d`; None if not defined on it.
    pub fn result(self, d: DType) -> Option<DType> {
        let num = d.is_float() || d.is_int();
        let ok = match self {
            Bin::Add | Bin::Sub | Bin::Mul | Bin::Div | Bin::Rem | Bin::Mod | Bin::Pow => num,
            Bin::Min | Bin::Max | Bin::Eq | Bin::Lt | Bin::Le => num || d == DType::Bool,
            Bin::And | Bin::Or | Bin::Xor => d.is_int() || d == DType::Bool,
            Bin::Shl | Bin::Shr => d.is_int(),
        };
        ok.then_some(if matches!(self, Bin::Eq | Bin::Lt | Bin::Le) { DType::Bool } else { d })
    }
}

/// Float min or max: NaN wins, -0 < +0.
pub(crate) fn float_minmax(a: f64, b: f64, max: bool) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    if a == b {
        return if a.is_sign_negative() == max { b } else { a };
    }
    if (a > b) == max { a } else { b }
}

/// Value of a float function in f64 (correct to a few ulp of f64).
pub fn float_un(op: Un, x: f64) -> f64 {
    match op {
        Un::Neg => -x,
        Un::Abs => x.abs(),
        Un::Exp => x.exp(),
        Un::Log => x.ln(),
        Un::Sqrt => x.sqrt(),
        Un::Tanh => x.tanh(),
        Un::Erf => libm::erf(x),
        Un::Sin => x.sin(),
        Un::Cos => x.cos(),
        Un::Floor => x.floor(),
        Un::Ceil => x.ceil(),
        Un::Round => x.round_ties_even(),
        Un::Trunc => x.trunc(),
        Un::Not => f64::from(u8::from(x == 0.0)),
        Un::IsNan => f64::from(u8::from(x.is_nan())),
    }
}

/// Value of a float binary operation in f64.
pub(crate) fn float_bin(op: Bin, a: f64, b: f64) -> f64 {
    let truth = |c: bool| f64::from(u8::from(c));
    match op {
        Bin::Add => a + b,
        Bin::Sub => a - b,
        Bin::Mul => a * b,
        Bin::Div => a / b,
        Bin::Rem => a % b,
        Bin::Mod => {
            let r = a % b;
            if r != 0.0 && (r < 0.0) != (b < 0.0) {
                r + b
            } else if r == 0.0 {
                r.copysign(b)
            } else {
                r
            }
        }
        Bin::Pow => a.powf(b),
        Bin::Min => float_minmax(a, b, false),
        Bin::Max => float_minmax(a, b, true),
        Bin::Eq => truth(a == b),
        Bin::Lt => truth(a < b),
        Bin::Le => truth(a <= b),
        Bin::And | Bin::Or | Bin::Xor | Bin::Shl | Bin::Shr => 0.0,
    }
}

/// Value of an integer binary operation before wrapping to the type. `bits` is the width.
pub(crate) fn int_bin(op: Bin, a: i128, b: i128, bits: u32) -> i128 {
    match op {
        Bin::Add => a + b,
        Bin::Sub => a - b,
        Bin::Mul => a.wrapping_mul(b),
        Bin::Div => {
            if b == 0 {
                0
            } else {
                a / b
            }
        }
        Bin::Rem => {
            if b == 0 {
                0
            } else {
                a % b
            }
        }
        Bin::Mod => {
            if b == 0 {
                0
            } else {
                (a % b + b) % b
            }
        }
        Bin::Pow => int_pow(a, b),
        Bin::Min => a.min(b),
        Bin::Max => a.max(b),
        Bin::Eq => i128::from(a == b),
        Bin::Lt => i128::from(a < b),
        Bin::Le => i128::from(a <= b),
        Bin::And => a & b,
        Bin::Or => a | b,
        Bin::Xor => a ^ b,
        Bin::Shl => {
            if b < 0 || b >= i128::from(bits) {
                0
            } else {
                a.wrapping_shl(b as u32)
            }
        }
        Bin::Shr if b < 0 || b >= i128::from(bits) => {
            if a < 0 {
                -1
            } else {
                0
            }
        }
        Bin::Shr => a >> b,
    }
}

/// Integer power by squaring, wrapping at 64 bits; a negative exponent gives the truncated reciprocal (0, 1 or -1).
fn int_pow(a: i128, b: i128) -> i128 {
    if b < 0 {
        return match a {
            1 => 1,
            -1 => {
                if b % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
    }
    let (mut base, mut e, mut r) = (a as i64, b as u64, 1i64);
    while e > 0 {
        if e & 1 == 1 {
            r = r.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        e >>= 1;
    }
    i128::from(r)
}

/// `op x`, rounded to the result type. The operand's type must be one [`Un::result`] accepts.
pub fn eval_un(op: Un, x: Scalar) -> Scalar {
    let out = op.result(x.dtype).unwrap_or(x.dtype);
    if let Some(v) = x.as_int() {
        return Scalar::from_int(
            out,
            match op {
                Un::Neg => -v,
                Un::Abs => v.abs(),
                Un::Not if x.dtype == DType::Bool => 1 - v,
                Un::Not => !v,
                _ => v,
            },
        );
    }
    match op {
        Un::IsNan => Scalar::bool(x.is_nan()),
        Un::Neg => Scalar { bits: x.bits ^ (1 << (x.dtype.bits() - 1)), ..x },
        Un::Abs => Scalar { bits: x.bits & !(1 << (x.dtype.bits() - 1)), ..x },
        _ => Scalar::from_f64(out, float_un(op, x.as_f64())),
    }
}

/// `a op b`, rounded to the result type. Both have the same type, one [`Bin::result`] accepts.
pub fn eval_bin(op: Bin, a: Scalar, b: Scalar) -> Scalar {
    let out = op.result(a.dtype).unwrap_or(a.dtype);
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => Scalar::from_int(out, int_bin(op, x, y, a.dtype.bits())),
        _ => Scalar::from_f64(out, float_bin(op, a.as_f64(), b.as_f64())),
    }
}

/// `a * b + c` with one rounding.
pub fn eval_fma(a: Scalar, b: Scalar, c: Scalar) -> Scalar {
    match a.dtype {
        DType::F32 => {
            let f = |s: Scalar| f32::from_bits(s.bits as u32);
            Scalar { dtype: DType::F32, bits: u64::from(f(a).mul_add(f(b), f(c)).to_bits()) }
        }
        DType::F64 => Scalar::from_f64(DType::F64, a.as_f64().mul_add(b.as_f64(), c.as_f64())),
        d if d.is_float() => Scalar::from_f64(d, a.as_f64().mul_add(b.as_f64(), c.as_f64())),
        _ => eval_bin(Bin::Add, eval_bin(Bin::Mul, a, b), c),
    }
}

/// Conversion: rounds to floats, truncates and saturates floats to integers, wraps between integers, not-zero to bool.
pub fn cast(to: DType, x: Scalar) -> Scalar {
    match (x.as_int(), to) {
        (_, DType::Bool) => Scalar::bool(x.is_true() || x.is_nan()),
        (Some(v), _) => Scalar::from_int(to, v),
        (None, _) => Scalar::from_f64(to, x.as_f64()),
    }
}

/// A node of a scalar program. Operands are indices of earlier nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum ENode {
    /// Input number n (an operand's element, a reducer's state, a kernel load).
    Arg(u32),
    /// A constant.
    Const(Scalar),
    /// A symbolic integer over symbols and labels, as i64.
    Dim(Dim),
    /// Unary operation.
    Un(Un, u32),
    /// Binary operation.
    Bin(Bin, u32, u32),
    /// `a * b + c`, rounded once.
    Fma(u32, u32, u32),
    /// `c ? a : b`; operands are (c, a, b). Only the chosen side may trap.
    Select(u32, u32, u32),
    /// Conversion to the node's type.
    Cast(u32),
    /// Reinterpretation of the bits as the node's type of the same width.
    Bitcast(u32),
}

/// A scalar program: typed nodes in order, and the nodes that are its results.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Expr {
    /// Nodes with their types; operands come before users.
    pub nodes: Vec<(ENode, DType)>,
    /// Results.
    pub roots: Vec<u32>,
}

impl ENode {
    /// Operand indices.
    pub fn operands(&self) -> Vec<u32> {
        match *self {
            ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) => vec![],
            ENode::Un(_, a) | ENode::Cast(a) | ENode::Bitcast(a) => vec![a],
            ENode::Bin(_, a, b) => vec![a, b],
            ENode::Fma(a, b, c) | ENode::Select(a, b, c) => vec![a, b, c],
        }
    }

    /// The same node with operands renumbered.
    pub fn map_operands(&self, f: impl Fn(u32) -> u32) -> ENode {
        match self {
            ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) => self.clone(),
            ENode::Un(o, a) => ENode::Un(*o, f(*a)),
            ENode::Cast(a) => ENode::Cast(f(*a)),
            ENode::Bitcast(a) => ENode::Bitcast(f(*a)),
            ENode::Bin(o, a, b) => ENode::Bin(*o, f(*a), f(*b)),
            ENode::Fma(a, b, c) => ENode::Fma(f(*a), f(*b), f(*c)),
            ENode::Select(a, b, c) => ENode::Select(f(*a), f(*b), f(*c)),
        }
    }
}

impl Expr {
    /// Type of a node.
    pub fn dtype(&self, n: u32) -> DType {
        self.nodes.get(n as usize).map_or(DType::Bool, |n| n.1)
    }

    /// Appends a node (an equal existing one is reused) and returns its index.
    pub fn push(&mut self, node: ENode, dtype: DType) -> u32 {
        if let Some(at) = self.nodes.iter().position(|n| n.1 == dtype && n.0 == node) {
            return at as u32;
        }
        self.nodes.push((node, dtype));
        (self.nodes.len() - 1) as u32
    }

    /// Input number `i` of type `dtype`.
    pub fn arg(&mut self, i: u32, dtype: DType) -> u32 {
        self.push(ENode::Arg(i), dtype)
    }

    /// A constant.
    pub fn constant(&mut self, s: Scalar) -> u32 {
        self.push(ENode::Const(s), s.dtype)
    }

    /// A float (or integer) constant of the type of node `like`.
    pub fn num(&mut self, like: u32, v: f64) -> u32 {
        let d = self.dtype(like);
        self.constant(Scalar::from_f64(d, v))
    }

    /// A dim as i64.
    pub fn dim(&mut self, d: Dim) -> u32 {
        self.push(ENode::Dim(d), DType::I64)
    }

    /// Unary operation; the result type follows the operand's.
    pub fn un(&mut self, op: Un, a: u32) -> u32 {
        let d = op.result(self.dtype(a)).unwrap_or(self.dtype(a));
        self.push(ENode::Un(op, a), d)
    }

    /// Binary operation; the result type follows the operands'.
    pub fn bin(&mut self, op: Bin, a: u32, b: u32) -> u32 {
        let d = op.result(self.dtype(a)).unwrap_or(self.dtype(a));
        self.push(ENode::Bin(op, a, b), d)
    }

    /// `a * b + c`, one rounding.
    pub fn fma(&mut self, a: u32, b: u32, c: u32) -> u32 {
        let d = self.dtype(a);
        self.push(ENode::Fma(a, b, c), d)
    }

    /// `c ? a : b`.
    pub fn select(&mut self, c: u32, a: u32, b: u32) -> u32 {
        let d = self.dtype(a);
        self.push(ENode::Select(c, a, b), d)
    }

    /// Conversion; a conversion to the same type is the operand.
    pub fn cast(&mut self, to: DType, a: u32) -> u32 {
        if self.dtype(a) == to { a } else { self.push(ENode::Cast(a), to) }
    }

    /// Reinterpretation of bits.
    pub fn bitcast(&mut self, to: DType, a: u32) -> u32 {
        if self.dtype(a) == to { a } else { self.push(ENode::Bitcast(a), to) }
    }

    /// Appends `other`'s nodes with its `Arg(i)` replaced by node `args[i]`; returns where its roots went.
    pub fn inline(&mut self, other: &Expr, args: &[u32]) -> Vec<u32> {
        let mut at = Vec::with_capacity(other.nodes.len());
        for (node, dtype) in &other.nodes {
            let n = match node {
                ENode::Arg(i) => args.get(*i as usize).copied().unwrap_or(0),
                n => self.push(n.map_operands(|o| at[o as usize]), *dtype),
            };
            at.push(n);
        }
        other.roots.iter().map(|&r| at[r as usize]).collect()
    }

    /// Evaluates with the semantics of this module: `arg(i)` gives inputs, `leaf` the values inside dims.
    /// Every node is evaluated in its own type and rounded to it. None when a dim cannot be evaluated.
    pub fn eval(
        &self,
        arg: &dyn Fn(u32) -> Scalar,
        leaf: &dyn Fn(&crate::types::Atom) -> Option<i64>,
    ) -> Option<Vec<Scalar>> {
        let mut v: Vec<Scalar> = Vec::with_capacity(self.nodes.len());
        for (node, dtype) in &self.nodes {
            let at = |i: u32| v[i as usize];
            let r = match node {
                ENode::Arg(i) => arg(*i),
                ENode::Const(s) => *s,
                ENode::Dim(d) => Scalar::from_int(DType::I64, i128::from(d.eval(leaf).ok()?)),
                ENode::Un(op, a) => eval_un(*op, at(*a)),
                ENode::Bin(op, a, b) => eval_bin(*op, at(*a), at(*b)),
                ENode::Fma(a, b, c) => eval_fma(at(*a), at(*b), at(*c)),
                ENode::Select(c, a, b) => {
                    if at(*c).is_true() {
                        at(*a)
                    } else {
                        at(*b)
                    }
                }
                ENode::Cast(a) => cast(*dtype, at(*a)),
                ENode::Bitcast(a) => Scalar { dtype: *dtype, bits: at(*a).bits },
            };
            v.push(r);
        }
        Some(self.roots.iter().map(|&r| v[r as usize]).collect())
    }
}
