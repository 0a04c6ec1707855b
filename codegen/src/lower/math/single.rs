//! f32 functions in f32 arithmetic. Every polynomial here is a minimax fit of this project: Remez exchange in 50-digit
//! arithmetic with the error weighted to be relative to the function's value; the quoted error is the fit's own.

use super::Build;
use tgc_ir::scalar::{Bin, Un};
use tgc_ir::types::DType;

/// ln 2 in two parts; n times the first is exact for the n that occur.
const LN2_HI: f64 = 0.693_145_751_953_125;
const LN2_LO: f64 = 1.428_606_820_309_417e-6;

/// `(e^r - 1 - r) / r^2` on |r| <= ln(2)/2; error of e^r 3.1e-9.
const EXP: [f64; 5] = [4.999999343e-1, 1.666652040e-1, 4.166839032e-2, 8.368744962e-3, 1.381456888e-3];

/// `(ln(1 + f) - f) / f^2` on |f| <= 1/3; error of ln 4.5e-9.
const LOG: [f64; 9] = [
    -5.000000122e-1,
    3.333320883e-1,
    -2.499971569e-1,
    2.001072656e-1,
    -1.668235549e-1,
    1.400145142e-1,
    -1.216663277e-1,
    1.400356060e-1,
    -1.295083617e-1,
];

/// `(tanh(x) - x) / x^3` in x^2 on |x| < 0.626; error of tanh 1.6e-10.
const TANH: [f64; 6] =
    [-3.333333076e-1, 1.333320414e-1, -5.394651182e-2, 2.169924795e-2, -8.173623639e-3, 2.139360732e-3];

/// `erf(x) / x - 1` in x^2 on |x| < 0.93; error of erf 4.6e-10.
const ERF_SMALL: [f64; 7] = [
    1.283791666e-1,
    -3.761263319e-1,
    1.128368723e-1,
    -2.685894277e-2,
    5.199908241e-3,
    -8.130018934e-4,
    8.316768991e-5,
];

/// `-ln(erfc(t)) / t - 1` on 0.92 <= t <= 3.95; error of erf 2.0e-10.
const ERF_LARGE: [f64; 8] = [
    1.285551196e-1,
    6.356092893e-1,
    1.052944209e-1,
    -2.270827877e-2,
    2.951663534e-3,
    -5.751170954e-5,
    -4.399987151e-5,
    4.806434103e-6,
];

impl Build {
    /// `e^x = 2^n e^r` with |r| <= ln(2)/2; beyond the clamps the result is 0 or infinity either way.
    pub(super) fn exp32(&mut self, x: u32) -> u32 {
        let (low, high) = (self.num(x, -104.0), self.num(x, 89.0));
        let x = self.e.bin(Bin::Max, x, low);
        let x = self.e.bin(Bin::Min, x, high);
        let (n, bits) = self.nearest(x, std::f64::consts::LOG2_E);
        let (hi, lo) = (self.num(x, -LN2_HI), self.num(x, -LN2_LO));
        let r = self.fma(n, hi, x);
        let r = self.fma(n, lo, r);
        let p = self.poly(r, &EXP);
        let square = self.mul(r, r);
        let p = self.fma(p, square, r);
        let one = self.num(x, 1.0);
        let p = self.add(p, one);
        self.scale(p, bits)
    }

    /// `ln x = e ln 2 + ln(1 + f)` with 1 + f in [2/3, 4/3).
    pub(super) fn log32(&mut self, x: u32) -> u32 {
        let (tiny, up) = (self.num(x, f64::from(f32::MIN_POSITIVE)), self.num(x, 8388608.0));
        let small = self.lt(x, tiny);
        let scaled = self.mul(x, up);
        let v = self.select(small, scaled, x);
        let (adjust, zero) = (self.num(x, -23.0), self.num(x, 0.0));
        let extra = self.select(small, adjust, zero);
        let bits = self.e.bitcast(DType::I32, v);
        let (base, shift) = (self.int(DType::I32, 0x3f2a_aaab), self.int(DType::I32, 23));
        let above = self.sub(bits, base);
        let e = self.e.bin(Bin::Shr, above, shift);
        let whole = self.e.bin(Bin::Shl, e, shift);
        let mantissa = self.sub(bits, whole);
        let m = self.e.bitcast(DType::F32, mantissa);
        let one = self.num(x, 1.0);
        let f = self.sub(m, one);
        let e = self.e.cast(DType::F32, e);
        let e = self.add(e, extra);
        let p = self.poly(f, &LOG);
        let square = self.mul(f, f);
        let p = self.fma(p, square, f);
        let ln2 = self.num(x, std::f64::consts::LN_2);
        let r = self.fma(e, ln2, p);
        self.log_edges(x, r)
    }

    /// The values of a logarithm at 0, below 0, infinity and NaN around its value `r` elsewhere.
    pub(super) fn log_edges(&mut self, x: u32, r: u32) -> u32 {
        let (zero, inf, nan) = (self.num(x, 0.0), self.num(x, f64::INFINITY), self.num(x, f64::NAN));
        let minus = self.num(x, f64::NEG_INFINITY);
        let finite = self.lt(x, inf);
        let r = self.select(finite, r, x);
        let is_zero = self.eq(x, zero);
        let r = self.select(is_zero, minus, r);
        let negative = self.lt(x, zero);
        self.select(negative, nan, r)
    }

    /// Odd polynomial near 0, `1 - 2 / (e^2x + 1)` elsewhere.
    pub(super) fn tanh32(&mut self, x: u32) -> u32 {
        let a = self.abs(x);
        let top = self.num(x, 10.0);
        let t = self.e.bin(Bin::Min, a, top);
        let twice = self.add(t, t);
        let e = self.exp32(twice);
        let (one, two) = (self.num(x, 1.0), self.num(x, 2.0));
        let d = self.add(e, one);
        let q = self.div(two, d);
        let large = self.sub(one, q);
        let square = self.mul(a, a);
        let p = self.poly(square, &TANH);
        let p = self.mul(p, square);
        let small = self.fma(p, a, a);
        let limit = self.num(x, 0.625);
        let near = self.lt(a, limit);
        let r = self.select(near, small, large);
        self.copy_sign(r, x)
    }

    /// Odd polynomial near 0, `1 - e^-u` elsewhere.
    pub(super) fn erf32(&mut self, x: u32) -> u32 {
        let a = self.abs(x);
        let top = self.num(x, 3.94);
        let t = self.e.bin(Bin::Min, a, top);
        let q = self.poly(t, &ERF_LARGE);
        let u = self.fma(q, t, t);
        let u = self.e.un(Un::Neg, u);
        let e = self.exp32(u);
        let one = self.num(x, 1.0);
        let large = self.sub(one, e);
        let square = self.mul(a, a);
        let p = self.poly(square, &ERF_SMALL);
        let small = self.fma(p, a, a);
        let limit = self.num(x, 0.925);
        let near = self.lt(a, limit);
        let r = self.select(near, small, large);
        self.copy_sign(r, x)
    }
}
