//! Functions of elements: of one operand, of two, choices, and the promotion of element types.

use super::{Case, run};
use tgc_frontend::nn::*;

/// Four units in the last place of f32, against the exact result.
const F32: f64 = 5e-7;
const F64: f64 = 3e-15;
/// One unit in the last place.
const BF16: f64 = 8e-3;

type One = fn(&Tensor) -> Tensor;
type Two = fn(&Tensor, &Tensor) -> Tensor;

macro_rules! ones {
    ($($name:ident)*) => { [$((stringify!($name), Tensor::$name as One)),*] };
}

macro_rules! twos {
    ($($name:ident)*) => { [$((stringify!($name), (|a, b| a.$name(b)) as Two)),*] };
}

fn ones(kind: &'static str, rtol: f64, of: &[(&'static str, One)]) -> Vec<Case> {
    of.iter()
        .map(|(name, f)| {
            let f = *f;
            Case::one(format!("{name}.{kind}"), rtol, move |x| f(&x[0]))
        })
        .collect()
}

fn twos(kind: &'static str, rtol: f64, of: &[(&'static str, Two)]) -> Vec<Case> {
    of.iter()
        .map(|(name, f)| {
            let f = *f;
            Case::one(format!("{name}.{kind}"), rtol, move |x| f(&x[0], &x[1]))
        })
        .collect()
}

fn functions() -> Vec<Case> {
    let mut smooth = ones!(
        exp exp2 expm1 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh
        atanh sigmoid erf erfc erfinv sinc deg2rad rad2deg
    )
    .to_vec();
    smooth.push(("logit", |x| x.logit(None)));
    let mut all = ones("f32", F32, &smooth);
    all.extend(ones("f64", F64, &smooth));
    all.extend(ones("bf16", BF16, &smooth));
    all.extend(ones("i64", 2e-6, &smooth));
    let exact = ones!(abs neg sign sgn floor ceil round trunc square positive);
    all.extend(ones("f32", 0.0, &exact));
    all.extend(ones("i64", 0.0, &exact));
    all.extend(ones("f32", 0.0, &ones!(frac)));
    let tests = ones!(isnan isinf isfinite isneginf isposinf signbit);
    all.extend(ones("f32", 0.0, &tests));
    all.extend(ones("i64", 0.0, &tests));
    all
}

fn activations() -> Vec<Case> {
    let mut of = ones!(
        relu relu6 silu gelu gelu_tanh selu hardsigmoid hardswish mish logsigmoid softsign tanhshrink
    )
    .to_vec();
    of.extend::<[(&str, One); 10]>([
        ("softplus", |x| x.softplus(1.0, 20.0)),
        ("softplus.beta", |x| x.softplus(2.0, 3.0)),
        ("elu", |x| x.elu(1.0)),
        ("elu.alpha", |x| x.elu(0.7)),
        ("celu", |x| x.celu(1.3)),
        ("leaky_relu", |x| x.leaky_relu(0.02)),
        ("hardtanh", |x| x.hardtanh(-0.6, 2.0)),
        ("hardshrink", |x| x.hardshrink(0.5)),
        ("softshrink", |x| x.softshrink(0.5)),
        ("threshold", |x| x.threshold(0.4, -7.0)),
    ]);
    let mut all = ones("f32", 1e-6, &of);
    all.extend(ones("bf16", BF16, &of));
    all.extend([
        Case::one("relu6.i64", 0.0, |x| x[0].relu6()),
        Case::one("hardtanh.i64", 0.0, |x| x[0].hardtanh(-1.0, 5.0)),
        Case::one("prelu.one", F32, |x| x[0].prelu(&x[1])),
        Case::one("prelu.channels", F32, |x| x[0].prelu(&x[1])),
        Case::one("glu", F32, |x| x[0].glu(1)),
        Case::one("softmin", F32, |x| x[0].softmin(1)),
        Case::one("logit.eps", F32, |x| x[0].logit(Some(0.01))),
        Case::one("nan_to_num", 0.0, |x| x[0].nan_to_num(0.0, None, None)),
        Case::one("nan_to_num.given", 0.0, |x| x[0].nan_to_num(3.0, Some(9.0), Some(-9.0))),
        Case::one("nan_to_num.f16", 0.0, |x| x[0].nan_to_num(0.0, None, None)),
        Case::one("round_to", F32, |x| x[0].round_to(2)),
        Case::one("round_to.negative", 0.0, |x| x[0].round_to(-2)),
    ]);
    all
}

fn pairs() -> Vec<Case> {
    let plain = twos!(
        add sub mul div remainder fmod floor_divide maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or
        logical_xor heaviside copysign trunc_divide
    );
    let smooth = twos!(pow atan2 hypot xlogy logaddexp);
    let ints = twos!(
        add sub mul div remainder fmod floor_divide maximum minimum bitwise_and bitwise_or bitwise_xor eq lt ge
        logical_and logical_or logical_xor fmax fmin copysign heaviside trunc_divide
    );
    let mut all = twos("f32", 0.0, &plain);
    all.extend(twos("f32", F32, &smooth));
    all.extend(twos("i64", 0.0, &ints));
    all.extend(twos("i64", F32, &twos!(atan2)));
    all.extend(twos("i64", 0.0, &twos!(pow)));
    all.extend(twos(
        "bool",
        0.0,
        &twos!(add mul maximum bitwise_and bitwise_or bitwise_xor logical_and eq lt),
    ));
    all.extend([
        Case::one("floor_divide.bf16", BF16, |x| x[0].floor_divide(&x[1])),
        Case::one("floor_divide.number", 0.0, |x| x[0].floor_divide(2)),
        Case::one("pow.number", F32, |x| x[0].pow(3)),
        Case::one("hypot.large", F32, |x| x[0].hypot(&x[1])),
        Case::one("ldexp", 0.0, |x| x[0].ldexp(&x[1])),
        Case::one("left_shift", 0.0, |x| &x[0] << &x[1]),
        Case::one("right_shift", 0.0, |x| &x[0] >> &x[1]),
        Case::one("bitwise_not.i64", 0.0, |x| !&x[0]),
        Case::one("bitwise_not.bool", 0.0, |x| !&x[0]),
        Case::one("logical_not.f32", 0.0, |x| x[0].logical_not()),
    ]);
    all
}

