//! `GatherND` against its definition, and what it refuses.

use crate::model::*;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;

fn counted(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    let v: Vec<i64> = (0..n as i64).collect();
    Tensor::from_ints(DType::I64, shape, &v)
}

fn nd(data: &[usize], batch: i64, shape: &[usize], indices: &[i64]) -> Tensor {
    let i = Tensor::from_ints(DType::I64, shape, indices);
    one(13, "GatherND", &[counted(data), i], &[("batch_dims", A::I(batch))])
}

#[test]
fn tuples_name_elements_or_parts() {
    let ints = |shape: &[usize], v: &[i64]| Tensor::from_ints(DType::I64, shape, v);
    assert_eq!(nd(&[2, 3], 0, &[2, 2], &[0, 2, 1, 0]), ints(&[2], &[2, 3]));
    assert_eq!(nd(&[2, 3], 0, &[1, 1], &[1]), ints(&[1, 3], &[3, 4, 5]));
    assert_eq!(nd(&[2, 3], 0, &[2], &[-1, -3]), ints(&[], &[3]));
    assert_eq!(nd(&[2, 2, 2], 0, &[2, 1, 2], &[0, 1, -1, 0]), ints(&[2, 1, 2], &[2, 3, 4, 5]));
}

#[test]
fn leading_dims_may_be_shared() {
    let ints = |shape: &[usize], v: &[i64]| Tensor::from_ints(DType::I64, shape, v);
    assert_eq!(nd(&[2, 2, 2], 1, &[2, 1], &[1, 0]), ints(&[2, 2], &[2, 3, 4, 5]));
    assert_eq!(nd(&[2, 2, 3], 1, &[2, 2, 2], &[0, 1, 1, -1, 0, 0, -2, 2]), ints(&[2, 2], &[1, 5, 6, 8]));
    assert_eq!(nd(&[2, 2, 3], 2, &[2, 2, 1], &[0, 1, 2, -1]), ints(&[2, 2], &[0, 4, 8, 11]));
}

#[test]
fn no_index_out_of_range_reads_a_wrong_element() {
    for wrong in [[0, 3], [1, -4], [2, 0], [-3, 1], [i64::MAX, 1]] {
        let m = model(13).input("x", I64, &["2", "3"]).input("i", I64, &["1", "2"]);
        let m = m.node("GatherND", &["x", "i"], &["y"], &[]).output("y");
        let i = Tensor::from_ints(DType::I64, &[1, 2], &wrong);
        let said = tgc_ir::interp::run(&m.import().module, "main", &[counted(&[2, 3]), i]);
        let said = said.expect_err("an index is out of range").to_string();
        assert!(said.contains("out of range"), "{wrong:?}: {said}");
    }
}
