//! A thin layer over inkwell's builder in which scalars and vectors are one kind of value: operands of unequal lane counts
//! are splatted, loops are rotated and guarded, stack slots go to the entry block. No kernel is known here.

use super::Fail;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::intrinsics::Intrinsic;
use inkwell::module::Module;
use inkwell::types::{BasicType, BasicTypeEnum, FloatType, IntType};
use inkwell::values::{BasicValue, BasicValueEnum, FunctionValue, InstructionValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tgc_ir::types::DType;

/// A scalar or a vector.
pub(super) type V<'c> = BasicValueEnum<'c>;
/// A type in registers.
pub(super) type T<'c> = BasicTypeEnum<'c>;
/// A result of emission.
pub(super) type R<X> = Result<X, Fail>;

/// Instructions of two operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    Add,
    Sub,
    Mul,
    UDiv,
    SDiv,
    URem,
    SRem,
    And,
    Or,
    Xor,
    Shl,
    LShr,
    AShr,
    FAdd,
    FSub,
    FMul,
    FDiv,
}

/// The function being built and where building goes on.
pub(super) struct Build<'c> {
    pub(super) ctx: &'c Context,
    pub(super) module: Module<'c>,
    pub(super) b: Builder<'c>,
    pub(super) func: FunctionValue<'c>,
    /// Block of the stack slots; it ends in a branch to the code.
    pub(super) slots: BasicBlock<'c>,
}

/// Number of lanes, 1 for a scalar.
pub(super) fn lanes(v: V<'_>) -> u32 {
    match v {
        V::VectorValue(x) => x.get_type().get_size(),
        _ => 1,
    }
}

/// The value of a constant scalar integer.
pub(super) fn known(v: V<'_>) -> Option<i64> {
    match v {
        V::IntValue(x) => x.get_sign_extended_constant(),
        _ => None,
    }
}

fn mixed(what: &str) -> Fail {
    Fail::Llvm(format!("operands of {what} have other types than it takes"))
}

macro_rules! ints {
    ($s:ident, $f:ident, $a:expr, $b:expr) => {
        match ($a, $b) {
            (V::IntValue(x), V::IntValue(y)) => Ok($s.b.$f(x, y, "")?.into()),
            (V::VectorValue(x), V::VectorValue(y)) => Ok($s.b.$f(x, y, "")?.into()),
            _ => Err(mixed(stringify!($f))),
        }
    };
}

macro_rules! floats {
    ($s:ident, $f:ident, $a:expr, $b:expr) => {
        match ($a, $b) {
            (V::FloatValue(x), V::FloatValue(y)) => Ok($s.b.$f(x, y, "")?.into()),
            (V::VectorValue(x), V::VectorValue(y)) => Ok($s.b.$f(x, y, "")?.into()),
            _ => Err(mixed(stringify!($f))),
        }
    };
}

macro_rules! convert {
    ($s:ident, $f:ident, $from:ident, $into:ident, $a:expr, $to:expr) => {
        match ($a, $s.widen($to, lanes($a))) {
            (V::$from(x), T::$into(t)) => Ok($s.b.$f(x, t, "")?.into()),
            (V::VectorValue(x), T::VectorType(t)) => Ok($s.b.$f(x, t, "")?.into()),
            _ => Err(mixed(stringify!($f))),
        }
    };
}

