//! Lowered programs against references in wider arithmetic: strided sweeps over all f32 and random arguments.

use super::*;
use tgc_ir::scalar::{cast, eval_bin, eval_fma, eval_un, float_un};

fn unary(op: Un, d: DType) -> Expr {
    let mut e = Expr::default();
    let x = e.arg(0, d);
    e.roots = vec![e.un(op, x)];
    lower_math(&e).unwrap()
}

fn binary(op: Bin, d: DType) -> Expr {
    let mut e = Expr::default();
    let (x, y) = (e.arg(0, d), e.arg(1, d));
    e.roots = vec![e.bin(op, x, y)];
    lower_math(&e).unwrap()
}

fn at(e: &Expr, args: &[Scalar]) -> Scalar {
    e.eval(&|i| args[i as usize], &|_| None).unwrap()[0]
}

/// A lowered f32 program as plain code, for sweeps.
fn f32_at(e: &Expr, regs: &mut Vec<u64>, x: f32) -> f32 {
    regs.clear();
    for (node, d) in &e.nodes {
        let v = |i: u32| Scalar { dtype: e.dtype(i), bits: regs[i as usize] };
        let f = |i: u32| f32::from_bits(regs[i as usize] as u32);
        let r = match node {
            ENode::Arg(_) => u64::from(x.to_bits()),
            ENode::Const(s) => s.bits,
            ENode::Un(op, a) => eval_un(*op, v(*a)).bits,
            ENode::Bin(Bin::Mul, a, b) if *d == DType::F32 => u64::from((f(*a) * f(*b)).to_bits()),
            ENode::Bin(Bin::Add, a, b) if *d == DType::F32 => u64::from((f(*a) + f(*b)).to_bits()),
            ENode::Bin(op, a, b) => eval_bin(*op, v(*a), v(*b)).bits,
            ENode::Fma(a, b, c) => eval_fma(v(*a), v(*b), v(*c)).bits,
            ENode::Select(c, a, b) => {
                if regs[*c as usize] & 1 == 1 {
                    regs[*a as usize]
                } else {
                    regs[*b as usize]
                }
            }
            ENode::Cast(a) => cast(*d, v(*a)).bits,
            ENode::Bitcast(a) => regs[*a as usize],
            ENode::Dim(_) => 0,
        };
        regs.push(r);
    }
    f32::from_bits(regs[e.roots[0] as usize] as u32)
}

