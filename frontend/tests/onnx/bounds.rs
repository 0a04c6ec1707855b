//! What the operators' texts say of bounds that are left out or lie outside, where other tools do otherwise.

use crate::model::*;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;

#[test]
fn a_clip_bound_left_out_is_the_greatest_number() {
    let x = Tensor::from_f64(DType::F32, &[3], &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    let most = f64::from(f32::MAX);
    for opset in [6, 11, 13] {
        let y = one(opset, "Clip", std::slice::from_ref(&x), &[]).to_f64();
        assert_eq!(y[..2], [most, -most], "opset {opset}");
        assert!(y[2].is_nan());
    }
    let least = Tensor::from_f64(DType::F32, &[], &[0.0]);
    assert_eq!(one(13, "Clip", &[x, least], &[]).to_f64()[..2], [most, 0.0]);
}

#[test]
fn a_backward_slice_that_starts_before_all_begins_at_the_first() {
    let x = Tensor::from_ints(DType::I64, &[2], &[7, 8]);
    let slice = |start: i64, end: i64, step: i64| {
        let list = |v| Tensor::from_ints(DType::I64, &[1], &[v]);
        let m = model(13).input("x", I64, &["n"]).ints("s", &[start]).ints("e", &[end]);
        let m = m.ints("a", &[0]).ints("t", &[step]).node("Slice", &["x", "s", "e", "a", "t"], &["y"], &[]);
        let m = m.output("y").import().module;
        let all = tgc_ir::interp::run(&m, "main", std::slice::from_ref(&x)).unwrap();
        let none = tgc_ir::interp::run(&m, "main", &[Tensor::from_ints(DType::I64, &[0], &[])]).unwrap();
        assert_eq!(none[0].shape, [0], "{:?}", list(start));
        all[0].to_f64()
    };
    assert_eq!(slice(-8, i64::MIN, -3), [7.0]);
    assert_eq!(slice(i64::MIN, i64::MIN, -1), [7.0]);
    assert_eq!(slice(-2, i64::MIN, -1), [7.0]);
    assert_eq!(slice(-1, i64::MIN, -1), [8.0, 7.0]);
    assert!(slice(-8, 0, -1).is_empty());
}

#[test]
fn softmax_has_no_axis_after_the_last_from_opset_11_on() {
    let m = |opset| model(opset).input("x", F32, &["4"]).node("Softmax", &["x"], &["y"], &[]).output("y");
    let e = m(11).errors();
    assert!(e.iter().any(|d| d.to_string().contains("axis 1")), "{e:?}");
    m(9).import();
}
