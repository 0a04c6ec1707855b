//! Tests of the interpreter by class, against numbers worked out by hand.

mod bounds;
mod naive;
mod structure;

use super::*;
use crate::text::parse_module;

pub(super) fn f(shape: &[usize], v: &[f64]) -> Tensor {
    Tensor::from_f64(DType::F32, shape, v)
}

pub(super) fn ints(d: DType, shape: &[usize], v: &[i64]) -> Tensor {
    Tensor::from_ints(d, shape, v)
}

pub(super) fn module(text: &str) -> Module {
    parse_module(text, &|_| None)
        .unwrap_or_else(|e| panic!("{}", e.iter().map(|d| d.render(Some(text))).collect::<String>()))
}

/// Runs the only entry `main`.
pub(super) fn go(text: &str, ins: &[Tensor]) -> Result<Vec<Tensor>, Diag> {
    run(&module(text), "main", ins)
}

/// The first result, as numbers, of `%x.. -> body`.
fn nums(text: &str, ins: &[Tensor]) -> Vec<f64> {
    go(text, ins).unwrap_or_else(|d| panic!("{d}\n{text}"))[0].to_f64()
}

#[test]
fn maps_broadcast_and_round_after_every_op() {
    let text = "graph @main(%a: f32[n, 3], %b: f32[3], %c: f32[m, 1, 1]) -> f32[m, n, 3] {
      %0 = mul %a, %b : f32[n, 3]
      %1 = add %0, %c : f32[m, n, 3]
      return %1
    }";
    let (a, b) = (f(&[2, 3], &[1., 2., 3., 4., 5., 6.]), f(&[3], &[1., 10., 100.]));
    assert_eq!(
        nums(text, &[a, b, f(&[2, 1, 1], &[0.5, -1.0])]),
        [1.5, 20.5, 300.5, 4.5, 50.5, 600.5, 0., 19., 299., 3., 49., 599.]
    );
    let text = "graph @main(%a: f32[1], %b: f32[1]) -> f32[1] {
      %0 = mul %a, %b : f32[1]
      %1 = sub %0, %b : f32[1]
      return %1
    }";
    let (x, y) = (1.0 + 2f32.powi(-23), 1.0 + 2f32.powi(-22));
    assert_eq!(nums(text, &[f(&[1], &[x.into()]), f(&[1], &[y.into()])]), [f64::from(x * y - y)]);
}

#[test]
fn a_map_crosses_blocks_and_empty_shapes() {
    let text = "graph @main(%a: f32[n, 7], %b: f32[n, 1]) -> f32[n, 7] {
      %0 = sub %a, %b : f32[n, 7]
      return %0
    }";
    let n = 300;
    let a: Vec<f64> = (0..n * 7).map(|i| i as f64).collect();
    let b: Vec<f64> = (0..n).map(|i| (7 * i) as f64).collect();
    let out = nums(text, &[f(&[n, 7], &a), f(&[n, 1], &b)]);
    assert!(out.iter().enumerate().all(|(i, &v)| v == (i % 7) as f64));
    assert!(nums(text, &[f(&[0, 7], &[]), f(&[0, 1], &[])]).is_empty());
}

#[test]
fn integers_follow_the_scalar_rules() {
    let one = |op: &str, d: DType, a: i64, b: i64| {
        let text = format!(
            "graph @main(%a: {d}[], %b: {d}[]) -> {d}[] {{\n %0 = {op} %a, %b : {d}[]\n return %0\n}}"
        );
        go(&text, &[ints(d, &[], &[a]), ints(d, &[], &[b])]).unwrap()[0].get(0).as_int().unwrap()
    };
    let (i64min, i32min) = (i64::MIN, i64::from(i32::MIN));
    assert_eq!(one("div", DType::I64, 7, 0), 0);
    assert_eq!(one("div", DType::I64, i64min, -1), i128::from(i64min));
    assert_eq!(one("div", DType::I32, i32min, -1), i128::from(i32min));
    assert_eq!(one("div", DType::I32, -7, 2), -3);
    assert_eq!(one("rem", DType::I32, -7, 2), -1);
    assert_eq!(one("modulo", DType::I32, -7, 2), 1);
    assert_eq!(one("add", DType::I8, 127, 1), -128);
    assert_eq!(one("mul", DType::I64, i64::MAX, 2), -2);
    assert_eq!(one("sub", DType::U8, 0, 1), 255);
    assert_eq!(one("max", DType::U64, -1, 1), i128::from(u64::MAX));
    assert_eq!(one("div", DType::U64, -1, 2), i128::from(i64::MAX));
    assert_eq!(one("shl", DType::U32, 1, 32), 0);
    assert_eq!(one("shr", DType::I32, -8, 40), -1);
    assert_eq!(one("shr", DType::U64, -1, 63), 1);
    assert_eq!(one("pow", DType::I64, 3, 20), 3486784401);
    let exact = (1i64 << 53) + 1;
    assert_eq!(one("add", DType::I64, exact, 0), i128::from(exact));
}

