//! Fractions that a file writes as f32: the one with the smallest denominator that rounds to the number. It is what the
//! exporter meant (0.7 is 7/10, 1/3 is a third), and with it sizes and positions are exact, for symbolic sizes too.

/// `numerator / denominator`, in lowest terms, the denominator at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ratio {
    pub(super) num: i128,
    pub(super) den: i128,
}

/// Magnitudes between which numbers are taken, as powers of two: nothing sensible lies outside.
const EXPONENTS: (i32, i32) = (-24, 30);

impl Ratio {
    pub(super) fn new(num: i128, den: i128) -> Ratio {
        let g = gcd(num, den).max(1);
        Ratio { num: num / g, den: den / g }
    }

    /// The simplest fraction that rounds to `v`; None for numbers that are not finite, or too small or too large.
    pub(super) fn of(v: f32) -> Option<Ratio> {
        if v == 0.0 {
            return Some(Ratio { num: 0, den: 1 });
        }
        let m = v.abs();
        if !(m.is_finite() && m >= 2f32.powi(EXPONENTS.0) && m <= 2f32.powi(EXPONENTS.1)) {
            return None;
        }
        // half way to the neighbours; exact in f64, and exact as a multiple of 2^-60
        let (m, below, above) = (f64::from(m), f64::from(m.next_down()), f64::from(m.next_up()));
        let fixed = |x: f64| (x * 2f64.powi(60)) as i128;
        let one = 1i128 << 60;
        let (num, den) = simplest((fixed((m + below) / 2.0), one), (fixed((m + above) / 2.0), one));
        Some(Ratio { num: if v < 0.0 { -num } else { num }, den })
    }
}

/// The fraction with the smallest denominator in an interval of positive numbers, by continued fractions.
fn simplest(lo: (i128, i128), hi: (i128, i128)) -> (i128, i128) {
    let whole = lo.0 / lo.1;
    if whole * lo.1 == lo.0 {
        return (whole, 1);
    }
    if (whole + 1) * hi.1 <= hi.0 {
        return (whole + 1, 1);
    }
    let (n, d) = simplest((hi.1, hi.0 - whole * hi.1), (lo.1, lo.0 - whole * lo.1));
    (whole * n + d, n)
}

/// The greatest common divisor, not negative.
pub(super) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_fraction_that_was_meant() {
        let of = |v: f32| Ratio::of(v).map(|r| (r.num, r.den));
        assert_eq!(of(2.0), Some((2, 1)));
        assert_eq!(of(0.7), Some((7, 10)));
        assert_eq!(of(1.0 / 3.0), Some((1, 3)));
        assert_eq!(of(-0.6), Some((-3, 5)));
        assert_eq!(of(800.0 / 1333.0), Some((800, 1333)));
        assert_eq!((of(0.0), of(f32::INFINITY), of(1e-20)), (Some((0, 1)), None, None));
        for v in [std::f32::consts::PI, 0.99999994, 1.0000001, 123.456, 1e-6] {
            let r = Ratio::of(v).unwrap();
            assert_eq!((r.num as f64 / r.den as f64) as f32, v);
        }
    }
}