/// Distance of `got` from the exact `want` in units of the last place of the f32 (subnormals: of the smallest).
fn ulps(got: f32, want: f64) -> f64 {
    let near = want as f32;
    if got.is_nan() || near.is_nan() {
        return if got.is_nan() && near.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got.is_infinite() || near.is_infinite() {
        return if got == near { 0.0 } else { f64::INFINITY };
    }
    let exponent = (near.abs().max(f32::MIN_POSITIVE).to_bits() >> 23) as i32 - 127;
    (f64::from(got) - want).abs() / 2f64.powi(exponent - 23)
}

fn sweep(op: Un, limit: f64) {
    let e = unary(op, DType::F32);
    assert_eq!(unlowered(&e), None);
    let (mut worst, mut where_) = (0.0, 0f32);
    let mut regs = Vec::new();
    let mut check = |x: f32| {
        let got = f32_at(&e, &mut regs, x);
        let u = ulps(got, float_un(op, f64::from(x)));
        if u > worst {
            (worst, where_) = (u, x);
        }
        if x == 0.0 && !matches!(op, Un::Exp | Un::Log | Un::Cos) {
            assert_eq!(got.to_bits(), x.to_bits(), "{op:?} keeps the sign of zero");
        }
    };
    // every sign, exponent and leading mantissa bit pattern
    for high in 0..=0xffffu32 {
        check(f32::from_bits(high << 16 | (high.wrapping_mul(0x9e37) & 0xffff)));
    }
    for i in 0..40_000 {
        check((i as f32 - 20_000.0) * 6.1725e-4);
    }
    println!("{op:?} f32: {worst:.3} ulp at {where_:e}");
    assert!(worst <= limit, "{op:?}: {worst} ulp at {where_:e} ({:x})", where_.to_bits());
}

#[test]
fn exp_of_f32() {
    sweep(Un::Exp, 1.5);
}

#[test]
fn log_of_f32() {
    sweep(Un::Log, 1.5);
}

#[test]
fn tanh_of_f32() {
    sweep(Un::Tanh, 2.0);
}

#[test]
fn erf_of_f32() {
    sweep(Un::Erf, 2.0);
}

#[test]
fn integer_powers_follow_the_table() {
    for d in [DType::I32, DType::I64, DType::U8, DType::I16] {
        let e = binary(Bin::Pow, d);
        assert_eq!(unlowered(&e), None);
        for a in [-3i128, -2, -1, 0, 1, 2, 7, 100] {
            for b in [-5i128, -2, -1, 0, 1, 2, 3, 31, 63, 64] {
                let (x, y) = (Scalar::from_int(d, a), Scalar::from_int(d, b));
                assert_eq!(at(&e, &[x, y]), eval_bin(Bin::Pow, x, y), "{d} {a}^{b}");
            }
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn remainders_are_exact() {
    let mut s = 1;
    let special =
        [0.0f32, -0.0, 1.0, -1.0, 3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX, 0.1];
    for op in [Bin::Rem, Bin::Mod] {
        let e = binary(op, DType::F32);
        assert_eq!(unlowered(&e), None);
        let check = |a: f32, b: f32| {
            let [x, y] = [a, b].map(|v| Scalar { dtype: DType::F32, bits: u64::from(v.to_bits()) });
            assert_eq!(at(&e, &[x, y]), eval_bin(op, x, y), "{op:?} {a:e} {b:e}");
        };
        special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
        for _ in 0..5000 {
            check(f32::from_bits(random(&mut s) as u32), f32::from_bits(random(&mut s) as u32));
            let a = (random(&mut s) % 100_000) as f32 / 7.0;
            check(a, 0.1 + (random(&mut s) % 100) as f32);
        }
    }
}

#[test]
fn halves_round_once() {
    // a hair above the middle of two neighbours: rounding to f32 first would lose the hair
    for (d, bits) in [(DType::F16, 10), (DType::BF16, 7)] {
        let (step, hair) = (2f64.powi(-bits), 2f64.powi(-40));
        assert_eq!(Scalar::from_f64(d, 1.0 + step / 2.0 + hair).as_f64(), 1.0 + step);
        assert_eq!(Scalar::from_f64(d, 1.0 + step * 1.5 - hair).as_f64(), 1.0 + step);
    }
    let mut s = 2;
    for d in [DType::F16, DType::BF16] {
        for op in [Bin::Add, Bin::Sub, Bin::Mul, Bin::Div, Bin::Min, Bin::Max, Bin::Lt, Bin::Le, Bin::Eq] {
            let e = binary(op, d);
            assert_eq!(unlowered(&e), None);
            for _ in 0..4000 {
                let (x, y) = (random(&mut s) & 0xffff, random(&mut s) & 0xffff);
                let [x, y] = [x, y].map(|bits| Scalar { dtype: d, bits });
                assert_eq!(at(&e, &[x, y]), eval_bin(op, x, y), "{op:?} {x:?} {y:?}");
            }
        }
        for from in
            [DType::F64, DType::F32, DType::I64, DType::I32, DType::U8, DType::Bool, DType::F16, DType::BF16]
        {
            for (from, to) in [(from, d), (d, from)] {
                let mut e = Expr::default();
                let x = e.arg(0, from);
                e.roots = vec![e.cast(to, x)];
                let l = lower_math(&e).unwrap();
                assert_eq!(unlowered(&l), None, "{from} to {to}");
                for i in 0..4000u32 {
                    let mut bits = random(&mut s) >> (64 - from.bits());
                    if from == DType::F64 && i % 2 == 0 {
                        // near ties of the narrow types
                        let v = f64::from(f32::from_bits((random(&mut s) as u32) & 0xffff_8000 | 0x8000));
                        bits = v.to_bits().wrapping_add(u64::from(i % 3)).wrapping_sub(1);
                    }
                    let x = Scalar { dtype: from, bits: if from == DType::Bool { bits & 1 } else { bits } };
                    assert_eq!(at(&l, &[x]), cast(to, x), "{from} {x:?} to {to}");
                }
            }
        }
    }
}

#[test]
fn half_functions_and_fma() {
    for d in [DType::F16, DType::BF16] {
        for op in [Un::Exp, Un::Neg, Un::Abs, Un::Floor, Un::Sqrt, Un::IsNan, Un::Tanh] {
            let e = unary(op, d);
            for bits in (0..0x1_0000u64).step_by(5) {
                let x = Scalar { dtype: d, bits };
                let (got, want) = (at(&e, &[x]), eval_un(op, x));
                let near = got.bits.abs_diff(want.bits) <= u64::from(matches!(op, Un::Exp | Un::Tanh));
                assert!(got == want || near, "{op:?} {x:?}: {got:?} {want:?}");
            }
        }
        let mut e = Expr::default();
        let (x, y, z) = (e.arg(0, d), e.arg(1, d), e.arg(2, d));
        e.roots = vec![e.fma(x, y, z)];
        let (e, mut s) = (lower_math(&e).unwrap(), 3);
        for _ in 0..20_000 {
            let v = [0; 3].map(|_| Scalar { dtype: d, bits: random(&mut s) & 0xffff });
            assert_eq!(at(&e, &v), eval_fma(v[0], v[1], v[2]), "{v:?}");
        }
    }
}

#[test]
fn sin_and_cos_of_f32() {
    sweep(Un::Sin, 1.0);
    sweep(Un::Cos, 1.0);
}

/// Greatest distance in ulp of f64 from `libm`, itself within one ulp.
fn sweep64(op: Un, limit: f64, args: impl Iterator<Item = f64>) {
    let e = unary(op, DType::F64);
    assert_eq!(unlowered(&e), None);
    let (mut worst, mut where_) = (0u64, 0.0);
    let mut check = |x: f64| {
        let got = f64::from_bits(at(&e, &[Scalar::from_f64(DType::F64, x)]).bits);
        let want = float_un(op, x);
        if got.is_nan() && want.is_nan() || got.to_bits() == want.to_bits() {
            return;
        }
        let u = if got.is_sign_negative() == want.is_sign_negative() && !got.is_nan() && !want.is_nan() {
            got.to_bits().abs_diff(want.to_bits())
        } else if got == want {
            0
        } else {
            u64::MAX
        };
        if u > worst {
            (worst, where_) = (u, x);
        }
    };
    [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, f64::MAX, f64::MIN_POSITIVE, 5e-324]
        .into_iter()
        .for_each(&mut check);
    args.for_each(&mut check);
    println!("{op:?} f64: {worst} ulp from libm at {where_:e}");
    assert!(worst as f64 <= limit, "{op:?}: {worst} ulp at {where_:e}");
}

fn any(seed: u64, n: usize) -> impl Iterator<Item = f64> {
    let mut s = seed;
    (0..n).map(move |_| f64::from_bits(random(&mut s)))
}

fn within(seed: u64, n: usize, top: f64) -> impl Iterator<Item = f64> {
    let mut s = seed;
    (0..n).map(move |_| ((random(&mut s) >> 11) as f64 / (1u64 << 52) as f64 - 1.0) * top)
}

#[test]
fn functions_of_f64() {
    sweep64(Un::Exp, 2.0, any(1, 4000).chain(within(2, 4000, 750.0)).chain(within(3, 2000, 1.0)));
    sweep64(
        Un::Log,
        2.0,
        any(4, 4000).chain(within(5, 4000, 3.0)).chain((0..1000).map(|i| 0.95 + f64::from(i) * 1e-4)),
    );
    sweep64(Un::Tanh, 4.0, any(6, 4000).chain(within(7, 4000, 3.0)));
    sweep64(Un::Erf, 4.0, any(8, 4000).chain(within(9, 4000, 6.5)));
    for op in [Un::Sin, Un::Cos] {
        let multiples = (1..600).map(|i| f64::from(i) * std::f64::consts::FRAC_PI_2);
        let hard = [1e22, std::f64::consts::FRAC_PI_2, std::f64::consts::PI];
        sweep64(op, 4.0, any(10, 3000).chain(within(11, 3000, 100.0)).chain(multiples).chain(hard));
    }
    // the f64 nearest to a multiple of pi/2, where some libm are 8 ulp off; value from 400-digit arithmetic
    let x = Scalar::from_f64(DType::F64, 6381956970095103.0 * 2f64.powi(797));
    let got = f64::from_bits(at(&unary(Un::Cos, DType::F64), &[x]).bits);
    assert!(got.to_bits().abs_diff((-4.687165924254628e-19f64).to_bits()) <= 2, "{got:e}");
}

#[test]
fn powers_of_f32() {
    let e = binary(Bin::Pow, DType::F32);
    assert_eq!(unlowered(&e), None);
    let special = [
        0.0f32,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        1e30,
        -1e30,
        8388609.0,
        16777216.0,
        1e-40,
        -1e-40,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut worst = 0f64;
    let mut check = |a: f32, b: f32| {
        let [x, y] = [a, b].map(|v| Scalar { dtype: DType::F32, bits: u64::from(v.to_bits()) });
        let got = f32::from_bits(at(&e, &[x, y]).bits as u32);
        let want = f64::from(a).powf(f64::from(b));
        let u = ulps(got, want);
        assert!(
            u <= 2.0 && (got.is_nan() || got.is_sign_negative() == want.is_sign_negative()),
            "{a:e}^{b:e}: {got:e} {want:e}"
        );
        worst = worst.max(u);
    };
    special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
    let mut s = 7;
    for _ in 0..8000 {
        check(f32::from_bits(random(&mut s) as u32), f32::from_bits(random(&mut s) as u32));
        let a = f32::from_bits(random(&mut s) as u32 & 0x7fff_ffff);
        check(a, (random(&mut s) % 2001) as f32 / 100.0 - 10.0);
        check(1.0 + (random(&mut s) % 2001) as f32 / 1e6 - 1e-3, (random(&mut s) % 200_001) as f32 - 1e5);
    }
    println!("Pow f32: {worst:.3} ulp");
}

#[test]
fn powers_of_f64() {
    let e = binary(Bin::Pow, DType::F64);
    assert_eq!(unlowered(&e), None);
    let special = [
        0.0f64,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        1e300,
        -1e300,
        1e-310,
        9007199254740993.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let mut worst = 0;
    let mut check = |a: f64, b: f64| {
        let [x, y] = [a, b].map(|v| Scalar::from_f64(DType::F64, v));
        let got = f64::from_bits(at(&e, &[x, y]).bits);
        let want = a.powf(b);
        if got.is_nan() && want.is_nan() {
            return;
        }
        assert_eq!(got.is_sign_negative(), want.is_sign_negative(), "{a:e}^{b:e}: {got:e} {want:e}");
        let u = got.to_bits().abs_diff(want.to_bits());
        assert!(u <= 4, "{a:e}^{b:e}: {got:e} {want:e}");
        worst = worst.max(u);
    };
    special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
    let mut s = 8;
    for _ in 0..4000 {
        check(f64::from_bits(random(&mut s)), f64::from_bits(random(&mut s)));
        let a = f64::from_bits(random(&mut s) >> 1);
        check(a, (random(&mut s) % 2001) as f64 / 1000.0 - 1.0);
        check(1.0 + (random(&mut s) % 2001) as f64 / 1e6 - 1e-3, (random(&mut s) % 1_400_001) as f64 - 7e5);
        check((random(&mut s) % 10_000) as f64 / 1000.0, (random(&mut s) % 601) as f64 - 300.0);
    }
    println!("Pow f64: {worst} ulp from libm");
}

#[test]
fn kernels_keep_their_node_references() {
    for seed in 0..200 {
        let mut k = crate::kernel::random::case(seed).kernel;
        let again = k.clone();
        lower_kernel(&mut k).unwrap();
        assert_eq!(k, again, "lowering what is lowered changes nothing");
    }
    let mut e = Expr::default();
    let x = e.arg(0, DType::F64);
    e.roots = vec![e.bin(Bin::Mod, x, x)];
    assert_eq!(lower_math(&e).unwrap_err().what, "mod on f64");
}
