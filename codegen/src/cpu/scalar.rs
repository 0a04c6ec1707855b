//! Scalar programs as instructions, exactly as `tgc_ir::scalar` defines them. Functions that are no single machine
//! operation (exponentials, bf16 arithmetic ..) have been rewritten by the math lowering before; what is left of them is refused.

use super::build::{Op, R, T, V};
use super::emit::Emit;
use super::{Fail, refused};
use inkwell::{FloatPredicate, IntPredicate};
use tgc_ir::scalar::{Bin, ENode, Expr, Scalar, Un};
use tgc_ir::types::DType;

impl<'c> Emit<'c, '_> {
    /// Evaluates `e` and gives its roots; `arg` gives the inputs. With `keep`, node values are kept for `$n` in indices.
    pub(super) fn expr(
        &mut self,
        e: &Expr,
        keep: bool,
        arg: &mut dyn FnMut(&mut Self, u32) -> R<V<'c>>,
    ) -> R<Vec<V<'c>>> {
        let mut values: Vec<V<'c>> = Vec::with_capacity(e.nodes.len());
        if keep {
            self.nodes = vec![None; e.nodes.len()];
        }
        for (i, (node, dtype)) in e.nodes.iter().enumerate() {
            let v = match node {
                ENode::Arg(i) => arg(self, *i)?,
                node => self.node(node, *dtype, e, &values)?,
            };
            values.push(v);
            if keep && let Some(slot) = self.nodes.get_mut(i) {
                *slot = Some((v, *dtype));
            }
        }
        e.roots
            .iter()
            .map(|&r| values.get(r as usize).copied().ok_or_else(|| self.no("a missing root")))
            .collect()
    }

    fn no(&self, what: &str) -> Fail {
        refused(self.kernel, what)
    }

    fn node(&self, node: &ENode, dtype: DType, e: &Expr, values: &[V<'c>]) -> R<V<'c>> {
        let at =
            |i: u32| values.get(i as usize).copied().ok_or_else(|| self.no("an operand that comes later"));
        match *node {
            ENode::Arg(_) => Err(self.no("an input in this place")),
            ENode::Const(s) => self.constant(s),
            ENode::Dim(ref d) => self.dim(d),
            ENode::Un(op, a) => self.un(op, at(a)?, e.dtype(a)),
            ENode::Bin(Bin::Le, a, b) if self.never_padded(e, a, b) => {
                Ok(self.ir.ctx.bool_type().const_int(1, false).into())
            }
            ENode::Bin(op, a, b) => self.bin(op, at(a)?, at(b)?, e.dtype(a)),
            ENode::Fma(a, b, c) => self.fma(at(a)?, at(b)?, at(c)?, dtype),
            ENode::Select(c, a, b) => self.ir.select(at(c)?, at(a)?, at(b)?),
            ENode::Cast(a) => self.cast(at(a)?, e.dtype(a), dtype),
            ENode::Bitcast(a) => {
                let t = self.reg(dtype)?;
                self.ir.bitcast(at(a)?, t)
            }
        }
    }

    /// True if node `a` is at most node `b` because no read is filled where code is being built.
    fn never_padded(&self, e: &Expr, a: u32, b: u32) -> bool {
        let dim = |n: u32| match e.nodes.get(n as usize) {
            Some((ENode::Dim(d), _)) => Some(d),
            _ => None,
        };
        let margin = dim(a).zip(dim(b)).map(|(a, b)| b.clone() - a.clone());
        margin.is_some_and(|m| self.inside.as_ref().is_some_and(|known| known.contains(&m)))
    }

    /// Type in registers.
    pub(super) fn reg(&self, d: DType) -> R<T<'c>> {
        self.ir.reg(d).ok_or_else(|| self.no(&format!("values of type {d} in compiled code")))
    }

    fn const_bits(&self, t: T<'c>, bits: u64, width: u32) -> R<V<'c>> {
        match t {
            T::IntType(t) => Ok(t.const_int(bits, false).into()),
            t => {
                let i = self.ir.ctx.custom_width_int_type(
                    std::num::NonZero::new(width).unwrap_or(std::num::NonZero::<u32>::MIN),
                );
                let i = i.map_err(|e| Fail::Llvm(e.to_string()))?;
                self.ir.bitcast(i.const_int(bits, false).into(), t)
            }
        }
    }

    /// A constant in registers.
    pub(super) fn constant(&self, s: Scalar) -> R<V<'c>> {
        let bits = if s.dtype == DType::Bool { u64::from(s.is_true()) } else { s.bits };
        self.const_bits(self.reg(s.dtype)?, bits, s.dtype.bits())
    }

    /// A constant as it is in memory.
    pub(super) fn constant_mem(&self, s: Scalar) -> R<V<'c>> {
        let t = self.ir.mem(s.dtype).ok_or_else(|| self.no(&format!("values of type {}", s.dtype)))?;
        self.const_bits(t, s.bits, s.dtype.bits())
    }

    fn f32t(&self) -> T<'c> {
        self.ir.ctx.f32_type().into()
    }

    fn needs_f16(&self) -> R<()> {
        if self.target.has("f16c") || self.target.has("neon") {
            return Ok(());
        }
        Err(self.no("f16 on CPUs without F16C (use target x86-64-v3)"))
    }

    fn f16_to_f32(&self, v: V<'c>) -> R<V<'c>> {
        self.needs_f16()?;
        self.ir.float_ext(v, self.f32t())
    }

    fn f32_to_f16(&self, v: V<'c>) -> R<V<'c>> {
        self.needs_f16()?;
        self.ir.float_trunc(v, self.reg(DType::F16)?)
    }

    /// A unary operation on a value of type `d`.
    pub(super) fn un(&self, op: Un, a: V<'c>, d: DType) -> R<V<'c>> {
        let b = &self.ir;
        if d == DType::Bool || d.is_int() {
            return match op {
                Un::Neg => b.op(Op::Sub, b.int_like(a, 0)?, a),
                Un::Abs if d.is_unsigned() => Ok(a),
                Un::Abs => {
                    let below = b.icmp(IntPredicate::SLT, a, b.int_like(a, 0)?)?;
                    let minus = b.op(Op::Sub, b.int_like(a, 0)?, a)?;
                    b.select(below, minus, a)
                }
                Un::Not => b.op(Op::Xor, a, b.int_like(a, -1)?),
                _ => Err(self.no(&format!("`{}` of {d}", op.name()))),
            };
        }
        if !matches!(d, DType::F32 | DType::F64) {
            return Err(self.no(&format!("`{}` of {d} that the math lowering left", op.name())));
        }
        let name = match op {
            Un::Neg => return b.fneg(a),
            Un::IsNan => return b.fcmp(FloatPredicate::UNO, a, a),
            Un::Abs => "llvm.fabs",
            Un::Sqrt => "llvm.sqrt",
            Un::Floor => "llvm.floor",
            Un::Ceil => "llvm.ceil",
            Un::Round => "llvm.roundeven",
            Un::Trunc => "llvm.trunc",
            _ => return Err(self.no(&format!("`{}` that the math lowering left", op.name()))),
        };
        b.same(name, &[a])
    }

    /// A binary operation on values of type `d`.
    pub(super) fn bin(&self, op: Bin, x: V<'c>, y: V<'c>, d: DType) -> R<V<'c>> {
        match d {
            DType::Bool => self.bin_bool(op, x, y),
            // The math lowering leaves no f16 but in stores that combine; two f16 operands round the same through f32.
            DType::F16 if op.result(d) == Some(d) => {
                let r = self.bin_float(op, self.f16_to_f32(x)?, self.f16_to_f32(y)?)?;
                self.f32_to_f16(r)
            }
            DType::F16 | DType::BF16 => {
                Err(self.no(&format!("`{}` of {d} that the math lowering left", op.name())))
            }
            d if d.is_float() => self.bin_float(op, x, y),
            d if d.is_int() => self.bin_int(op, x, y, d),
            d => Err(self.no(&format!("`{}` of {d}", op.name()))),
        }
    }

    fn bin_bool(&self, op: Bin, x: V<'c>, y: V<'c>) -> R<V<'c>> {
        let b = &self.ir;
        let not = |v: V<'c>| b.op(Op::Xor, v, b.int_like(v, 1)?);
        match op {
            Bin::And | Bin::Min => b.op(Op::And, x, y),
            Bin::Or | Bin::Max => b.op(Op::Or, x, y),
            Bin::Xor => b.op(Op::Xor, x, y),
            Bin::Eq => not(b.op(Op::Xor, x, y)?),
            Bin::Lt => b.op(Op::And, not(x)?, y),
            Bin::Le => b.op(Op::Or, not(x)?, y),
            _ => Err(self.no(&format!("`{}` of bool", op.name()))),
        }
    }

    fn bin_float(&self, op: Bin, x: V<'c>, y: V<'c>) -> R<V<'c>> {
        let b = &self.ir;
        match op {
            Bin::Add => b.op(Op::FAdd, x, y),
            Bin::Sub => b.op(Op::FSub, x, y),
            Bin::Mul => b.op(Op::FMul, x, y),
            Bin::Div => b.op(Op::FDiv, x, y),
            Bin::Min => b.same("llvm.minimum", &[x, y]),
            Bin::Max => b.same("llvm.maximum", &[x, y]),
            Bin::Eq => b.fcmp(FloatPredicate::OEQ, x, y),
            Bin::Lt => b.fcmp(FloatPredicate::OLT, x, y),
            Bin::Le => b.fcmp(FloatPredicate::OLE, x, y),
            _ => Err(self.no(&format!("`{}` of floats that the math lowering left", op.name()))),
        }
    }

    fn bin_int(&self, op: Bin, x: V<'c>, y: V<'c>, d: DType) -> R<V<'c>> {
        let b = &self.ir;
        let signed = d.is_signed();
        let by = |s: IntPredicate, u: IntPredicate| if signed { s } else { u };
        match op {
            Bin::Add => b.op(Op::Add, x, y),
            Bin::Sub => b.op(Op::Sub, x, y),
            Bin::Mul => b.op(Op::Mul, x, y),
            Bin::And => b.op(Op::And, x, y),
            Bin::Or => b.op(Op::Or, x, y),
            Bin::Xor => b.op(Op::Xor, x, y),
            Bin::Eq => b.icmp(IntPredicate::EQ, x, y),
            Bin::Lt => b.icmp(by(IntPredicate::SLT, IntPredicate::ULT), x, y),
            Bin::Le => b.icmp(by(IntPredicate::SLE, IntPredicate::ULE), x, y),
            Bin::Min | Bin::Max => {
                let less = b.icmp(by(IntPredicate::SLT, IntPredicate::ULT), x, y)?;
                if op == Bin::Min { b.select(less, x, y) } else { b.select(less, y, x) }
            }
            Bin::Shl | Bin::Shr => {
                let last = i64::from(d.bits()) - 1;
                let big = b.icmp(IntPredicate::UGT, y, b.int_like(y, last)?)?;
                if op == Bin::Shr && signed {
                    let by = b.select(big, b.int_like(y, last)?, y)?;
                    return b.op(Op::AShr, x, by);
                }
                let by = b.select(big, b.int_like(y, 0)?, y)?;
                let r = b.op(if op == Bin::Shl { Op::Shl } else { Op::LShr }, x, by)?;
                b.select(big, b.int_like(r, 0)?, r)
            }
            Bin::Div | Bin::Rem | Bin::Mod => self.divide(op, x, y, signed),
            Bin::Pow => Err(self.no("`pow` that the math lowering left")),
        }
    }

    /// Division without machine exceptions: by 0 gives 0, by -1 negates.
    fn divide(&self, op: Bin, x: V<'c>, y: V<'c>, signed: bool) -> R<V<'c>> {
        let b = &self.ir;
        let (zero, one) = (b.int_like(y, 0)?, b.int_like(y, 1)?);
        let none = b.icmp(IntPredicate::EQ, y, zero)?;
        if !signed {
            let safe = b.select(none, one, y)?;
            let r = b.op(if op == Bin::Div { Op::UDiv } else { Op::URem }, x, safe)?;
            return b.select(none, zero, r);
        }
        let minus = b.icmp(IntPredicate::EQ, y, b.int_like(y, -1)?)?;
        let special = b.op(Op::Or, none, minus)?;
        let safe = b.select(special, one, y)?;
        if op == Bin::Div {
            let q = b.op(Op::SDiv, x, safe)?;
            let negated = b.op(Op::Sub, zero, x)?;
            let q = b.select(minus, negated, q)?;
            return b.select(none, zero, q);
        }
        // The remainder by 1, which stands for 0 and -1, is 0.
        let r = b.op(Op::SRem, x, safe)?;
        if op == Bin::Rem {
            return Ok(r);
        }
        let signs = b.op(Op::Xor, r, safe)?;
        let differ = b.icmp(IntPredicate::SLT, signs, zero)?;
        let some = b.icmp(IntPredicate::NE, r, zero)?;
        let fix = b.op(Op::And, differ, some)?;
        let moved = b.op(Op::Add, r, safe)?;
        b.select(fix, moved, r)
    }

    /// `x * y + z`, one rounding where the target has it.
    pub(super) fn fma(&self, x: V<'c>, y: V<'c>, z: V<'c>, d: DType) -> R<V<'c>> {
        let b = &self.ir;
        if matches!(d, DType::F32 | DType::F64) {
            if self.target.isa.fma {
                return b.same("llvm.fma", &[x, y, z]);
            }
            let p = b.op(Op::FMul, x, y)?;
            return b.op(Op::FAdd, p, z);
        }
        if d.is_int() {
            let p = b.op(Op::Mul, x, y)?;
            return b.op(Op::Add, p, z);
        }
        Err(self.no(&format!("fused multiply-add of {d} that the math lowering left")))
    }

    /// Conversion between element types.
    pub(super) fn cast(&self, v: V<'c>, from: DType, to: DType) -> R<V<'c>> {
        let b = &self.ir;
        let t = self.reg(to)?;
        match (from, to) {
            _ if from == to => return Ok(v),
            (DType::F16, DType::F32) => return self.f16_to_f32(v),
            (DType::F32, DType::F16) => return self.f32_to_f16(v),
            (DType::F16 | DType::BF16, _) | (_, DType::F16 | DType::BF16) => {
                return Err(self.no(&format!("a conversion from {from} to {to} that the math lowering left")));
            }
            (DType::F32, DType::F64) => return b.float_ext(v, t),
            (DType::F64, DType::F32) => return b.float_trunc(v, t),
            _ => {}
        }
        match (from.is_float(), to.is_float()) {
            (false, _) if to == DType::Bool => b.icmp(IntPredicate::NE, v, b.int_like(v, 0)?),
            (false, false) => b.int_cast(v, t, from.is_signed()),
            (false, true) => b.int_to_float(v, t, from.is_signed()),
            _ if to == DType::Bool => b.fcmp(FloatPredicate::UNE, v, b.float_like(v, 0.0)?),
            _ => {
                let name = if to.is_signed() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
                b.call(name, &[b.widen(t, super::build::lanes(v)), v.get_type()], &[v])
            }
        }
    }
}
