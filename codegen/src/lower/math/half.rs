//! f16 and bf16: computed in f32 (f64 for fma) and rounded once. Conversions that no target has are integer work.

use super::{Build, Unsupported};
use tgc_ir::scalar::{Bin, Un};
use tgc_ir::types::DType;

impl Build {
    pub(super) fn half_unary(&mut self, op: Un, d: DType, a: u32) -> Result<u32, Unsupported> {
        if matches!(op, Un::Neg | Un::Abs) {
            let bits = self.e.bitcast(DType::U16, a);
            let (op, mask) = if op == Un::Neg { (Bin::Xor, 0x8000) } else { (Bin::And, 0x7fff) };
            let mask = self.int(DType::U16, mask);
            let bits = self.e.bin(op, bits, mask);
            return Ok(self.e.bitcast(d, bits));
        }
        let x = self.widen(d, a);
        let r = match op {
            Un::Exp | Un::Log | Un::Tanh | Un::Erf | Un::Sin | Un::Cos => self.unary(op, DType::F32, x)?,
            _ => self.e.un(op, x),
        };
        Ok(if op == Un::IsNan { r } else { self.narrow(d, r) })
    }

    pub(super) fn half_binary(&mut self, op: Bin, d: DType, x: u32, y: u32) -> Result<u32, Unsupported> {
        let (a, b) = (self.widen(d, x), self.widen(d, y));
        let r = match op {
            Bin::Pow | Bin::Rem | Bin::Mod => self.binary(op, DType::F32, a, b)?,
            _ => self.e.bin(op, a, b),
        };
        Ok(if matches!(op, Bin::Eq | Bin::Lt | Bin::Le) { r } else { self.narrow(d, r) })
    }

    pub(super) fn half_fma(&mut self, d: DType, x: u32, y: u32, z: u32) -> u32 {
        let [x, y, z] = [x, y, z].map(|a| {
            let a = self.widen(d, a);
            self.e.cast(DType::F64, a)
        });
        let r = self.fma(x, y, z);
        self.half_cast(DType::F64, d, r)
    }

    /// A cast from or to a 16-bit float.
    pub(super) fn half_cast(&mut self, from: DType, to: DType, a: u32) -> u32 {
        if matches!(from, DType::F16 | DType::BF16) {
            let x = self.widen(from, a);
            return match to {
                DType::F16 | DType::BF16 => self.narrow(to, x),
                _ => self.e.cast(to, x),
            };
        }
        let x = match from {
            DType::F32 => a,
            DType::F64 => self.odd_single(a),
            _ if from.bits() <= 16 => self.e.cast(DType::F32, a),
            _ => {
                let x = self.e.cast(DType::F64, a);
                self.odd_single(x)
            }
        };
        self.narrow(to, x)
    }

    /// To f32, exactly.
    fn widen(&mut self, d: DType, a: u32) -> u32 {
        if d == DType::F16 {
            return self.e.cast(DType::F32, a);
        }
        let bits = self.e.bitcast(DType::U16, a);
        let bits = self.e.cast(DType::U32, bits);
        let shift = self.int(DType::U32, 16);
        let bits = self.e.bin(Bin::Shl, bits, shift);
        self.e.bitcast(DType::F32, bits)
    }

    /// From f32, half to even.
    fn narrow(&mut self, d: DType, x: u32) -> u32 {
        if d == DType::F16 {
            return self.e.cast(DType::F16, x);
        }
        let bits = self.e.bitcast(DType::U32, x);
        let c = |b: &mut Build, v: i128| b.int(DType::U32, v);
        let (sixteen, one, bias) = (c(self, 16), c(self, 1), c(self, 0x7fff));
        let high = self.e.bin(Bin::Shr, bits, sixteen);
        let odd = self.and(high, one);
        let sum = self.add(bits, bias);
        let sum = self.add(sum, odd);
        let sum = self.e.bin(Bin::Shr, sum, sixteen);
        let quiet = c(self, 0x7fc0);
        let nan = self.e.un(Un::IsNan, x);
        let sum = self.select(nan, quiet, sum);
        let sum = self.e.cast(DType::U16, sum);
        self.e.bitcast(DType::BF16, sum)
    }

    /// f64 to f32 such that a second rounding to 16 bits gives what rounding at once gives: inexact results are odd.
    fn odd_single(&mut self, v: u32) -> u32 {
        let r = self.e.cast(DType::F32, v);
        let back = self.e.cast(DType::F64, r);
        let bits = self.e.bitcast(DType::U32, r);
        let one = self.int(DType::U32, 1);
        let (down, up) = (self.sub(bits, one), self.add(bits, one));
        let (size, was) = (self.abs(back), self.abs(v));
        let above = self.lt(was, size);
        let other = self.select(above, down, up);
        let zero = self.int(DType::U32, 0);
        let last = self.and(bits, one);
        let even = self.eq(last, zero);
        // NaN compares unequal to itself in both orders and stays
        let (less, more) = (self.lt(v, back), self.lt(back, v));
        let inexact = self.or(less, more);
        let fix = self.and(even, inexact);
        let bits = self.select(fix, other, bits);
        self.e.bitcast(DType::F32, bits)
    }
}
