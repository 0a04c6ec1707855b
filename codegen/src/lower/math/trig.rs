//! Sine and cosine. Arguments of any size are reduced by multiplying with the digits of 2/pi that matter, in pieces so
//! short that every product is exact in f64 and its part below 4 as well; the sum of these parts keeps its rounding
//! errors in a second number.

use super::Build;
use tgc_ir::scalar::{Bin, Un};
use tgc_ir::types::DType;

/// Digits 28 i .. 28 (i + 1) of the binary expansion of 2/pi (computed with 500 decimal digits).
const DIGITS28: [u32; 7] = [0xa2f9836, 0xe4e4415, 0x29fc275, 0x7d1f534, 0xddc0db6, 0x295993c, 0x439041f];

/// The same in pieces of 24.
const DIGITS24: [u32; 49] = [
    0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62, 0x95993c, 0x439041, 0xfe5163, 0xabdebb,
    0xc561b7, 0x246e3a, 0x424dd2, 0xe00649, 0x2eea09, 0xd1921c, 0xfe1deb, 0x1cb129, 0xa73ee8, 0x8235f5,
    0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41, 0x3991d6, 0x398353, 0x39f49c, 0x845f8b, 0xbdf928, 0x3b1ff8,
    0x97ffde, 0x05980f, 0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf, 0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d,
    0x7527ba, 0xc7ebe5, 0xf17b3d, 0x0739f7, 0x8a5292, 0xea6bfb, 0x5fb11f, 0x8d5d08, 0x560330,
];

/// Pieces of 24 digits that one f64 argument needs.
const WINDOW: usize = 9;

/// `(sin(x) / x - 1) / x^2` and `(cos(x) - 1 + x^2/2) / x^4` in x^2 on |x| <= pi/4: minimax fits (Remez exchange, 50
/// digits) with errors 4.9e-12 and 9.7e-11 for f32, 2.0e-21 and 4.7e-20 for f64.
const SIN32: [f64; 4] =
    [-0.1666666664143853, 0.008333329363004956, -0.00019839327252961912, 2.7182377400455947e-06];
const COS32: [f64; 3] = [0.04166664676160516, -0.0013887361622825257, 2.4437719102292134e-05];
const SIN64: [f64; 7] = [
    -0.16666666666666666,
    0.008333333333333323,
    -0.00019841269841255015,
    2.755731921416028e-06,
    -2.5052104903020715e-08,
    1.6058365452491272e-10,
    -7.578635895033804e-13,
];
const COS64: [f64; 6] = [
    0.0416666666666666,
    -0.0013888888888874001,
    2.4801587289400127e-05,
    -2.7557314327317293e-07,
    2.0875719712235783e-09,
    -1.1359455769524378e-11,
];

impl Build {
    /// The exact product `x * c` without multiples of 4.
    fn part(&mut self, x: u32, c: u32) -> u32 {
        let t = self.mul(x, c);
        let (quarter, minus4) = (self.num(x, 0.25), self.num(x, -4.0));
        let q = self.mul(t, quarter);
        let q = self.e.un(Un::Floor, q);
        self.fma(q, minus4, t)
    }

    /// `s + t` and its rounding error, whichever is greater.
    fn two_sum(&mut self, s: u32, t: u32) -> (u32, u32) {
        let r = self.add(s, t);
        let b = self.sub(r, s);
        let a = self.sub(r, b);
        let (da, db) = (self.sub(s, a), self.sub(t, b));
        (r, self.add(da, db))
    }

    /// sin or cos of `(s + rest + low) * pi/2`; s is not negative and below 128, the others are corrections.
    fn wave(&mut self, (s, rest): (u32, u32), low: u32, cos: bool, polys: (&[f64], &[f64])) -> u32 {
        let (n, bits) = self.nearest(s, 1.0);
        let r = self.sub(s, n);
        let r = self.add(r, rest);
        let r = self.add(r, low);
        let right = self.num(s, std::f64::consts::FRAC_PI_2);
        let x = self.mul(r, right);
        let z = self.mul(x, x);
        let p = self.poly(z, polys.0);
        let p = self.mul(p, z);
        let sine = self.fma(p, x, x);
        let p = self.poly(z, polys.1);
        let (one, half) = (self.num(s, 1.0), self.num(s, -0.5));
        let p = self.fma(p, z, half);
        let cosine = self.fma(p, z, one);
        let int = |b: &mut Build, v| b.int(DType::I64, v);
        let (first, second, zero) = (int(self, 1), int(self, 2), int(self, 0));
        let quadrant = if cos { self.add(bits, first) } else { bits };
        let odd = self.and(quadrant, first);
        let even = self.eq(odd, zero);
        let v = self.select(even, sine, cosine);
        let upper = self.and(quadrant, second);
        let upper = self.eq(upper, zero);
        let minus = self.neg(v);
        self.select(upper, v, minus)
    }

