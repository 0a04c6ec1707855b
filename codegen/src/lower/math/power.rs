//! Float powers. f32 goes through f64; f64 carries the logarithm and its product with the exponent as pairs of numbers.

use super::Build;
use super::double::{EXP, LN2_HI, LN2_LO};
use tgc_ir::scalar::{Bin, Un};
use tgc_ir::types::DType;

/// `(ln((1 + s) / (1 - s)) - 2 s) / s^3` in s^2, as for f64 logarithms, and `(2^r - 1) / r` on |r| <= 1/2: minimax fits
/// (Remez exchange, 50 digits), errors 4.8e-12 and 4.8e-11.
const LOG: [f64; 4] = [0.6666666564200866, 0.4000033613578668, 0.2853724070175959, 0.2358355797266682];
const EXP2: [f64; 7] = [
    0.6931471805414081,
    0.24022651079550614,
    0.05550410963852195,
    0.009618036262483705,
    0.0013333429318434366,
    0.0001546734415266129,
    1.5315351669420785e-05,
];

/// The first polynomial without its first term 2/3, over s^2; error of ln 7.4e-23.
const LOG_TAIL: [f64; 8] = [
    0.3999999999999998,
    0.2857142857144518,
    0.22222222217519105,
    0.18181818872623387,
    0.15384556703178096,
    0.13336324205239214,
    0.11674675224375786,
    0.11990244483239443,
];

/// 2/3, and ln 2 cut after 42 bits, each with what is left.
const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);
const LN2: (f64, f64) = (0.6931471805598903, 5.497923018708371e-14);

impl Build {
    pub(super) fn pow32(&mut self, x: u32, y: u32) -> u32 {
        let a = self.abs(x);
        let (a, wide) = (self.e.cast(DType::F64, a), self.e.cast(DType::F64, y));
        let (f, k) = self.split64(a);
        let two = self.num(a, 2.0);
        let d = self.add(f, two);
        let s = self.div(f, d);
        let z = self.mul(s, s);
        let q = self.poly(z, &LOG);
        let q = self.mul(q, z);
        let q = self.mul(q, s);
        let l = self.fma(s, two, q);
        let ln2 = self.num(a, std::f64::consts::LN_2);
        let l = self.fma(k, ln2, l);
        let p = self.mul(l, wide);
        // beyond this f32 over- or underflows
        let (low, high) = (self.num(a, -300.0), self.num(a, 300.0));
        let p = self.e.bin(Bin::Max, p, low);
        let p = self.e.bin(Bin::Min, p, high);
        let (n, bits) = self.nearest(p, std::f64::consts::LOG2_E);
        let (log2e, minus) = (self.num(a, std::f64::consts::LOG2_E), self.neg(n));
        let r = self.fma(p, log2e, minus);
        let e = self.poly(r, &EXP2);
        let one = self.num(a, 1.0);
        let e = self.fma(e, r, one);
        let power = self.pow2(DType::F64, bits);
        let v = self.mul(e, power);
        let v = self.e.cast(DType::F32, v);
        self.pow_edges(x, y, v)
    }

    pub(super) fn pow64(&mut self, x: u32, y: u32) -> u32 {
        let a = self.abs(x);
        let (hi, lo) = self.log_pair(a);
        let p = self.mul(y, hi);
        let minus = self.neg(p);
        let rest = self.fma(y, hi, minus);
        let rest = self.fma(y, lo, rest);
        // beyond this the result is 0 or infinity, and the rest may be NaN
        let size = self.abs(p);
        let limit = self.num(x, 760.0);
        let fits = self.lt(size, limit);
        let zero = self.num(x, 0.0);
        let rest = self.select(fits, rest, zero);
        let low = self.neg(limit);
        let p = self.e.bin(Bin::Max, p, low);
        let p = self.e.bin(Bin::Min, p, limit);
        let (n, bits) = self.nearest(p, std::f64::consts::LOG2_E);
        let (ln_hi, ln_lo) = (self.num(x, -LN2_HI), self.num(x, -LN2_LO));
        let r = self.fma(n, ln_hi, p);
        let low = self.fma(n, ln_lo, rest);
        let r = self.add(r, low);
        let q = self.poly(r, &EXP);
        let square = self.mul(r, r);
        let q = self.fma(q, square, r);
        let one = self.num(x, 1.0);
        let q = self.add(q, one);
        let v = self.scale(q, bits);
        self.pow_edges(x, y, v)
    }