#[test]
fn floats_keep_nan_and_signed_zero_rules() {
    let text = "graph @main(%a: f32[6], %b: f32[6]) -> (f32[6], f32[6], bool[6], f32[6]) {
      %0 = max %a, %b : f32[6]
      %1 = min %a, %b : f32[6]
      %2 = lt %a, %b : bool[6]
      %3 = relu %a : f32[6]
      return %0, %1, %2, %3
    }";
    let nan = f64::NAN;
    let a = f(&[6], &[nan, 1.0, -0.0, 0.0, f64::INFINITY, -3.0]);
    let b = f(&[6], &[1.0, nan, 0.0, -0.0, 1.0, -2.0]);
    let out = go(text, &[a, b]).unwrap();
    let bits = |i: usize| -> Vec<String> { out[i].scalars().map(|s| s.to_string()).collect() };
    assert_eq!(bits(0), ["nan", "nan", "0.0", "0.0", "inf", "-2.0"]);
    assert_eq!(bits(1), ["nan", "nan", "-0.0", "-0.0", "1.0", "-3.0"]);
    assert_eq!(bits(2), ["false", "false", "false", "false", "false", "true"]);
    assert_eq!(bits(3), ["nan", "1.0", "-0.0", "0.0", "inf", "0.0"]);
}

#[test]
fn casts_saturate_wrap_and_round() {
    let text = "graph @main(%a: f32[5]) -> (i32[5], u8[5], bool[5], f16[5]) {
      %0 = cast %a {to = i32} : i32[5]
      %1 = cast %a {to = u8} : u8[5]
      %2 = cast %a {to = bool} : bool[5]
      %3 = cast %a {to = f16} : f16[5]
      return %0, %1, %2, %3
    }";
    let out = go(text, &[f(&[5], &[-1.9, f64::NAN, 3e9, 255.9, 0.0])]).unwrap();
    assert_eq!(out[0].to_f64(), [-1., 0., 2147483647., 255., 0.]);
    assert_eq!(out[1].to_f64(), [0., 0., 255., 255., 0.]);
    assert_eq!(out[2].to_f64(), [1., 1., 1., 1., 0.]);
    assert_eq!(out[3].to_f64()[2..4], [f64::INFINITY, 255.875]);
    let text = "graph @main(%a: i64[2]) -> (f32[2], i8[2]) {
      %0 = cast %a {to = f32} : f32[2]
      %1 = cast %a {to = i8} : i8[2]
      return %0, %1
    }";
    let big = (1 << 24) + 1;
    let out = go(text, &[ints(DType::I64, &[2], &[big, 300])]).unwrap();
    assert_eq!((out[0].to_f64(), out[1].to_f64()), (vec![16777216.0, 300.0], vec![1.0, 44.0]));
}

