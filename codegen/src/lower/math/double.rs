//! f64 functions. Every polynomial here is a minimax fit of this project: Remez exchange in 50-digit arithmetic with the
//! error weighted to be relative to the function's value; the quoted error is the fit's own.

use super::Build;
use tgc_ir::scalar::Bin;
use tgc_ir::types::DType;

/// ln 2 cut after 32 bits, so that n times it is exact, and the rest.
pub(super) const LN2_HI: f64 = 0.693_147_180_369_123_8;
pub(super) const LN2_LO: f64 = 1.908_214_929_270_587_7e-10;

/// `(e^r - 1 - r) / r^2` on |r| <= ln(2)/2; error 1.8e-17 |r|.
pub(super) const EXP: [f64; 10] = [
    0.5000000000000006,
    0.16666666666666688,
    0.0416666666665732,
    0.00833333333331387,
    0.0013888888932543156,
    0.0001984126990454657,
    2.4801504237874113e-05,
    2.755722664906741e-06,
    2.762641116864416e-07,
    2.5114871601056388e-08,
];

/// `(ln((1 + s) / (1 - s)) - 2 s) / s^3` in s^2 for (1 + s) / (1 - s) in [sqrt(1/2), sqrt(2)]; error of ln 1.3e-18.
const LOG: [f64; 7] = [
    0.6666666666666735,
    0.39999999999411967,
    0.28571428743079585,
    0.22222198492822207,
    0.18183568989761217,
    0.15313919071554621,
    0.14797382059008884,
];

/// `erf(x) / x - 1` in x^2 on |x| <= 1; error of erf 2.2e-21.
const ERF_SMALL: [f64; 14] = [
    0.1283791670955126,
    -0.37612638903183754,
    0.11283791670955119,
    -0.02686617064512972,
    0.00522397762542191,
    -0.0008548327021840396,
    0.00012055332898764054,
    -1.4925647446759402e-05,
    1.6462043021131887e-06,
    -1.636460885235954e-07,
    1.4792091782102608e-08,
    -1.2162705484909568e-09,
    8.702571587369388e-11,
    -4.220948921482886e-12,
];

/// `erfc(x) e^(x^2)` in t = (x - 2.5) / (x + 2.5) for x in [1, 6]; error of erf 2.5e-20.
const ERF_LARGE: [f64; 17] = [
    0.2108063640611436,
    -0.37173673394897333,
    0.25171319321744895,
    -0.12503305237883167,
    0.039922539075626894,
    -0.003993701165486524,
    -0.002642365965579412,
    0.0008759154327695911,
    0.0002283803771127899,
    -0.00012887683932743467,
    -3.4181710049110746e-05,
    1.861161955809284e-05,
    7.545060673758523e-06,
    -2.2890643387828912e-06,
    -1.7604454390723039e-06,
    8.524052833186213e-08,
    2.624122064031101e-07,
];

impl Build {
    /// `(r + r^2 P(r), n)` with e^x = 2^n (1 + the first), n an integer.
    fn exp_parts(&mut self, x: u32) -> (u32, u32) {
        let (n, bits) = self.nearest(x, std::f64::consts::LOG2_E);
        let (hi, lo) = (self.num(x, -LN2_HI), self.num(x, -LN2_LO));
        let r = self.fma(n, hi, x);
        let r = self.fma(n, lo, r);
        let p = self.poly(r, &EXP);
        let square = self.mul(r, r);
        (self.fma(p, square, r), bits)
    }

    /// `e^x = 2^n e^r` with |r| <= ln(2)/2; beyond the clamps the result is 0 or infinity either way.
    pub(super) fn exp64(&mut self, x: u32) -> u32 {
        let (low, high) = (self.num(x, -746.0), self.num(x, 710.0));
        let x = self.e.bin(Bin::Max, x, low);
        let x = self.e.bin(Bin::Min, x, high);
        let (p, bits) = self.exp_parts(x);
        let one = self.num(x, 1.0);
        let p = self.add(p, one);
        self.scale(p, bits)
    }

