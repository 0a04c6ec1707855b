//! Accuracy classes with their numbers, in one place: how far a correct result may be from the reference, and the
//! comparison that says so. No evaluation happens here.

use crate::scalar::Un;
use crate::tensor::Tensor;
use crate::types::DType;
use std::fmt;

/// Factor of the statistical bound on a sum. Roundings of a chain behave like a random walk whose standard deviation
/// is at most `sqrt(k)/3 * eps * sum|terms|` (uniform roundings, partial sums growing linearly); 4 leaves room for
/// twelve of them, and short or correlated chains are covered by the ceiling `k * eps * sum|terms|`.
pub(crate) const SUM_FACTOR: f64 = 4.0;

/// Units in the last place a function may be off in type `d`; 0 for exact ones (one correct rounding). f16 and bf16
/// are computed in f32 and rounded once, so they are within one.
pub fn ulps(op: Un, d: DType) -> f64 {
    let n = match op {
        Un::Exp | Un::Log | Un::Tanh | Un::Erf | Un::Sin | Un::Cos => 2.0,
        Un::Neg | Un::Abs | Un::Sqrt | Un::Floor | Un::Ceil | Un::Round | Un::Trunc | Un::Not | Un::IsNan => {
            return 0.0;
        }
    };
    scale_ulps(n, d)
}

/// Units in the last place a power may be off.
pub(crate) fn pow_ulps(d: DType) -> f64 {
    scale_ulps(2.0, d)
}

fn scale_ulps(f32_ulps: f64, d: DType) -> f64 {
    match d {
        DType::F64 => 2.0 * f32_ulps,
        DType::F32 => f32_ulps,
        _ => 1.0,
    }
}

/// Size of one unit in the last place at `r`, rounded up: `2 eps |r|`, at least the smallest denormal.
pub(crate) fn ulp_at(d: DType, r: f64) -> f64 {
    (2.0 * d.epsilon() * r.abs()).max(smallest(d))
}

/// Smallest positive value of a float type; 0 for others.
pub(crate) fn smallest(d: DType) -> f64 {
    match d {
        DType::F64 => f64::from_bits(1),
        DType::F32 => f64::from(f32::from_bits(1)),
        DType::F16 => 2f64.powi(-24),
        DType::BF16 => 2f64.powi(-133),
        _ => 0.0,
    }
}

/// Allowed distance of a sum of `k` terms (those that are zero need not be counted) accumulated in `acc` from the exact one: `c sqrt(k) eps sum|terms|`, at most
/// `k eps sum|terms|`.
pub(crate) fn sum_bound(k: usize, acc: DType, sum_abs: f64) -> f64 {
    let k = k as f64;
    // the reference itself accumulates in f64, which only shows when that is the accumulator's own type
    let eps = acc.epsilon() + DType::F64.epsilon();
    if sum_abs == 0.0 || !acc.is_float() {
        return 0.0;
    }
    (SUM_FACTOR * k.sqrt()).min(k) * eps * sum_abs + k * smallest(acc)
}

/// Smallest positive number of a float type that has its full precision.
pub(crate) fn normal(d: DType) -> f64 {
    match d {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 2f64.powi(-14),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Greatest finite value of a float type.
pub(crate) fn greatest(d: DType) -> f64 {
    match d {
        DType::F64 => f64::MAX,
        DType::F32 => f64::from(f32::MAX),
        DType::F16 => 65504.0,
        DType::BF16 => f64::from(half::bf16::MAX),
        _ => f64::INFINITY,
    }
}

/// The worst element of a comparison that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// What is wrong with the tensors as a whole, when no element can be compared.
    pub whole: Option<String>,
    /// Index of the worst element on each axis.
    pub index: Vec<usize>,
    /// What was found there.
    pub got: f64,
    /// What is right.
    pub want: f64,
    /// How far it may be off.
    pub allowed: f64,
    /// Number of elements that are off.
    pub count: usize,
    /// Number of elements.
    pub of: usize,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(w) = &self.whole {
            return f.write_str(w);
        }
        write!(
            f,
            "{} of {} elements are off; worst at {:?}: got {:?}, want {:?}, difference {:.3e}, allowed {:.3e}",
            self.count,
            self.of,
            self.index,
            self.got,
            self.want,
            (self.got - self.want).abs(),
            self.allowed
        )
    }
}