impl<'c> Build<'c> {
    /// 64-bit integers.
    pub(super) fn i64t(&self) -> IntType<'c> {
        self.ctx.i64_type()
    }

    /// A 64-bit constant.
    pub(super) fn i64(&self, v: i64) -> V<'c> {
        self.i64t().const_int(v as u64, true).into()
    }

    /// Type of an element in registers (bool is one bit, bf16 its 16 bits); None for types without code.
    pub(super) fn reg(&self, d: DType) -> Option<T<'c>> {
        Some(match d {
            DType::Bool => self.ctx.bool_type().into(),
            d => return self.mem(d),
        })
    }

    /// Type of an element in memory.
    pub(super) fn mem(&self, d: DType) -> Option<T<'c>> {
        Some(match d {
            DType::F64 => self.ctx.f64_type().into(),
            DType::F32 => self.ctx.f32_type().into(),
            DType::F16 => self.ctx.f16_type().into(),
            DType::BF16 | DType::I16 | DType::U16 => self.ctx.i16_type().into(),
            DType::I64 | DType::U64 => self.ctx.i64_type().into(),
            DType::I32 | DType::U32 => self.ctx.i32_type().into(),
            DType::I8 | DType::U8 | DType::Bool => self.ctx.i8_type().into(),
            _ => return None,
        })
    }

    /// `n` lanes of a scalar type.
    pub(super) fn widen(&self, t: T<'c>, n: u32) -> T<'c> {
        match t {
            _ if n == 1 => t,
            T::IntType(t) => t.vec_type(n).into(),
            T::FloatType(t) => t.vec_type(n).into(),
            t => t,
        }
    }

    fn scalar_of(&self, v: V<'c>) -> T<'c> {
        match v {
            V::VectorValue(x) => x.get_type().get_element_type(),
            v => v.get_type(),
        }
    }

    fn int_of(&self, v: V<'c>) -> R<IntType<'c>> {
        match self.scalar_of(v) {
            T::IntType(t) => Ok(t),
            _ => Err(mixed("an integer constant")),
        }
    }

    fn float_of(&self, v: V<'c>) -> R<FloatType<'c>> {
        match self.scalar_of(v) {
            T::FloatType(t) => Ok(t),
            _ => Err(mixed("a float constant")),
        }
    }

    /// An integer constant of the (scalar) type of `like`.
    pub(super) fn int_like(&self, like: V<'c>, v: i64) -> R<V<'c>> {
        Ok(self.int_of(like)?.const_int(v as u64, true).into())
    }

    /// A float constant of the (scalar) type of `like`.
    pub(super) fn float_like(&self, like: V<'c>, v: f64) -> R<V<'c>> {
        Ok(self.float_of(like)?.const_float(v).into())
    }

    /// Bits of an integer's type.
    pub(super) fn width(&self, v: V<'c>) -> R<u32> {
        Ok(self.int_of(v)?.get_bit_width())
    }

    /// `n` lanes of `v`, if it is a scalar.
    pub(super) fn splat(&self, v: V<'c>, n: u32) -> R<V<'c>> {
        if n == 1 || lanes(v) == n {
            return Ok(v);
        }
        let T::VectorType(t) = self.widen(v.get_type(), n) else { return Err(mixed("a splat")) };
        let (zero, first) = (self.ctx.i32_type().const_zero(), t.get_poison());
        let one = self.b.build_insert_element(first, v, zero, "")?;
        let mask = self.ctx.i32_type().vec_type(n).const_zero();
        Ok(self.b.build_shuffle_vector(one, t.get_poison(), mask, "")?.into())
    }

    /// Both operands with the greater number of lanes.
    pub(super) fn pair(&self, a: V<'c>, b: V<'c>) -> R<(V<'c>, V<'c>)> {
        let n = lanes(a).max(lanes(b));
        Ok((self.splat(a, n)?, self.splat(b, n)?))
    }

    /// `a op b`.
    pub(super) fn op(&self, op: Op, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        let (a, b) = self.pair(a, b)?;
        match op {
            Op::Add => ints!(self, build_int_add, a, b),
            Op::Sub => ints!(self, build_int_sub, a, b),
            Op::Mul => ints!(self, build_int_mul, a, b),
            Op::UDiv => ints!(self, build_int_unsigned_div, a, b),
            Op::SDiv => ints!(self, build_int_signed_div, a, b),
            Op::URem => ints!(self, build_int_unsigned_rem, a, b),
            Op::SRem => ints!(self, build_int_signed_rem, a, b),
            Op::And => ints!(self, build_and, a, b),
            Op::Or => ints!(self, build_or, a, b),
            Op::Xor => ints!(self, build_xor, a, b),
            Op::Shl => ints!(self, build_left_shift, a, b),
            Op::LShr => self.shift_right(false, a, b),
            Op::AShr => self.shift_right(true, a, b),
            Op::FAdd => floats!(self, build_float_add, a, b),
            Op::FSub => floats!(self, build_float_sub, a, b),
            Op::FMul => floats!(self, build_float_mul, a, b),
            Op::FDiv => floats!(self, build_float_div, a, b),
        }
    }

    fn shift_right(&self, signed: bool, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        match (a, b) {
            (V::IntValue(x), V::IntValue(y)) => Ok(self.b.build_right_shift(x, y, signed, "")?.into()),
            (V::VectorValue(x), V::VectorValue(y)) => Ok(self.b.build_right_shift(x, y, signed, "")?.into()),
            _ => Err(mixed("a shift")),
        }
    }

    /// Integer comparison.
    pub(super) fn icmp(&self, p: IntPredicate, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        match self.pair(a, b)? {
            (V::IntValue(x), V::IntValue(y)) => Ok(self.b.build_int_compare(p, x, y, "")?.into()),
            (V::VectorValue(x), V::VectorValue(y)) => Ok(self.b.build_int_compare(p, x, y, "")?.into()),
            _ => Err(mixed("a comparison")),
        }
    }

    /// Float comparison.
    pub(super) fn fcmp(&self, p: FloatPredicate, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        match self.pair(a, b)? {
            (V::FloatValue(x), V::FloatValue(y)) => Ok(self.b.build_float_compare(p, x, y, "")?.into()),
            (V::VectorValue(x), V::VectorValue(y)) => Ok(self.b.build_float_compare(p, x, y, "")?.into()),
            _ => Err(mixed("a comparison")),
        }
    }

    /// `c ? a : b`.
    pub(super) fn select(&self, c: V<'c>, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        let n = lanes(c).max(lanes(a)).max(lanes(b));
        let (a, b) = (self.splat(a, n)?, self.splat(b, n)?);
        match c {
            V::IntValue(x) => Ok(self.b.build_select(x, a, b, "")?),
            V::VectorValue(x) => Ok(self.b.build_select(x, a, b, "")?),
            _ => Err(mixed("a selection")),
        }
    }

    /// Integer to a wider or narrower (scalar) integer type.
    pub(super) fn int_cast(&self, v: V<'c>, to: T<'c>, signed: bool) -> R<V<'c>> {
        let T::IntType(t) = to else { return Err(mixed("an integer conversion")) };
        match self.width(v)?.cmp(&t.get_bit_width()) {
            std::cmp::Ordering::Equal => Ok(v),
            std::cmp::Ordering::Greater => convert!(self, build_int_truncate, IntValue, IntType, v, to),
            std::cmp::Ordering::Less if signed => {
                convert!(self, build_int_s_extend, IntValue, IntType, v, to)
            }
            std::cmp::Ordering::Less => convert!(self, build_int_z_extend, IntValue, IntType, v, to),
        }
    }

    /// Integer to a (scalar) float type.
    pub(super) fn int_to_float(&self, v: V<'c>, to: T<'c>, signed: bool) -> R<V<'c>> {
        if signed {
            convert!(self, build_signed_int_to_float, IntValue, FloatType, v, to)
        } else {
            convert!(self, build_unsigned_int_to_float, IntValue, FloatType, v, to)
        }
    }

    /// Float to a wider (scalar) float type.
    pub(super) fn float_ext(&self, v: V<'c>, to: T<'c>) -> R<V<'c>> {
        convert!(self, build_float_ext, FloatValue, FloatType, v, to)
    }

    /// Float to a narrower (scalar) float type.
    pub(super) fn float_trunc(&self, v: V<'c>, to: T<'c>) -> R<V<'c>> {
        convert!(self, build_float_trunc, FloatValue, FloatType, v, to)
    }

    /// The bits as another (scalar) type of the same width.
    pub(super) fn bitcast(&self, v: V<'c>, to: T<'c>) -> R<V<'c>> {
        Ok(self.b.build_bit_cast(v, self.widen(to, lanes(v)), "")?)
    }

    /// Flips the sign bit.
    pub(super) fn fneg(&self, v: V<'c>) -> R<V<'c>> {
        match v {
            V::FloatValue(x) => Ok(self.b.build_float_neg(x, "")?.into()),
            V::VectorValue(x) => Ok(self.b.build_float_neg(x, "")?.into()),
            _ => Err(mixed("a negation")),
        }
    }

    /// A call of an LLVM intrinsic overloaded over `types`.
    pub(super) fn call(&self, name: &str, types: &[T<'c>], args: &[V<'c>]) -> R<V<'c>> {
        let f = Intrinsic::find(name)
            .and_then(|i| i.get_declaration(&self.module, types))
            .ok_or_else(|| Fail::Llvm(format!("there is no intrinsic {name} of these types")))?;
        let args: Vec<_> = args.iter().map(|&a| a.into()).collect();
        let call = self.b.build_call(f, &args, "")?;
        call.try_as_basic_value().basic().ok_or_else(|| Fail::Llvm(format!("{name} gives no value")))
    }

    /// An intrinsic whose operands and result have one type.
    pub(super) fn same(&self, name: &str, args: &[V<'c>]) -> R<V<'c>> {
        let n = args.iter().map(|&a| lanes(a)).max().unwrap_or(1);
        let args = args.iter().map(|&a| self.splat(a, n)).collect::<R<Vec<_>>>()?;
        let t = args.first().ok_or_else(|| mixed(name))?.get_type();
        self.call(name, &[t], &args)
    }

    /// True if a lane of a mask is.
    pub(super) fn any(&self, mask: V<'c>) -> R<V<'c>> {
        match mask {
            V::VectorValue(x) => self.call("llvm.vector.reduce.or", &[x.get_type().into()], &[mask]),
            m => Ok(m),
        }
    }

    /// A vector of lanes of two vectors of one type, the second's counted after the first's.
    pub(super) fn shuffle(&self, a: V<'c>, b: V<'c>, lanes: impl Iterator<Item = u32>) -> R<V<'c>> {
        let mask: Vec<IntValue<'c>> =
            lanes.map(|l| self.ctx.i32_type().const_int(u64::from(l), false)).collect();
        match (a, b) {
            (V::VectorValue(a), V::VectorValue(b)) => {
                let mask = inkwell::types::VectorType::const_vector(&mask);
                Ok(self.b.build_shuffle_vector(a, b, mask, "")?.into())
            }
            _ => Err(mixed("a shuffle")),
        }
    }

    /// Lane `i` of a vector; a scalar itself.
    pub(super) fn lane(&self, v: V<'c>, i: u32) -> R<V<'c>> {
        match v {
            V::VectorValue(x) => {
                Ok(self.b.build_extract_element(x, self.ctx.i32_type().const_int(u64::from(i), false), "")?)
            }
            v => Ok(v),
        }
    }

    /// A vector of the given scalars; one alone is itself.
    pub(super) fn gather(&self, parts: &[V<'c>]) -> R<V<'c>> {
        let Some(&first) = parts.first() else { return Err(mixed("a vector")) };
        let T::VectorType(t) = self.widen(first.get_type(), parts.len() as u32) else { return Ok(first) };
        let mut out = t.get_poison();
        for (i, &p) in parts.iter().enumerate() {
            out = self.b.build_insert_element(out, p, self.ctx.i32_type().const_int(i as u64, false), "")?;
        }
        Ok(out.into())
    }

    /// `0, 1 .. n-1` as 64-bit lanes.
    pub(super) fn iota(&self, n: u32) -> V<'c> {
        let v: Vec<IntValue<'c>> = (0..n).map(|i| self.i64t().const_int(u64::from(i), false)).collect();
        if n == 1 { v[0].into() } else { inkwell::types::VectorType::const_vector(&v).into() }
    }

    /// Address of element `index` of an array of `t`.
    #[allow(unsafe_code)]
    pub(super) fn at(&self, t: T<'c>, p: PointerValue<'c>, index: V<'c>) -> R<PointerValue<'c>> {
        let V::IntValue(i) = index else { return Err(mixed("an address")) };
        // SAFETY: only address arithmetic without `inbounds`; what is read or written there is proved or checked by the
        // callers.
        Ok(unsafe { self.b.build_gep(t, p, &[i], "")? })
    }

    /// Reads `t`, aligned to `align` bytes only.
    pub(super) fn load(&self, t: T<'c>, p: PointerValue<'c>, align: u32) -> R<V<'c>> {
        let v = self.b.build_load(t, p, "")?;
        if let Some(i) = v.as_instruction_value() {
            i.set_alignment(align).map_err(|e| Fail::Llvm(e.to_string()))?;
        }
        Ok(v)
    }

    /// Writes `v`, aligned to `align` bytes only.
    pub(super) fn store(&self, p: PointerValue<'c>, v: V<'c>, align: u32) -> R<InstructionValue<'c>> {
        let i = self.b.build_store(p, v)?;
        i.set_alignment(align).map_err(|e| Fail::Llvm(e.to_string()))?;
        Ok(i)
    }

    /// Writes the lanes of `v` that the mask asks for, aligned to `align` bytes only.
    pub(super) fn masked_store(&self, v: V<'c>, p: V<'c>, mask: V<'c>, ptr: T<'c>, align: u32) -> R<()> {
        let f = Intrinsic::find("llvm.masked.store")
            .and_then(|i| i.get_declaration(&self.module, &[v.get_type(), ptr]))
            .ok_or_else(|| Fail::Llvm("there is no masked store of this type".into()))?;
        let call = self.b.build_call(f, &[v.into(), p.into(), mask.into()], "")?;
        call.set_alignment_attribute(inkwell::attributes::AttributeLoc::Param(1), align);
        Ok(())
    }

    /// Asks for the line of an address, for the second-level cache; the address need not exist.
    pub(super) fn prefetch(&self, p: PointerValue<'c>) -> R<()> {
        let ptr = self.ctx.ptr_type(inkwell::AddressSpace::default()).into();
        let f = Intrinsic::find("llvm.prefetch")
            .and_then(|i| i.get_declaration(&self.module, &[ptr]))
            .ok_or_else(|| Fail::Llvm("there is no prefetch".into()))?;
        let number = |n: u64| self.ctx.i32_type().const_int(n, false).into();
        self.b.build_call(f, &[p.into(), number(0), number(2), number(1)], "")?;
        Ok(())
    }

    /// A stack slot in the entry block.
    pub(super) fn slot(&self, t: T<'c>) -> R<PointerValue<'c>> {
        let here = self.here()?;
        self.b.position_at_end(self.slots);
        let p = self.b.build_alloca(t, "")?;
        self.b.position_at_end(here);
        Ok(p)
    }

    /// A stack array of `n` elements in the entry block.
    pub(super) fn slot_array(&self, t: T<'c>, n: u32) -> R<PointerValue<'c>> {
        self.slot(t.array_type(n).into())
    }

    /// A new block.
    pub(super) fn block(&self) -> BasicBlock<'c> {
        self.ctx.append_basic_block(self.func, "")
    }

    /// The block built into.
    pub(super) fn here(&self) -> R<BasicBlock<'c>> {
        self.b.get_insert_block().ok_or_else(|| Fail::Llvm("no block to build into".into()))
    }

    /// Branches on a scalar condition.
    pub(super) fn branch(&self, c: V<'c>, yes: BasicBlock<'c>, no: BasicBlock<'c>) -> R<()> {
        match (known(c), c) {
            (Some(k), _) => self.b.build_unconditional_branch(if k != 0 { yes } else { no })?,
            (None, V::IntValue(c)) => self.b.build_conditional_branch(c, yes, no)?,
            _ => return Err(mixed("a branch")),
        };
        Ok(())
    }

    /// Smaller or greater of signed scalars.
    pub(super) fn smin(&self, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        let c = self.icmp(IntPredicate::SLT, a, b)?;
        self.select(c, a, b)
    }

    /// Greater of signed scalars.
    pub(super) fn smax(&self, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        let c = self.icmp(IntPredicate::SGT, a, b)?;
        self.select(c, a, b)
    }
}

/// Something that emits into a [`Build`].
pub(super) trait Emitter<'c>: Sized {
    /// Where to.
    fn build(&self) -> &Build<'c>;

    /// Runs `body` with `i = lo, lo + step ..` below `hi`.
    fn each(
        &mut self,
        lo: V<'c>,
        hi: V<'c>,
        step: i64,
        body: &mut dyn FnMut(&mut Self, V<'c>) -> R<()>,
    ) -> R<()> {
        let before = self.build().here()?;
        let some = self.build().icmp(IntPredicate::SLT, lo, hi)?;
        if known(some) == Some(0) {
            return Ok(());
        }
        let (inside, exit) = (self.build().block(), self.build().block());
        self.build().branch(some, inside, exit)?;
        self.build().b.position_at_end(inside);
        let phi = self.build().b.build_phi(self.build().i64t(), "")?;
        body(self, phi.as_basic_value())?;
        let latch = self.build().here()?;
        let next = self.build().op(Op::Add, phi.as_basic_value(), self.build().i64(step))?;
        phi.add_incoming(&[(&lo, before), (&next, latch)]);
        let more = self.build().icmp(IntPredicate::SLT, next, hi)?;
        self.build().branch(more, inside, exit)?;
        self.build().b.position_at_end(exit);
        Ok(())
    }

    /// Runs `body` over `len` positions from `lo`: as many whole blocks of each size as fit, greatest size first. Gives the
    /// first position that is left and how many are.
    fn blocks(
        &mut self,
        lo: V<'c>,
        len: V<'c>,
        sizes: &[i64],
        body: &mut dyn FnMut(&mut Self, V<'c>, i64) -> R<()>,
    ) -> R<(V<'c>, V<'c>)> {
        let (mut from, mut left) = (lo, len);
        for &size in sizes {
            if known(left) == Some(0) {
                break;
            }
            let whole = self.whole(left, size)?;
            let to = self.build().op(Op::Add, from, whole)?;
            self.each(from, to, size, &mut |e, i| body(e, i, size))?;
            left = self.less(left, whole)?;
            from = to;
        }
        Ok((from, left))
    }

    /// The greatest multiple of `size` that is at most `n`.
    fn whole(&mut self, n: V<'c>, size: i64) -> R<V<'c>> {
        match (size, known(n)) {
            (1, _) => Ok(n),
            (s, Some(n)) => Ok(self.build().i64(n.max(0) / s * s)),
            (s, None) if s & (s - 1) == 0 => self.build().op(Op::And, n, self.build().i64(-s)),
            (s, None) => {
                let q = self.build().op(Op::UDiv, n, self.build().i64(s))?;
                self.build().op(Op::Mul, q, self.build().i64(s))
            }
        }
    }

    /// `a - b`.
    fn less(&mut self, a: V<'c>, b: V<'c>) -> R<V<'c>> {
        match (known(a), known(b)) {
            (Some(a), Some(b)) => Ok(self.build().i64(a - b)),
            _ => self.build().op(Op::Sub, a, b),
        }
    }

    /// Runs `body` where the scalar condition holds.
    fn when(&mut self, c: V<'c>, body: &mut dyn FnMut(&mut Self) -> R<()>) -> R<()> {
        let (inside, exit) = (self.build().block(), self.build().block());
        self.build().branch(c, inside, exit)?;
        self.build().b.position_at_end(inside);
        body(self)?;
        self.build().b.build_unconditional_branch(exit)?;
        self.build().b.position_at_end(exit);
        Ok(())
    }
}
