//! Shared by elementwise ops: the type rule with broadcasting and the one-node scalar programs. No op is named here.

use super::{InferCx, Lowering, reduce};
use crate::class::{Class, Map};
use crate::diag::Diag;
use crate::scalar::{Bin, Expr, Un};
use crate::types::{Fact, Type};

/// Type rule of `op(x)`.
pub(crate) fn infer_un(cx: &mut InferCx<'_>, op: Un) -> Result<Vec<Fact>, Diag> {
    let t = cx.ty(0)?;
    match op.result(t.dtype) {
        Some(d) => Ok(vec![Type::new(d, t.shape.clone()).into()]),
        None => Err(cx.fail("E-IR-008", format!("not defined on {}", t.dtype)).help("insert a cast")),
    }
}

/// Type rule of `op(a, b)` with numpy broadcasting.
pub(crate) fn infer_bin(cx: &mut InferCx<'_>, op: Bin) -> Result<Vec<Fact>, Diag> {
    let d = cx.same_dtype()?;
    let shape = cx.broadcast(&cx.ty(0)?.shape, &cx.ty(1)?.shape)?;
    match op.result(d) {
        Some(r) => Ok(vec![Type::new(r, shape).into()]),
        None => Err(cx.fail("E-IR-008", format!("not defined on {d}")).help("insert a cast")),
    }
}

/// The class of `expr`, whose `Arg(i)` are the operands.
pub(crate) fn lower(ins: &[Type], f: impl FnOnce(&mut Expr, &[u32]) -> u32) -> Result<Lowering, Diag> {
    let mut expr = Expr::default();
    let args: Vec<u32> = ins.iter().enumerate().map(|(i, t)| expr.arg(i as u32, t.dtype)).collect();
    let root = f(&mut expr, &args);
    expr.roots = vec![root];
    Ok(Lowering::Class(Class::Map(Map { expr })))
}

/// Defines an elementwise op of one operand: `unary_op!(/// doc.. Name, Un::X, accuracy, onnx)`.
#[macro_export]
macro_rules! unary_op {
    ($(#[$doc:meta])* $name:ident, $un:expr, $acc:expr, $onnx:expr, $grad:expr) => {
        $crate::op_struct! { $(#[$doc])* #[derive(Default)] pub struct $name {} }

        impl $crate::ops::OpDef for $name {
            const SPEC: $crate::ops::Spec = $crate::ops::Spec {
                arity: $crate::ops::Arity::Fixed(&["x"]),
                accuracy: $acc,
                onnx: $onnx,
                commutative: false,
            };
            fn infer(&self, cx: &mut $crate::ops::InferCx<'_>) -> Result<Vec<$crate::types::Fact>, $crate::diag::Diag> {
                $crate::ops::map::infer_un(cx, $un)
            }
            fn lower(&self, cx: &$crate::ops::LowerCx<'_>) -> Result<$crate::ops::Lowering, $crate::diag::Diag> {
                $crate::ops::map::lower(cx.ins, |e, a| e.un($un, a[0]))
            }
            fn grad(&self) -> $crate::ops::Grad<Self> {
                $grad
            }
        }
    };
}

/// Defines an elementwise op of two operands of one type, with broadcasting.
#[macro_export]
macro_rules! binary_op {
    ($(#[$doc:meta])* $name:ident, $bin:expr, $acc:expr, $onnx:expr, commutative: $comm:expr, $grad:expr) => {
        $crate::op_struct! { $(#[$doc])* #[derive(Default)] pub struct $name {} }

        impl $crate::ops::OpDef for $name {
            const SPEC: $crate::ops::Spec = $crate::ops::Spec {
                arity: $crate::ops::Arity::Fixed(&["a", "b"]),
                accuracy: $acc,
                onnx: $onnx,
                commutative: $comm,
            };
            fn infer(&self, cx: &mut $crate::ops::InferCx<'_>) -> Result<Vec<$crate::types::Fact>, $crate::diag::Diag> {
                $crate::ops::map::infer_bin(cx, $bin)
            }
            fn lower(&self, cx: &$crate::ops::LowerCx<'_>) -> Result<$crate::ops::Lowering, $crate::diag::Diag> {
                $crate::ops::map::lower(cx.ins, |e, a| e.bin($bin, a[0], a[1]))
            }
            fn grad(&self) -> $crate::ops::Grad<Self> {
                $grad
            }
        }
    };
}

/// Type rule of `op(x)` on numbers, keeping the type.
pub(crate) fn infer_number(cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
    let t = cx.ty(0)?;
    match t.dtype.is_float() || t.dtype.is_int() {
        true => Ok(vec![t.clone().into()]),
        false => {
            Err(cx.fail("E-IR-008", format!("not defined on {}", t.dtype)).help("insert a cast to a number"))
        }
    }
}

/// Type rule of `op(x)` on floats, keeping the type.
pub(crate) fn infer_float(cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
    let t = cx.ty(0)?;
    match t.dtype.is_float() {
        true => Ok(vec![t.clone().into()]),
        false => {
            Err(cx.fail("E-IR-008", format!("not defined on {}", t.dtype)).help("insert a cast to a float"))
        }
    }
}

/// `f(x)` in at least f32, rounded once to the type of `x`.
pub(crate) fn wide(e: &mut Expr, x: u32, f: impl FnOnce(&mut Expr, u32) -> u32) -> u32 {
    let d = e.dtype(x);
    let w = e.cast(reduce::sum_type(d), x);
    let y = f(e, w);
    e.cast(d, y)
}

/// Defines an elementwise op of one operand by a scalar program: `expr_op!(/// doc.. Name, accuracy, onnx, type rule,
/// |e, x| program, gradient)`.
#[macro_export]
macro_rules! expr_op {
    ($(#[$doc:meta])* $name:ident, $acc:expr, $onnx:expr, $infer:path, $f:expr, $grad:expr) => {
        $crate::op_struct! { $(#[$doc])* #[derive(Default)] pub struct $name {} }

        impl $crate::ops::OpDef for $name {
            const SPEC: $crate::ops::Spec = $crate::ops::Spec {
                arity: $crate::ops::Arity::Fixed(&["x"]),
                accuracy: $acc,
                onnx: $onnx,
                commutative: false,
            };
            fn infer(&self, cx: &mut $crate::ops::InferCx<'_>) -> Result<Vec<$crate::types::Fact>, $crate::diag::Diag> {
                $infer(cx)
            }
            fn lower(&self, cx: &$crate::ops::LowerCx<'_>) -> Result<$crate::ops::Lowering, $crate::diag::Diag> {
                let f: fn(&mut $crate::scalar::Expr, u32) -> u32 = $f;
                $crate::ops::map::lower(cx.ins, |e, a| f(e, a[0]))
            }
            fn grad(&self) -> $crate::ops::Grad<Self> {
                $grad
            }
        }
    };
}
