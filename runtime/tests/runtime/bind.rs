//! What binding says about wrong inputs.

use tgc_runtime::*;

use crate::machine::*;

/// `forward(x [batch, 2], y [m, batch*2], z [batch])` without work.
fn three() -> Session {
    let dims = |d: &[Expr]| d.to_vec();
    let x = port("x", &dims(&[sym(0), Expr::Const(2)]));
    let y = port("y", &dims(&[sym(1), mul(&[sym(0), Expr::Const(2)])]));
    let z = port("z", &dims(&[sym(0)]));
    let m = manifest(Entry {
        name: "forward".into(),
        symbols: vec![symbol("batch", 1, 64), Symbol { name: "y_0".into(), lo: 0, hi: 1000, named: false }],
        inputs: vec![x, y, z],
        guards: vec![Guard {
            pred: Pred::Broadcastable(sym(0), sym(1)),
            message: "Add `a1`: x and y".into(),
        }],
        variants: program(vec![], vec![]),
        ..Entry::default()
    });
    Session::new(&load(&build(&m)).unwrap(), "forward", &SessionOptions::default()).unwrap()
}

fn fails(shapes: &[(&str, &[usize])]) -> Error {
    three().bind(shapes).unwrap_err()
}

fn says(e: &Error, code: Code, text: &str) {
    assert!(e.faults.iter().any(|f| f.code == code && f.message == text), "{e}");
}

#[test]
fn right_shapes_bind() {
    let mut s = three();
    s.bind(&[("z", &[3]), ("x", &[3, 2]), ("y", &[3, 6])]).unwrap();
    s.bind(&[("x", &[64, 2]), ("y", &[1, 128]), ("z", &[64])]).unwrap();
    s.bind(&[("x", &[1, 2]), ("y", &[900, 2]), ("z", &[1])]).unwrap();
}

#[test]
fn dims_out_of_range_name_input_axis_and_dim() {
    let e = fails(&[("x", &[65, 2]), ("y", &[1, 130]), ("z", &[65])]);
    says(&e, Code::InputDim, "input `x`: axis 0 is 65, allowed 1..=64 (dim `batch`)");
    says(&e, Code::InputDim, "input `z`: axis 0 is 65, allowed 1..=64 (dim `batch`)");
    let e = fails(&[("x", &[0, 2]), ("y", &[1, 0]), ("z", &[0])]);
    says(&e, Code::InputDim, "input `x`: axis 0 is 0, allowed 1..=64 (dim `batch`)");
    let e = fails(&[("x", &[1, 2]), ("y", &[1001, 2]), ("z", &[1])]);
    says(&e, Code::InputDim, "input `y`: axis 0 is 1001, allowed 0..=1000 (size `y_0`)");
    let e = fails(&[("x", &[usize::MAX, 2]), ("y", &[1, 2]), ("z", &[1])]);
    assert_eq!(e.faults[0].code, Code::InputDim);
}

#[test]
fn mismatches_name_both_places() {
    let e = fails(&[("x", &[3, 2]), ("y", &[3, 6]), ("z", &[4])]);
    says(
        &e,
        Code::InputDim,
        "input `z`: axis 0 is 4, allowed 3 (dim `batch`, which axis 0 of input `x` gives)",
    );
    let e = fails(&[("x", &[3, 5]), ("y", &[3, 7]), ("z", &[3])]);
    says(&e, Code::InputDim, "input `x`: axis 1 is 5, allowed 2");
    says(&e, Code::InputDim, "input `y`: axis 1 is 7, allowed 6 (= batch*2 with batch = 3, y_0 = 3)");
    assert_eq!(e.faults.len(), 2);
}

#[test]
fn ranks_and_names() {
    let e = fails(&[("x", &[3]), ("y", &[3, 6]), ("z", &[3])]);
    says(&e, Code::InputRank, "input `x`: shape [3] has rank 1, allowed 2");
    assert!(e.to_string().contains("give a tensor of shape [batch, 2]"), "{e}");
    let e = fails(&[("q", &[3]), ("x", &[3, 2]), ("x", &[3, 2]), ("z", &[3])]);
    says(&e, Code::InputName, "there is no input `q`");
    says(&e, Code::InputName, "input `x` is given twice");
    says(&e, Code::InputName, "input `y` is missing");
    assert!(e.to_string().contains("the inputs are `x`, `y`, `z`"), "{e}");
}

#[test]
fn guards_say_what_and_where_from() {
    let e = fails(&[("x", &[3, 2]), ("y", &[2, 6]), ("z", &[3])]);
    says(
        &e,
        Code::Guard,
        "the model's condition broadcastable(batch, y_0) does not hold with batch = 3, y_0 = 2: Add `a1`: x and y",
    );
}

#[test]
fn wrong_types_are_told_before_shapes() {
    let x = Tensor::zeros(DType::F32, &[3, 2]).unwrap();
    let (y, z) = (tensor(&[3, 6], &[0; 18]), tensor(&[9], &[0; 9]));
    let e = three().run_owned(&[("x", &x), ("y", &y), ("z", &z)]).err().unwrap();
    says(&e, Code::InputDtype, "input `x` is f32, allowed i64");
    assert_eq!(e.faults.len(), 1);
}

#[test]
fn wrong_entries_list_the_right_ones() {
    let model = load(&build(&simple())).unwrap();
    let e = Session::new(&model, "main", &SessionOptions::default()).err().unwrap();
    assert_eq!(
        e.to_string(),
        "error[E-RUN-010]: there is no entry `main`\n  help: the artifact has: forward"
    );
    let e = Session::new(&model, "forward", &SessionOptions { threads: Some(0), ..Default::default() })
        .err()
        .unwrap();
    assert_eq!(e.faults[0].code, Code::Threads);
}

#[test]
fn sizes_that_overflow_are_errors() {
    let mut m = simple();
    let e = &mut m.entries[0];
    e.symbols[0].hi = i64::MAX;
    let mut s = Session::new(&load(&build(&m)).unwrap(), "forward", &SessionOptions::default()).unwrap();
    for batch in [i64::MAX as usize, (i64::MAX / 16) as usize, 1 << 44] {
        let e = s.bind(&[("x", &[batch, 2])]).unwrap_err();
        assert!(matches!(e.faults[0].code, Code::Size | Code::Memory), "{e}");
    }
}
