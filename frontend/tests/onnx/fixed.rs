//! Inputs that become constants (`--const`).

use crate::model::*;
use tgc_frontend::onnx::{ConstOption, ImportOptions, Imported, import_bytes};
use tgc_ir::diag::Diag;
use tgc_ir::interp;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;

fn import(m: &M, constants: &[&str]) -> Result<Imported, Vec<Diag>> {
    let constants: Vec<ConstOption> = constants.iter().map(|c| c.parse().unwrap()).collect();
    import_bytes(m.bytes(), None, &ImportOptions { constants, ..ImportOptions::default() })
}

/// A sum over axes that are an input.
fn sum() -> M {
    let m = model(13).input("x", F32, &["n", "2"]).input("axes", I64, &["k"]);
    m.node("ReduceSum", &["x", "axes"], &["y"], &[("keepdims", A::I(0))]).output("y")
}

#[test]
fn an_operand_that_must_be_known_is_given() {
    let e = import(&sum(), &[]).unwrap_err();
    assert_eq!(e[0].code, "E-ONNX-016");
    assert!(e[0].help.as_ref().is_some_and(|h| h.contains("--const axes=")), "{}", e[0]);
    let found = import(&sum(), &["axes=[1]"]).unwrap();
    let g = body(&found);
    assert_eq!(g.inputs().len(), 1);
    // `k` was a dim of that input alone
    assert!(g.symbols.get("n").is_some() && g.symbols.get("k").is_none());
    let x = Tensor::from_f64(DType::F32, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = interp::run(&found.module, "main", &[x]).unwrap();
    assert_eq!((y[0].shape.to_vec(), y[0].to_f64()), (vec![3], vec![3.0, 7.0, 11.0]));
}

#[test]
fn a_dim_shared_with_another_input_is_fixed_too() {
    let m = model(13).input("x", F32, &["n"]).input("w", F32, &["n"]);
    let m = m.node("Mul", &["x", "w"], &["y"], &[]).output("y");
    let found = import(&m, &["w=[0.5, -2, 3]"]).unwrap();
    let x = Tensor::from_f64(DType::F32, &[3], &[2.0, 2.0, 2.0]);
    assert_eq!(interp::run(&found.module, "main", &[x]).unwrap()[0].to_f64(), [1.0, -4.0, 6.0]);
    let short = Tensor::from_f64(DType::F32, &[2], &[2.0, 2.0]);
    assert!(interp::run(&found.module, "main", &[short]).is_err());
}

#[test]
fn what_does_not_fit_is_said() {
    let m = sum();
    for (constants, words) in [
        (vec!["axis=[1]"], "no input of the model"),
        (vec!["axes=[1]", "axes=[0]"], "twice"),
        (vec!["axes=1"], "an input with 1 axes"),
        (vec!["axes=[1.5]"], "cannot hold"),
        (vec!["axes=[true]"], "cannot hold"),
        (vec!["x=[[1, 2, 3]]"], "declares 2 in place of 3"),
    ] {
        let e = import(&m, &constants).unwrap_err();
        assert_eq!(e[0].code, "E-ONNX-021", "{constants:?}: {}", e[0]);
        assert!(e[0].message.contains(words), "{constants:?}: {}", e[0]);
    }
    for bad in ["axes", "=1", "axes=[1, [2]]", "axes=[\"a\"]", "axes=one", "axes="] {
        assert_eq!(bad.parse::<ConstOption>().unwrap_err().code, "E-ONNX-021", "{bad}");
    }
}