    /// A sine takes the argument's sign; a cosine does not.
    fn odd_sign(&mut self, v: u32, x: u32) -> u32 {
        let d = self.e.dtype(x);
        let u = if d == DType::F64 { DType::U64 } else { DType::U32 };
        let mask = self.int(u, 1 << (d.bits() - 1));
        let (a, b) = (self.e.bitcast(u, v), self.e.bitcast(u, x));
        let sign = self.and(b, mask);
        let r = self.e.bin(Bin::Xor, a, sign);
        self.e.bitcast(d, r)
    }

    pub(super) fn sin32(&mut self, x: u32, cos: bool) -> u32 {
        let a = self.abs(x);
        let a = self.e.cast(DType::F64, a);
        let zero = self.num(a, 0.0);
        let (mut sum, mut rest) = (zero, zero);
        for (i, digits) in DIGITS28.iter().enumerate() {
            let c = self.num(a, f64::from(*digits) * 2f64.powi(-28 * (i as i32 + 1)));
            let t = self.part(a, c);
            let (s, error) = self.two_sum(sum, t);
            (sum, rest) = (s, self.add(rest, error));
        }
        let v = self.wave((sum, rest), zero, cos, (&SIN32, &COS32));
        let v = self.e.cast(DType::F32, v);
        if cos { v } else { self.odd_sign(v, x) }
    }

    pub(super) fn sin64(&mut self, x: u32, cos: bool) -> u32 {
        let a = self.abs(x);
        let (window, scaled) = self.window(a);
        // 26 leading bits and the 27 others: with 24 digits of 2/pi the products are exact
        let bits = self.e.bitcast(DType::U64, scaled);
        let mask = self.int(DType::U64, i128::from(!((1u64 << 27) - 1)));
        let high = self.and(bits, mask);
        let high = self.e.bitcast(DType::F64, high);
        let low = self.sub(scaled, high);
        let zero = self.num(a, 0.0);
        let (mut sum, mut rest, mut last) = (zero, zero, zero);
        for (i, digits) in window.into_iter().enumerate() {
            let unit = self.num(a, 2f64.powi(-24 * (i as i32 + 1)));
            let c = self.mul(digits, unit);
            for x in [high, low] {
                let t = self.part(x, c);
                let (s, error) = self.two_sum(sum, t);
                let (r, error) = self.two_sum(rest, error);
                (sum, rest, last) = (s, r, self.add(last, error));
            }
        }
        let v = self.wave((sum, rest), last, cos, (&SIN64, &COS64));
        // below 2^-27 the products would underflow before they matter
        let (limit, one) = (self.num(a, 2f64.powi(-27)), self.num(a, 1.0));
        let small = self.lt(a, limit);
        let v = self.select(small, if cos { one } else { a }, v);
        if cos { v } else { self.odd_sign(v, x) }
    }

    /// The pieces of 2/pi that matter for `a` and `a` scaled to go with them: pieces before them give multiples of 4.
    fn window(&mut self, a: u32) -> (Vec<u32>, u32) {
        let int = |b: &mut Build, v| b.int(DType::I64, v);
        let bits = self.e.bitcast(DType::I64, a);
        let shift = int(self, 52);
        let exponent = self.e.bin(Bin::Shr, bits, shift);
        let bias = int(self, 1023 + 54);
        let above = self.sub(exponent, bias);
        let zero = int(self, 0);
        let above = self.e.bin(Bin::Max, above, zero);
        // division by 24, exact below 1000
        let (factor, sixteen) = (int(self, 2731), int(self, 16));
        let skip = self.mul(above, factor);
        let skip = self.e.bin(Bin::Shr, skip, sixteen);
        let mut table: Vec<u32> = DIGITS24.iter().map(|d| self.num(a, f64::from(*d))).collect();
        for bit in (0..6).rev() {
            let step = 1usize << bit;
            let mask = int(self, step as i128);
            let set = self.and(skip, mask);
            let unset = self.eq(set, zero);
            // the pieces still wanted for any smaller skip
            let wanted = WINDOW + step - 1;
            for i in 0..wanted.min(table.len()) {
                if let Some(&later) = table.get(i + step) {
                    table[i] = self.select(unset, table[i], later);
                }
            }
        }
        table.truncate(WINDOW);
        let pieces = int(self, -24);
        let down = self.mul(skip, pieces);
        let unit = self.pow2(DType::F64, down);
        (table, self.mul(a, unit))
    }
}