    /// A positive number as `(m - 1, k)` with m in [sqrt(1/2), sqrt(2)) and x = 2^k m; k is a float.
    pub(super) fn split64(&mut self, x: u32) -> (u32, u32) {
        let (tiny, up) = (self.num(x, f64::MIN_POSITIVE), self.num(x, 18014398509481984.0));
        let small = self.lt(x, tiny);
        let scaled = self.mul(x, up);
        let v = self.select(small, scaled, x);
        let (adjust, zero) = (self.num(x, -54.0), self.num(x, 0.0));
        let extra = self.select(small, adjust, zero);
        let bits = self.e.bitcast(DType::I64, v);
        let (base, shift) = (self.int(DType::I64, 0x3fe6_a09e_667f_3bcd), self.int(DType::I64, 52));
        let above = self.sub(bits, base);
        let k = self.e.bin(Bin::Shr, above, shift);
        let whole = self.e.bin(Bin::Shl, k, shift);
        let mantissa = self.sub(bits, whole);
        let m = self.e.bitcast(DType::F64, mantissa);
        let one = self.num(x, 1.0);
        let f = self.sub(m, one);
        let k = self.e.cast(DType::F64, k);
        (f, self.add(k, extra))
    }

    /// `ln x = k ln 2 + ln(1 + f)`, ln(1 + f) = f - (f^2/2 - s (f^2/2 + s^2 Q(s^2))) with s = f / (2 + f).
    pub(super) fn log64(&mut self, x: u32) -> u32 {
        let (f, k) = self.split64(x);
        let two = self.num(x, 2.0);
        let d = self.add(f, two);
        let s = self.div(f, d);
        let z = self.mul(s, s);
        let q = self.poly(z, &LOG);
        let q = self.mul(q, z);
        let half = self.num(x, 0.5);
        let square = self.mul(f, half);
        let square = self.mul(square, f);
        let t = self.add(square, q);
        let (hi, lo) = (self.num(x, LN2_HI), self.num(x, LN2_LO));
        let low = self.mul(k, lo);
        let t = self.fma(s, t, low);
        let t = self.sub(square, t);
        let t = self.sub(t, f);
        let t = self.neg(t);
        let r = self.fma(k, hi, t);
        self.log_edges(x, r)
    }

    /// `t / (t + 2)` with t = e^2x - 1, which keeps its digits near 0.
    pub(super) fn tanh64(&mut self, x: u32) -> u32 {
        let a = self.abs(x);
        let top = self.num(x, 22.0);
        let a = self.e.bin(Bin::Min, a, top);
        let twice = self.add(a, a);
        let (p, bits) = self.exp_parts(twice);
        let power = self.pow2(DType::F64, bits);
        let one = self.num(x, 1.0);
        let rest = self.sub(power, one);
        let t = self.fma(p, power, rest);
        let two = self.num(x, 2.0);
        let d = self.add(t, two);
        let r = self.div(t, d);
        self.copy_sign(r, x)
    }

    /// Odd polynomial up to 1, `1 - e^(-x^2) P((x - 2.5) / (x + 2.5))` above.
    pub(super) fn erf64(&mut self, x: u32) -> u32 {
        let a = self.abs(x);
        let top = self.num(x, 6.0);
        let t = self.e.bin(Bin::Min, a, top);
        let square = self.mul(t, t);
        let minus = self.neg(square);
        let e = self.exp64(minus);
        let c = self.num(x, 2.5);
        let (below, above) = (self.sub(t, c), self.add(t, c));
        let u = self.div(below, above);
        let p = self.poly(u, &ERF_LARGE);
        let tail = self.mul(e, p);
        let one = self.num(x, 1.0);
        let large = self.sub(one, tail);
        let p = self.poly(square, &ERF_SMALL);
        let small = self.fma(p, t, t);
        let near = self.lt(a, one);
        let r = self.select(near, small, large);
        self.copy_sign(r, x)
    }
}
