//! Integer powers, float remainders, and moves between a float's parts.

use super::Build;
use tgc_ir::scalar::{Bin, Un};
use tgc_ir::types::DType;

/// Steps of a f32 remainder: quotients reach 2^277, each step takes 28 bits.
const REM_STEPS: i32 = 10;

impl Build {
    /// `x^y` by squaring, wrapping; a negative exponent gives the truncated reciprocal.
    pub(super) fn int_pow(&mut self, d: DType, x: u32, y: u32) -> u32 {
        let (zero, one) = (self.int(d, 0), self.int(d, 1));
        let (mut r, mut base) = (one, x);
        for i in 0..d.bits() {
            let shift = self.int(d, i128::from(i));
            let bit = self.e.bin(Bin::Shr, y, shift);
            let bit = self.and(bit, one);
            let even = self.eq(bit, zero);
            let times = self.mul(r, base);
            r = self.select(even, r, times);
            base = self.mul(base, base);
        }
        if !d.is_signed() {
            return r;
        }
        let minus = self.int(d, -1);
        let odd = self.and(y, one);
        let even = self.eq(odd, zero);
        let sign = self.select(even, one, minus);
        let (is_one, is_minus) = (self.eq(x, one), self.eq(x, minus));
        let other = self.select(is_minus, sign, zero);
        let reciprocal = self.select(is_one, one, other);
        let negative = self.lt(y, zero);
        self.select(negative, reciprocal, r)
    }

    /// C's `fmod` on f32, exact: long division in f64, 28 bits of the quotient a step.
    pub(super) fn rem32(&mut self, x: u32, y: u32) -> u32 {
        let (ax, ay) = (self.abs(x), self.abs(y));
        let (mut r, b) = (self.e.cast(DType::F64, ax), self.e.cast(DType::F64, ay));
        for i in (0..REM_STEPS).rev() {
            let scale = self.num(b, 2f64.powi(28 * i));
            let part = self.mul(b, scale);
            let q = self.div(r, part);
            let q = self.e.un(Un::Floor, q);
            let q = self.neg(q);
            r = self.fma(q, part, r);
            // the rounded quotient may be one too great, or one too small
            let zero = self.num(r, 0.0);
            let below = self.lt(r, zero);
            let up = self.add(r, part);
            r = self.select(below, up, r);
            let fits = self.lt(r, part);
            let down = self.sub(r, part);
            r = self.select(fits, r, down);
        }
        let r = self.e.cast(DType::F32, r);
        let r = self.copy_sign(r, x);
        let inf = self.num(x, f64::INFINITY);
        let nan = self.num(x, f64::NAN);
        let whole = self.eq(ay, inf);
        let finite = self.lt(ax, inf);
        let r = self.select(whole, x, r);
        // also for a divisor of 0, where the steps leave NaN
        let r = self.select(finite, r, nan);
        let missing = self.e.un(Un::IsNan, y);
        self.select(missing, nan, r)
    }

    /// Remainder of floored division on f32.
    pub(super) fn mod32(&mut self, x: u32, y: u32) -> u32 {
        let r = self.rem32(x, y);
        let zero = self.num(x, 0.0);
        let (a, b) = (self.lt(r, zero), self.lt(y, zero));
        let differ = self.e.bin(Bin::Xor, a, b);
        let shifted = self.add(r, y);
        let moved = self.select(differ, shifted, r);
        let exact = self.eq(r, zero);
        let signed = self.copy_sign(r, y);
        self.select(exact, signed, moved)
    }

    /// The magnitude of `x` (not negative) with the sign bit of `sign`.
    pub(super) fn copy_sign(&mut self, x: u32, sign: u32) -> u32 {
        let d = self.e.dtype(x);
        let u = if d == DType::F64 { DType::U64 } else { DType::U32 };
        let mask = self.int(u, 1 << (d.bits() - 1));
        let rest = self.int(u, (1 << (d.bits() - 1)) - 1);
        let (a, b) = (self.e.bitcast(u, x), self.e.bitcast(u, sign));
        let (a, b) = (self.and(a, rest), self.and(b, mask));
        let r = self.or(a, b);
        self.e.bitcast(d, r)
    }

    /// `2^n` for integer n of the float's width whose power is a normal number.
    pub(super) fn pow2(&mut self, d: DType, n: u32) -> u32 {
        let i = self.e.dtype(n);
        let (bias, shift) = if d == DType::F64 { (1023, 52) } else { (127, 23) };
        let (bias, shift) = (self.int(i, bias), self.int(i, shift));
        let biased = self.add(n, bias);
        let bits = self.e.bin(Bin::Shl, biased, shift);
        self.e.bitcast(d, bits)
    }

    /// `p * 2^n` in two exact steps and one rounding, for |n| up to twice the exponent range.
    pub(super) fn scale(&mut self, p: u32, n: u32) -> u32 {
        let d = self.e.dtype(p);
        let i = self.e.dtype(n);
        let one = self.int(i, 1);
        let half = self.e.bin(Bin::Shr, n, one);
        let rest = self.sub(n, half);
        let (a, b) = (self.pow2(d, half), self.pow2(d, rest));
        let p = self.mul(p, a);
        self.mul(p, b)
    }

    /// `x / step` rounded to an integer, as float and as the float's bits' integer type: adding 1.5 * 2^mantissa rounds.
    pub(super) fn nearest(&mut self, x: u32, per_step: f64) -> (u32, u32) {
        let d = self.e.dtype(x);
        let (magic, i) =
            if d == DType::F64 { (6755399441055744.0, DType::I64) } else { (12582912.0, DType::I32) };
        let (magic, factor) = (self.num(x, magic), self.num(x, per_step));
        let t = self.fma(x, factor, magic);
        let n = self.sub(t, magic);
        let (tb, mb) = (self.e.bitcast(i, t), self.e.bitcast(i, magic));
        (n, self.sub(tb, mb))
    }
}