#[test]
fn reductions_over_any_axes() {
    let x = f(&[2, 3, 2], &(1..=12).map(f64::from).collect::<Vec<_>>());
    let sum = |axes: &str, out: &str| {
        let text = format!(
            "graph @main(%x: f32[2, 3, 2]) -> f32[{out}] {{\n %0 = reduce_sum %x {{axes = [{axes}]}} : f32[{out}]\n return %0\n}}"
        );
        nums(&text, std::slice::from_ref(&x))
    };
    assert_eq!(sum("2", "2, 3"), [3., 7., 11., 15., 19., 23.]);
    assert_eq!(sum("0, 2", "3"), [18., 26., 34.]);
    assert_eq!(sum("0, 1, 2", ""), [78.]);
    assert_eq!(sum("", "2, 3, 2").len(), 12);
    let text = "graph @main(%x: i32[n]) -> (i32[], i32[], i32[1]) {
      %0 = reduce_sum %x {axes = [0]} : i32[]
      %1 = reduce_prod %x {axes = [0]} : i32[]
      %2 = reduce_max %x {axes = [0], keepdims = true} : i32[1]
      return %0, %1, %2
    }";
    let out = go(text, &[ints(DType::I32, &[3], &[i64::from(i32::MAX), 1, 3])]).unwrap();
    assert_eq!(out[0].to_f64(), [f64::from(i32::MIN + 3)]);
    assert_eq!(out[1].to_f64(), [f64::from(i32::MAX.wrapping_mul(3))]);
    assert_eq!(out[2].to_f64(), [f64::from(i32::MAX)]);
    let out = go(text, &[ints(DType::I32, &[0], &[])]).unwrap();
    assert_eq!((out[0].to_f64()[0], out[1].to_f64()[0], out[2].to_f64()[0]), (0.0, 1.0, f64::from(i32::MIN)));
}

#[test]
fn long_reductions_in_pieces_keep_first_positions() {
    let text = "graph @main(%x: f32[n, k]) -> (i64[k], i64[k], f32[k]) {
      %0 = arg_max %x {axis = 0} : i64[k]
      %1 = arg_max %x {axis = 0, last = true} : i64[k]
      %2 = reduce_max %x {axes = [0]} : f32[k]
      return %0, %1, %2
    }";
    let (n, k) = (5000, 2);
    let mut x = vec![0.0; n * k];
    x[1234 * k] = 7.0;
    x[4321 * k] = 7.0;
    x[77 * k + 1] = f64::NAN;
    x[99 * k + 1] = f64::NAN;
    let out = go(text, &[f(&[n, k], &x)]).unwrap();
    assert_eq!(out[0].to_f64(), [1234., 77.]);
    assert_eq!(out[1].to_f64(), [4321., 99.]);
    assert!(out[2].to_f64()[0] == 7.0 && out[2].to_f64()[1].is_nan());
    let text = "graph @main(%x: i64[a, b, c]) -> i64[b] {
      %0 = reduce_sum %x {axes = [0, 2]} : i64[b]
      return %0
    }";
    let v: Vec<i64> = (0..40 * 3 * 50).collect();
    let want: Vec<f64> = (0..3).map(|j| v.iter().filter(|&&i| i / 50 % 3 == j).sum::<i64>() as f64).collect();
    assert_eq!(nums(text, &[ints(DType::I64, &[40, 3, 50], &v)]), want);
}

#[test]
fn contractions_multiply_matrices() {
    let text = "graph @main(%a: f32[2, n, k], %b: f32[k, m]) -> f32[2, n, m] {
      %0 = matmul %a, %b : f32[2, n, m]
      return %0
    }";
    let (n, k, m) = (67, 131, 5);
    let a: Vec<f64> = (0..2 * n * k).map(|i| ((i * 7) % 11) as f64 - 5.0).collect();
    let b: Vec<f64> = (0..k * m).map(|i| ((i * 5) % 13) as f64 - 6.0).collect();
    let got = nums(text, &[f(&[2, n, k], &a), f(&[k, m], &b)]);
    for (i, g) in got.iter().enumerate() {
        let (row, col) = (i / m, i % m);
        let want: f64 = (0..k).map(|p| a[row * k + p] * b[p * m + col]).sum();
        assert_eq!(*g, want, "{i}");
    }
    let zero = nums(text, &[f(&[2, 1, 0], &[]), f(&[0, 2], &[])]);
    assert_eq!(zero, [0.0; 4]);
    let text = "graph @main(%a: i8[1, 2], %b: i8[2, 1]) -> i8[1, 1] {
      %0 = matmul %a, %b : i8[1, 1]
      return %0
    }";
    let (a, b) = (ints(DType::I8, &[1, 2], &[100, 100]), ints(DType::I8, &[2, 1], &[2, 1]));
    assert_eq!(nums(text, &[a, b]), [44.0]);
}