    /// `ln a` of a positive number as an unevaluated sum, to about 66 bits.
    fn log_pair(&mut self, a: u32) -> (u32, u32) {
        let (f, k) = self.split64(a);
        let two = self.num(a, 2.0);
        // s = f / (2 + f)
        let dh = self.add(f, two);
        let back = self.sub(dh, two);
        let dl = self.sub(f, back);
        let sh = self.div(f, dh);
        let minus = self.neg(sh);
        let r = self.fma(minus, dh, f);
        let r = self.fma(minus, dl, r);
        let sl = self.div(r, dh);
        let (zh, zl) = self.product((sh, sl), (sh, sl));
        // 2/3 + s^2 (2/5 + ..)
        let tail = self.poly(zh, &LOG_TAIL);
        let tail = self.mul(tail, zh);
        let (th, tl) = (self.num(a, TWO_THIRDS.0), self.num(a, TWO_THIRDS.1));
        let qh = self.add(th, tail);
        let ql = self.sub(th, qh);
        let ql = self.add(ql, tail);
        let ql = self.add(ql, tl);
        let cube = self.product((sh, sl), (zh, zl));
        let (ph, pl) = self.product(cube, (qh, ql));
        let (sh, sl) = (self.mul(sh, two), self.mul(sl, two));
        let hi = self.add(sh, ph);
        let lo = self.sub(sh, hi);
        let lo = self.add(lo, ph);
        let lo = self.add(lo, pl);
        let lo = self.add(lo, sl);
        // k ln 2 is 0 or the greater part
        let (ln_hi, ln_lo) = (self.num(a, LN2.0), self.num(a, LN2.1));
        let whole = self.mul(k, ln_hi);
        let sum = self.add(whole, hi);
        let error = self.sub(whole, sum);
        let error = self.add(error, hi);
        let lo = self.add(lo, error);
        (sum, self.fma(k, ln_lo, lo))
    }

    /// Product of two unevaluated sums.
    fn product(&mut self, x: (u32, u32), y: (u32, u32)) -> (u32, u32) {
        let h = self.mul(x.0, y.0);
        let minus = self.neg(h);
        let l = self.fma(x.0, y.0, minus);
        let l = self.fma(x.0, y.1, l);
        (h, self.fma(x.1, y.0, l))
    }

    /// IEEE's special cases of a power around `r`, the power of the magnitude for finite numbers above 0.
    fn pow_edges(&mut self, x: u32, y: u32, r: u32) -> u32 {
        let c = |b: &mut Build, v: f64| b.num(x, v);
        let (zero, one, inf, nan) = (c(self, 0.0), c(self, 1.0), c(self, f64::INFINITY), c(self, f64::NAN));
        let (a, size) = (self.abs(x), self.abs(y));
        let (down, up) = (self.lt(y, zero), self.lt(zero, y));
        // bases 0 and infinity, then infinite exponents
        let at_zero = self.select(down, inf, zero);
        let at_inf = self.select(down, zero, inf);
        let is_zero = self.eq(a, zero);
        let r = self.select(is_zero, at_zero, r);
        let base_inf = self.eq(a, inf);
        let r = self.select(base_inf, at_inf, r);
        let (below, above) = (self.lt(a, one), self.lt(one, a));
        let (g1, g2) = (self.and(below, down), self.and(above, up));
        let grows = self.or(g1, g2);
        let extreme = self.select(grows, inf, zero);
        let unit = self.eq(a, one);
        let extreme = self.select(unit, one, extreme);
        let endless = self.eq(size, inf);
        let r = self.select(endless, extreme, r);
        // negative bases
        let floor = self.e.un(Un::Floor, y);
        let whole = self.eq(floor, y);
        let half = c(self, 0.5);
        let halved = self.mul(y, half);
        let floor = self.e.un(Un::Floor, halved);
        let even = self.eq(floor, halved);
        let uneven = self.not(even);
        let odd = self.and(whole, uneven);
        let signed = self.copy_sign(r, x);
        let r = self.select(odd, signed, r);
        let (negative, finite) = (self.lt(x, zero), self.lt(a, inf));
        let (fraction, bad) = (self.not(whole), self.and(negative, finite));
        let bad = self.and(bad, fraction);
        let r = self.select(bad, nan, r);
        // NaN, unless the other operand decides alone
        let (nx, ny) = (self.e.un(Un::IsNan, x), self.e.un(Un::IsNan, y));
        let missing = self.or(nx, ny);
        let r = self.select(missing, nan, r);
        let (flat, start) = (self.eq(y, zero), self.eq(x, one));
        let decided = self.or(flat, start);
        self.select(decided, one, r)
    }
}