/// Compares element by element: `|got - want| <= bound` (an empty bound is zero everywhere). NaN equals NaN, infinity
/// itself; an infinity is also right where the bound reaches beyond the type's greatest number. Integers, bool and
/// storage types compare exactly where the bound is below 1. Errs with the worst element.
pub fn within(got: &Tensor, want: &Tensor, bound: &[f64]) -> Result<(), Box<Mismatch>> {
    let mut worst = Mismatch {
        whole: None,
        index: vec![],
        got: 0.0,
        want: 0.0,
        allowed: 0.0,
        count: 0,
        of: want.numel(),
    };
    if got.dtype != want.dtype || got.shape != want.shape {
        let show = |t: &Tensor| format!("{}{:?}", t.dtype, t.shape);
        worst.whole = Some(format!("got a tensor {}, want {}", show(got), show(want)));
        return Err(Box::new(worst));
    }
    if !bound.is_empty() && bound.len() != want.numel() {
        worst.whole = Some(format!("{} bounds for {} elements", bound.len(), want.numel()));
        return Err(Box::new(worst));
    }
    let top = greatest(want.dtype);
    let (mut at, mut excess) = (0, -1.0);
    for i in 0..want.numel() {
        let (g, w) = (got.get(i), want.get(i));
        let allowed = bound.get(i).copied().unwrap_or(0.0);
        if g == w || allowed == f64::INFINITY {
            continue;
        }
        let (gv, wv) = (g.as_f64(), w.as_f64());
        let beyond = gv.is_infinite() && wv.is_finite() && (wv + allowed.copysign(gv)).abs() >= top;
        // 64-bit integers that differ may be equal as f64
        let diff = match (g.as_int(), w.as_int()) {
            (Some(a), Some(b)) => (a - b).unsigned_abs() as f64,
            _ if !g.dtype.is_float() => f64::INFINITY,
            _ => (gv - wv).abs(),
        };
        if diff <= allowed || beyond {
            continue;
        }
        worst.count += 1;
        let ratio = if diff.is_nan() || diff.is_infinite() {
            f64::INFINITY
        } else {
            diff / allowed.max(f64::MIN_POSITIVE)
        };
        if ratio > excess {
            (at, excess) = (i, ratio);
            (worst.got, worst.want, worst.allowed) = (gv, wv, allowed);
        }
    }
    if worst.count == 0 {
        return Ok(());
    }
    worst.index = vec![0; want.shape.len()];
    for (x, &d) in worst.index.iter_mut().zip(&want.shape).rev() {
        *x = at % d.max(1);
        at /= d.max(1);
    }
    Err(Box::new(worst))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(v: &[f64]) -> Tensor {
        Tensor::from_f64(DType::F32, &[v.len()], v)
    }

    #[test]
    fn comparing_names_the_worst_element() {
        let e = within(&t(&[1.0, 2.5, 3.0]), &t(&[1.0, 2.0, 3.1]), &[0.0, 0.1, 0.09]).unwrap_err();
        assert_eq!((e.index.clone(), e.count, e.got, e.want), (vec![1], 2, 2.5, 2.0));
        assert!(e.to_string().contains("worst at [1]: got 2.5, want 2.0"), "{e}");
        assert!(within(&t(&[1.0, 2.5]), &t(&[1.0, 2.0]), &[0.0, 0.5]).is_ok());
        assert!(within(&t(&[1.0]), &t(&[1.0, 2.0]), &[]).is_err());
    }

    #[test]
    fn specials_compare_as_the_rules_say() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        assert!(within(&t(&[nan, inf, -inf]), &t(&[nan, inf, -inf]), &[]).is_ok());
        assert!(within(&t(&[nan]), &t(&[1.0]), &[1e30]).is_err());
        assert!(within(&t(&[1.0]), &t(&[nan]), &[1e30]).is_err());
        assert!(within(&t(&[nan]), &t(&[1.0]), &[inf]).is_ok());
        assert!(within(&t(&[-inf]), &t(&[inf]), &[1e30]).is_err());
        let max = f64::from(f32::MAX);
        assert!(within(&t(&[inf]), &t(&[max]), &[1e32]).is_ok());
        assert!(within(&t(&[-inf]), &t(&[max]), &[1e32]).is_err());
        assert!(within(&t(&[inf]), &t(&[1.0]), &[1e32]).is_err());
        assert!(within(&t(&[0.0]), &t(&[-0.0]), &[]).is_ok());
        let i = |v: i64| Tensor::from_ints(DType::I64, &[1], &[v]);
        assert!(within(&i(i64::MAX), &i(i64::MAX - 1), &[0.5]).is_err());
    }

    #[test]
    fn sums_use_the_smaller_of_walk_and_ceiling() {
        let eps = DType::F32.epsilon();
        assert!(sum_bound(4, DType::F32, 1.0) <= 4.0 * eps * 1.001);
        let long = sum_bound(10_000, DType::F32, 1.0);
        assert!(long > 399.0 * eps && long < 401.0 * eps, "{long}");
        assert_eq!(sum_bound(10, DType::I32, 5.0), 0.0);
    }
}