#[test]
fn convolutions_pad_step_and_group() {
    let text = "graph @main(%x: f32[1, 1, n], %w: f32[2, 1, 3]) -> f32[1, 2, floordiv(n + 1, 2)] {
      %0 = conv %x, %w {strides = [2], pads = [1, 1], dilations = [1]} : f32[1, 2, floordiv(n + 1, 2)]
      return %0
    }";
    let w = f(&[2, 1, 3], &[1., 10., 100., 0., 1., 0.]);
    let got = nums(text, &[f(&[1, 1, 5], &[1., 2., 3., 4., 5.]), w]);
    assert_eq!(got, [210., 432., 54., 1., 3., 5.]);
    let text = "graph @main(%x: f32[1, 4, 1], %w: f32[2, 2, 1]) -> f32[1, 2, 1] {
      %0 = conv %x, %w {strides = [1], pads = [0, 0], dilations = [1], groups = 2} : f32[1, 2, 1]
      return %0
    }";
    assert_eq!(
        nums(text, &[f(&[1, 4, 1], &[1., 2., 3., 4.]), f(&[2, 2, 1], &[1., 10., 1., 10.])]),
        [21., 43.]
    );
}

#[test]
fn views_move_elements() {
    let text = "graph @main(%x: f32[n, 4]) -> (f32[4, n], f32[2*n, 2], f32[n, 2], f32[n, 4], f32[n + 1, 6]) {
      %0 = transpose %x {perm = [1, 0]} : f32[4, n]
      %1 = reshape %x {shape = (2*n, 2)} : f32[2*n, 2]
      %2 = slice %x {starts = (0, 3), sizes = (n, 2), steps = [1, -2]} : f32[n, 2]
      %3 = concat %2, %2 {axis = 1} : f32[n, 4]
      %4 = pad %x {before = (1, 0), after = (0, 2), value = 9.0 : f32} : f32[n + 1, 6]
      return %0, %1, %2, %3, %4
    }";
    let out = go(text, &[f(&[2, 4], &(0..8).map(f64::from).collect::<Vec<_>>())]).unwrap();
    assert_eq!(out[0].to_f64(), [0., 4., 1., 5., 2., 6., 3., 7.]);
    assert_eq!((out[1].shape.clone(), out[1].to_f64()[3]), (vec![4, 2], 3.0));
    assert_eq!(out[2].to_f64(), [3., 1., 7., 5.]);
    assert_eq!(out[3].to_f64(), [3., 1., 3., 1., 7., 5., 7., 5.]);
    assert_eq!(out[4].to_f64(), [9., 9., 9., 9., 9., 9., 0., 1., 2., 3., 9., 9., 4., 5., 6., 7., 9., 9.]);
}

#[test]
fn windows_skip_padding() {
    let text = "graph @main(%x: f32[1, 1, 5]) -> (f32[1, 1, 3], f32[1, 1, 3], f32[1, 1, 3]) {
      %0 = max_pool %x {kernel = [3], strides = [2], pads = [1, 1], dilations = [1]} : f32[1, 1, 3]
      %1 = avg_pool %x {kernel = [3], strides = [2], pads = [1, 1], dilations = [1]} : f32[1, 1, 3]
      %2 = avg_pool %x {kernel = [3], strides = [2], pads = [1, 1], dilations = [1], count_include_pad = true} : f32[1, 1, 3]
      return %0, %1, %2
    }";
    let out = go(text, &[f(&[1, 1, 5], &[-3., -6., -9., 6., 3.])]).unwrap();
    assert_eq!(out[0].to_f64(), [-3., 6., 6.]);
    assert_eq!(out[1].to_f64(), [-4.5, -3., 4.5]);
    assert_eq!(out[2].to_f64(), [-3., -3., 3.]);
}

