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
            ENode::Select(c, a, b) => if regs[*c as usize] & 1 == 1 { regs[*a as usize] } else { regs[*b as usize] },
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
    for high in 0..=0xffffu32 {
        check(f32::from_bits(high << 16));
        check(f32::from_bits(high << 16 | 0x5a5b));
    }
    for i in 0..200_000 {
        check((i as f32 - 100_000.0) * 1.2345e-4);
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
    let special = [0.0f32, -0.0, 1.0, -1.0, 3.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, f32::MAX, 0.1];
    for op in [Bin::Rem, Bin::Mod] {
        let e = binary(op, DType::F32);
        assert_eq!(unlowered(&e), None);
        let mut check = |a: f32, b: f32| {
            let [x, y] = [a, b].map(|v| Scalar { dtype: DType::F32, bits: u64::from(v.to_bits()) });
            assert_eq!(at(&e, &[x, y]), eval_bin(op, x, y), "{op:?} {a:e} {b:e}");
        };
        special.iter().for_each(|a| special.iter().for_each(|b| check(*a, *b)));
        for _ in 0..20_000 {
            check(f32::from_bits(random(&mut s) as u32), f32::from_bits(random(&mut s) as u32));
            let a = (random(&mut s) % 100_000) as f32 / 7.0;
            check(a, 0.1 + (random(&mut s) % 100) as f32);
        }
    }
}

#[test]
fn halves_round_once() {
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
        for from in [DType::F64, DType::F32, DType::I64, DType::I32, DType::U8, DType::Bool, DType::F16, DType::BF16] {
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
            for bits in 0..0x1_0000u64 {
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
