//! Dims of inputs: named, anonymous, fixed and ranged by the user; guards between inputs.

use crate::model::*;
use tgc_frontend::onnx::DimOption;

fn identity(dims: &[&str]) -> M {
    model(13).input("x", F32, dims).node("Neg", &["x"], &["y"], &[]).output("y")
}

#[test]
fn dims_without_a_name_get_one_each() {
    assert_eq!(
        identity(&["", "?", "-1", "0", "unk__12", "n", "3"]).out(),
        "f32[x_0, x_1, x_2, x_3, x_4, n, 3]"
    );
    let m = identity(&["", "x_0"]).import();
    let g = body(&m);
    assert_eq!(g.ty(g.outputs()[0].value).unwrap().to_string(), "f32[x_0_1, x_0]");
    assert!(g.symbols.get("x_0").unwrap().named && !g.symbols.get("x_0_1").unwrap().named);
}

#[test]
fn zero_may_bind_to_zero() {
    close(&identity(&["0", "2"]).run(&[f(&[0, 2], &[])])[0], &[0, 2], &[]);
}

#[test]
fn options_fix_or_bound_a_dim() {
    let m = identity(&["n", "m"]).import_with(&["n=3", "m=1..64"]).unwrap();
    let g = body(&m);
    assert_eq!(g.ty(g.outputs()[0].value).unwrap().to_string(), "f32[3, m]");
    let s = g.symbols.get("m").unwrap();
    assert_eq!((s.lo, s.hi), (1, 64));
    let e = tgc_ir::interp::run(&m.module, "main", &[f(&[3, 65], &[0.0; 195])]).unwrap_err().to_string();
    assert!(e.contains("65") && e.contains("64"), "{e}");
}

#[test]
fn an_option_for_a_dim_that_is_not_there_lists_those_that_are() {
    let e = identity(&["n", ""]).import_with(&["batch=4"]).unwrap_err();
    assert_eq!(e[0].code, "E-ONNX-013");
    assert!(e[0].to_string().contains("n, x_1"), "{}", e[0]);
    assert!(identity(&["n"]).import_with(&["n=1", "n=2"]).is_err());
    for bad in ["n", "n=", "n=a", "n=4..2", "n=-1", "=3"] {
        assert_eq!(bad.parse::<DimOption>().unwrap_err().code, "E-ONNX-013", "{bad}");
    }
    let d: DimOption = "a=b=1..2".parse().unwrap();
    assert_eq!((d.name.as_str(), d.lo, d.hi), ("a=b", 1, 2));
}

#[test]
fn unrelated_names_meet_in_a_guard() {
    let m = model(13)
        .input("a", F32, &["n"])
        .input("b", F32, &["m"])
        .node("Add", &["a", "b"], &["y"], &[])
        .output("y");
    let i = m.import();
    assert_eq!(body(&i).guards().len(), 1);
    assert!(tgc_ir::interp::run(&i.module, "main", &[f(&[2], &[1.0; 2]), f(&[3], &[1.0; 3])]).is_err());
    close(&m.run(&[f(&[2], &[1.0; 2]), f(&[1], &[1.0])])[0], &[2], &[2.0, 2.0]);
}

#[test]
fn equal_names_are_equal_dims() {
    let m = model(13)
        .input("a", F32, &["n"])
        .input("b", F32, &["n"])
        .node("Add", &["a", "b"], &["y"], &[])
        .output("y");
    assert_eq!(m.out(), "f32[n]");
    assert!(body(&m.import()).guards().is_empty());
}

#[test]
fn a_named_dim_is_not_pinned() {
    let m = model(13).input("x", F32, &["n"]).init(floats("w", &[4], &[1.0; 4])).node(
        "Add",
        &["x", "w"],
        &["y"],
        &[],
    );
    let e = m.output("y").error();
    assert!(e.message.contains("pin the named dim `n` to 4"), "{e}");
    assert!(e.at.place.contains("(Add)"), "{e}");
}

#[test]
fn output_declarations_are_labels() {
    let mut m = identity(&["n", "4"]);
    m.0.graph.as_mut().unwrap().output[0] = info("y", F32, &["whatever", "4"]);
    assert!(m.import().warnings.is_empty());
    m.0.graph.as_mut().unwrap().output[0] = info("y", F32, &["n", "5"]);
    let i = m.import();
    assert_eq!(i.warnings[0].code, "E-ONNX-030");
    assert_eq!(m.out(), "f32[n, 4]");
}

#[test]
fn a_table_of_positions_bounds_the_sequence() {
    let table: Vec<f32> = (0..4).map(|v| v as f32).collect();
    let m = model(13).input("x", F32, &["n"]).init(floats("t", &[4], &table)).ints("zero", &[0]);
    let m = m.node("Shape", &["x"], &["s"], &[]).node("Slice", &["t", "zero", "s", "zero"], &["p"], &[]);
    let m = m.node("Add", &["p", "x"], &["h"], &[]).node("Add", &["h", "x"], &["y"], &[]).output("y");
    let i = m.import();
    let g = body(&i);
    assert_eq!(m.out(), "f32[n]");
    let s = g.symbols.get("n").unwrap();
    assert_eq!((s.lo, s.hi), (0, 4));
    let [guard] = g.guards() else { panic!("{:?}", g.guards()) };
    assert!(guard.why.contains("broadcast"), "{guard:?}");
    close(&m.run(&[f(&[3], &[1.0; 3])])[0], &[3], &[2.0, 3.0, 4.0]);
    close(&m.run(&[f(&[1], &[1.0])])[0], &[1], &[2.0]);
    let e = tgc_ir::interp::run(&i.module, "main", &[f(&[5], &[1.0; 5])]).unwrap_err().to_string();
    assert!(e.contains('5') && e.contains('4'), "{e}");
}

#[test]
fn bounds_that_contradict_leave_the_ranges_and_the_guards() {
    let m = model(13).input("x", F32, &["1", "1", "n"]).init(floats("w", &[1, 1, 9], &[1.0; 9]));
    let m = m.node("Conv", &["x", "w"], &["y"], &[]).output("y");
    let wide = m.import();
    assert_eq!(body(&wide).symbols.get("n").unwrap().lo, 9);
    let m = m.init(floats("t", &[4], &[1.0; 4])).ints("zero", &[0]).ints("two", &[2]);
    let m = m.node("Shape", &["x"], &["s"], &[]).node("Slice", &["s", "two", "three", "zero"], &["l"], &[]);
    let m = m.ints("three", &[3]).node("Slice", &["t", "zero", "l", "zero"], &["p"], &[]);
    let m = m.node("Add", &["p", "x"], &["z"], &[]).output("z");
    let both = m.import();
    let s = body(&both).symbols.get("n").unwrap();
    assert_eq!((s.lo, s.hi), (0, tgc_ir::types::DEFAULT_MAX));
    assert_eq!(body(&both).guards().len(), 3, "{:?}", body(&both).guards());
}