fn choices() -> Vec<Case> {
    vec![
        Case::one("lerp.number", F32, |x| x[0].lerp(&x[1], 0.3)),
        Case::one("lerp.tensor", F32, |x| x[0].lerp(&x[1], &x[2])),
        Case::one("addcmul", F32, |x| x[0].addcmul(&x[1], &x[2], 0.5)),
        Case::one("addcmul.i64", 0.0, |x| x[0].addcmul(&x[1], &x[2], 2)),
        Case::one("addcdiv", F32, |x| x[0].addcdiv(&x[1], &x[2], -2.0)),
        Case::one("clamp", 0.0, |x| x[0].clamp(-1.0, 0.4)),
        Case::one("clamp.crossed", 0.0, |x| x[0].clip(2.0, -1.0)),
        Case::one("clamp.tensors", 0.0, |x| x[0].clamp(&x[1], &x[2])),
        Case::one("clamp.int.fraction", 0.0, |x| x[0].clamp(-0.5, 1.5)),
        Case::one("clamp_min", 0.0, |x| x[0].clamp_min(1)),
        Case::one("clamp_max", 0.0, |x| x[0].clamp_max(1)),
        Case::one("where", 0.0, |x| x[0].where_(&x[1], &x[2])),
        Case::one("where.broadcast", 0.0, |x| x[0].where_(&x[1], &x[2])),
        Case::one("where.numbers", 0.0, |x| x[0].where_(1.0, 2.0)),
        Case::one("where.number", 0.0, |x| x[0].where_(&x[1], 7)),
        Case::one("masked_fill", 0.0, |x| x[0].masked_fill(&x[1], f64::NEG_INFINITY)),
        Case::one("masked_fill.i64", 0.0, |x| x[0].masked_fill(&x[1], 9)),
        Case::one("isclose", 0.0, |x| x[0].isclose(&x[1], 1e-5, 1e-8, false)),
        Case::one("isclose.nan", 0.0, |x| x[0].isclose(&x[1], 1e-5, 1e-8, true)),
    ]
}

fn promotion() -> Vec<Case> {
    let kinds = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"];
    let mut all = Vec::new();
    for a in kinds {
        for b in kinds {
            all.push(Case::one(format!("promote.{a}.{b}"), 0.0, |x| &x[0] + &x[1]));
        }
    }
    all.push(Case::new("promote.scalars", 0.0, |x| {
        let (a, b, c, d) = (&x[0], &x[1], &x[2], &x[3]);
        vec![a + b, a + c, d + c, d + b, a * 2.5, d * 2.5]
    }));
    all
}

pub fn cases() -> Vec<Case> {
    [functions(), activations(), pairs(), choices(), promotion()].into_iter().flatten().collect()
}

#[test]
fn functions_of_one_operand() {
    run(functions());
}

#[test]
fn activation_functions() {
    run(activations());
}

#[test]
fn functions_of_two_operands() {
    run(pairs());
}

#[test]
fn choices_and_bounds() {
    run(choices());
}

#[test]
fn element_types_are_promoted() {
    run(promotion());
}

/// Numbers of all sizes and both signs.
fn dense() -> Vec<f32> {
    let size = |e: i32| (0..8).map(move |k| (1.0 + k as f32 * 0.124_7) * 2f32.powi(e));
    (-32..=30).flat_map(size).flat_map(|x| [x, -x]).collect()
}

#[test]
fn digits_are_kept_at_all_sizes() {
    type Exact = fn(f64) -> f64;
    let all: [(&str, One, Exact); 13] = [
        ("expm1", Tensor::expm1, f64::exp_m1),
        ("log1p", Tensor::log1p, f64::ln_1p),
        ("exp2", Tensor::exp2, f64::exp2),
        ("log2", Tensor::log2, f64::log2),
        ("log10", Tensor::log10, f64::log10),
        ("asin", Tensor::asin, f64::asin),
        ("acos", Tensor::acos, f64::acos),
        ("atan", Tensor::atan, f64::atan),
        ("sinh", Tensor::sinh, f64::sinh),
        ("cosh", Tensor::cosh, f64::cosh),
        ("asinh", Tensor::asinh, f64::asinh),
        ("acosh", Tensor::acosh, f64::acosh),
        ("atanh", Tensor::atanh, f64::atanh),
    ];
    let x = dense();
    for (name, f, exact) in all {
        let got = f(&Tensor::from(x.as_slice())).to_vec();
        for (x, got) in x.iter().zip(got) {
            let want = exact(f64::from(*x));
            let rounded = want as f32;
            let ulp = f64::from(rounded.abs().next_up() - rounded.abs());
            let near = (got - want).abs() <= 5.0 * ulp || f64::from(rounded) == got;
            assert!(near || (want.is_nan() && got.is_nan()), "{name}({x}) is {got}, not {want}");
        }
    }
}