#[test]
fn gathers_and_scatters_check_every_index() {
    let text = "graph @main(%x: f32[3, 2], %i: i64[k]) -> f32[k, 2] {
      %0 = gather %x, %i {axis = 0} : f32[k, 2]
      return %0
    }";
    let x = f(&[3, 2], &[0., 1., 2., 3., 4., 5.]);
    assert_eq!(nums(text, &[x.clone(), ints(DType::I64, &[2], &[-1, 0])]), [4., 5., 0., 1.]);
    let e = go(text, &[x.clone(), ints(DType::I64, &[2], &[0, 3])]).unwrap_err();
    assert_eq!(e.code, "E-RUN-016");
    assert!(
        e.message.starts_with("`gather`: index 3 (element 1 of the indices)") && e.message.contains("-3..3"),
        "{e}"
    );
    assert!(go(text, &[x.clone(), ints(DType::I64, &[1], &[i64::MIN])]).is_err());
    let text = "graph @main(%x: f32[3, 2], %i: i64[2, 2], %u: f32[2, 2]) -> f32[3, 2] {
      %0 = scatter_elements %x, %i, %u {axis = 0, reduction = \"add\"} : f32[3, 2]
      return %0
    }";
    let i = ints(DType::I64, &[2, 2], &[0, 2, 0, 2]);
    assert_eq!(nums(text, &[x.clone(), i, f(&[2, 2], &[10., 20., 30., 40.])]), [40., 1., 2., 3., 4., 65.]);
    let text = "graph @main(%x: f32[3, 2], %s: i64[], %u: f32[2, 2]) -> f32[3, 2] {
      %0 = update_slice %x, %s, %u {axis = 0} : f32[3, 2]
      return %0
    }";
    let u = f(&[2, 2], &[7., 8., 9., 10.]);
    assert_eq!(nums(text, &[x.clone(), ints(DType::I64, &[], &[1]), u.clone()]), [0., 1., 7., 8., 9., 10.]);
    assert_eq!(go(text, &[x, ints(DType::I64, &[], &[2]), u]).unwrap_err().code, "E-RUN-016");
}

#[test]
fn prefixes_run_both_ways() {
    let run = |attrs: &str| {
        let text = format!(
            "graph @main(%x: f32[2, 3]) -> f32[2, 3] {{\n %0 = cum_sum %x {{axis = 1{attrs}}} : f32[2, 3]\n return %0\n}}"
        );
        nums(&text, &[f(&[2, 3], &[1., 2., 3., 4., 5., 6.])])
    };
    assert_eq!(run(""), [1., 3., 6., 4., 9., 15.]);
    assert_eq!(run(", exclusive = true"), [0., 1., 3., 0., 4., 9.]);
    assert_eq!(run(", reverse = true"), [6., 5., 3., 15., 11., 6.]);
    assert_eq!(run(", exclusive = true, reverse = true"), [5., 3., 0., 11., 6., 0.]);
}

#[test]
fn selections_order_ties_and_nan() {
    let text = "graph @main(%x: f32[5]) -> (f32[3], i64[3], i64[3]) {
      %0, %1 = top_k %x {axis = 0, k = 3} : f32[3], i64[3]
      %2, %3 = top_k %x {axis = 0, k = 3, largest = false} : f32[3], i64[3]
      return %0, %1, %3
    }";
    let out = go(text, &[f(&[5], &[2.0, f64::NAN, 5.0, 2.0, 5.0])]).unwrap();
    assert_eq!(out[1].to_f64(), [1., 2., 4.]);
    assert_eq!(out[2].to_f64(), [0., 3., 2.]);
    let text = "graph @main(%x: f32[2, 2]) -> (i64[2, 4], i64[]) {
      %0, %1 = non_zero %x : i64[2, 4], i64[]
      return %0, %1
    }";
    let out = go(text, &[f(&[2, 2], &[0.0, 3.0, -0.0, f64::NAN])]).unwrap();
    assert_eq!((out[0].to_f64(), out[1].to_f64()), (vec![0., 1., 0., 0., 1., 1., 0., 0.], vec![2.0]));
}

#[test]
fn composites_run_by_their_definition() {
    let text = "graph @main(%x: f32[1, 3], %s: f32[3]) -> (f32[1, 3], f32[1, 3]) {
      %0 = softmax %x : f32[1, 3]
      %1 = layer_norm %x, %s {axes = [1], epsilon = 0.0} : f32[1, 3]
      return %0, %1
    }";
    let out = go(text, &[f(&[1, 3], &[1000., 1000., 1000.]), f(&[3], &[1., 1., 1.])]).unwrap();
    assert!(out[0].to_f64().iter().all(|v| (v - 1.0 / 3.0).abs() < 1e-7));
    let out = go(text, &[f(&[1, 3], &[-1., 0., 1.]), f(&[3], &[1., 1., 2.])]).unwrap();
    let want = [-1.5f64.sqrt(), 0.0, 2.0 * 1.5f64.sqrt()];
    assert!(out[1].to_f64().iter().zip(want).all(|(g, w)| (g - w).abs() < 1e-6), "{:?}", out[1].to_f64());
}
