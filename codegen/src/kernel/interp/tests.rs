//! Kernels in text form with results worked out by hand.

use super::*;
use crate::kernel::text::parse;

fn kernel(text: &str) -> Kernel {
    parse(text).unwrap_or_else(|e| panic!("{}", e[0].render(Some(text)))).remove(0)
}

fn f32s(shape: &[usize], v: &[f64]) -> Tensor {
    Tensor::from_f64(DType::F32, shape, v)
}

#[test]
fn a_product_in_chunks_rounds_as_ordered() {
    let k = kernel(
        r#"kernel @k(d0)(%x: in f32[d0], %y: out f32[]) grid [] {
  stage "dot" over [] red [#0 < d0] contract chunk 2 {
    load 0 %x[#0]
    $0 = arg 0 : f32
    $1 = const 1.0 : f32
    result $0, $1
    store %y[] = 0
  }
}"#,
    );
    // (2^24 + 1) rounds to 2^24 in one chain; in chunks of 2 the second pair survives
    let x = [16777216.0, 1.0, 1.0, 1.0];
    let mut args = [f32s(&[4], &x), f32s(&[], &[0.0])];
    run(&k, &[4], &mut args).unwrap();
    assert_eq!(args[1].to_f64(), [16777218.0]);
    let mut args = [f32s(&[0], &[]), f32s(&[], &[7.0])];
    run(&k, &[0], &mut args).unwrap();
    assert_eq!(args[1].to_f64(), [0.0]);
}

#[test]
fn partials_join_as_a_tree() {
    let k = kernel(
        r#"kernel @k(d0)(%x: in f32[d0], %y: out f32[]) grid [] {
  stage "sum" over [] red [#0 < d0] reduce lanes 4 {
    init 0.0 : f32
    step {
      $0 = arg 0 : f32
      $1 = arg 1 : f32
      $2 = add $0, $1 : f32
      result $2
    }
    combine {
      $0 = arg 0 : f32
      $1 = arg 1 : f32
      $2 = add $0, $1 : f32
      result $2
    }
    finish {
      $0 = arg 0 : f32
      result $0
    }
    load 0 %x[#0]
    $0 = arg 0 : f32
    result $0
    store %y[] = 0
  }
}"#,
    );
    // lanes: 2^24 + 1 -> 2^24, 1 + 0, 1, -2^24; (2^24 + 1 -> 2^24) + (1 - 2^24) = 1
    let mut args = [f32s(&[5], &[16777216.0, 1.0, 1.0, -16777216.0, 1.0]), f32s(&[], &[0.0])];
    run(&k, &[5], &mut args).unwrap();
    assert_eq!(args[1].to_f64(), [1.0]);
    // three partials: (a + c) + b
    let mut args = [f32s(&[3], &[16777216.0, 1.0, 1.0]), f32s(&[], &[0.0])];
    run(&k, &[3], &mut args).unwrap();
    assert_eq!(args[1].to_f64(), [16777216.0]);
}

#[test]
fn loops_carry_state_and_traps_name_their_site() {
    let k = kernel(
        r#"kernel @k(d0, d1)(%x: in i32[d0, d1], %at: in i64[d0], %y: out i32[d0, d1]) grid [d0] {
  local %s : i32[tile 0]
  site 1 "start: index out of range"
  stage "init" over [#0] map {
    load 0 %at[#0]
    load 1 %x[#0, $0] trap 1 le(1, #0)
    $0 = arg 0 : i64
    $1 = arg 1 : i32
    result $1
    store %s[#0] = 0
  }
  loop #1 in 0..d1 {
    stage "step" over [#0] map {
      load 0 %s[#0]
      load 1 %x[#0, #1]
      $0 = arg 0 : i32
      $1 = arg 1 : i32
      $2 = add $0, $1 : i32
      result $2
      store %s[#0] = 0
      store %y[#0, #1] = 0
    }
  }
}"#,
    );
    let x = Tensor::from_ints(DType::I32, &[2, 3], &[1, 2, 3, 10, 20, 30]);
    let y = Tensor::from_ints(DType::I32, &[2, 3], &[0; 6]);
    let mut args = [x.clone(), Tensor::from_ints(DType::I64, &[2], &[99, 2]), y.clone()];
    run(&k, &[2, 3], &mut args).unwrap();
    assert_eq!(args[2].to_f64(), [1.0, 3.0, 6.0, 40.0, 60.0, 90.0]);
    let mut args = [x, Tensor::from_ints(DType::I64, &[2], &[0, 3]), y];
    assert_eq!(run(&k, &[2, 3], &mut args), Err(Stop::Trap(1)));
}

#[test]
fn what_cannot_run_is_refused() {
    let text = r#"kernel @k(d0)(%x: in f32[d0], %y: out f32[d0]) grid [d0] {
  stage "exp" over [#0] map {
    load 0 %x[#0]
    $0 = arg 0 : f32
    $1 = exp $0 : f32
    result $1
    store %y[#0] = 0
  }
}"#;
    let mut args = [f32s(&[1], &[0.0]), f32s(&[1], &[0.0])];
    let mut k = kernel(text);
    let Err(Stop::Fault(d)) = run(&k, &[1], &mut args) else { panic!("ran") };
    assert!(d.message.contains("exp on f32"), "{d}");
    math::lower_kernel(&mut k).unwrap();
    run(&k, &[1], &mut args).unwrap();
    assert_eq!(args[1].to_f64(), [1.0]);
    assert!(matches!(run(&k, &[2], &mut args), Err(Stop::Fault(_))), "wrong shapes");
    assert!(matches!(run(&k, &[], &mut args), Err(Stop::Fault(_))), "missing parameters");
}
