//! What cannot be imported is said: everything at once, with place and remedy, and nothing that only follows from it.

use crate::model::*;
use bytes::Bytes;
use tgc_frontend::onnx::{ImportOptions, import, import_bytes};

#[test]
fn every_blocker_is_listed_and_followers_are_silent() {
    let m = model(13).input("x", F32, &["2", "3"]).ints("t", &[4, -1]);
    let m = m
        .node("Frobnicate", &["x"], &["a"], &[])
        .named("f1")
        .node("Frobnicate", &["a"], &["b"], &[])
        .named("f2");
    let m = m.node("Add", &["b", "x"], &["c"], &[]).node("LSTM", &["c", "x", "x"], &["d"], &[]);
    let m = m.node("Reshape", &["x", "t"], &["e"], &[]).named("r").node(
        "Relu",
        &["x"],
        &["g"],
        &[("slope", A::F(1.0))],
    );
    let m = m.output("d").output("e").output("g");
    let v = m.errors();
    let codes: Vec<_> = v.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E-ONNX-006", "E-ONNX-006", "E-ONNX-022", "E-ONNX-007"], "{v:#?}");
    assert!(v[0].message.contains("Frobnicate") && v[0].message.contains("2 nodes"));
    assert_eq!(v[0].notes, ["node `f1` (Frobnicate)", "node `f2` (Frobnicate)"]);
    assert!(v[1].message.contains("LSTM"));
    assert!(v[2].at.place.contains("node `r` (Reshape)"), "{}", v[2]);
    assert!(v[3].message.contains("slope"), "{}", v[3]);
    assert!(v.iter().all(|d| d.help.is_some() || d.code == "E-ONNX-022"));
}

#[test]
fn versions() {
    let with = |f: &dyn Fn(&mut tgc_proto::ModelProto)| {
        let mut m = model(13).input("x", F32, &["1"]).node("Relu", &["x"], &["y"], &[]).output("y");
        f(&mut m.0);
        m.errors()
    };
    let zero = with(&|m| m.opset_import[0].version = Some(0));
    assert!(zero.iter().any(|d| d.code == "E-ONNX-005"), "{zero:?}");
    assert_eq!(with(&|m| m.opset_import[0].version = Some(99))[0].code, "E-ONNX-005");
    let none = with(&|m| m.opset_import.clear());
    assert_eq!(none.iter().map(|d| d.code).collect::<Vec<_>>(), ["E-ONNX-006", "E-ONNX-005"]);
    assert_eq!(with(&|m| m.ir_version = Some(99))[0].code, "E-ONNX-004");
    assert_eq!(with(&|m| m.ir_version = None)[0].code, "E-ONNX-004");
}

#[test]
fn other_domains_are_refused_only_when_used() {
    let mut m = model(13).input("x", F32, &["1"]).node("Relu", &["x"], &["y"], &[]).output("y");
    m.0.opset_import
        .push(tgc_proto::OperatorSetIdProto { domain: Some("ai.onnx.ml".into()), version: Some(3) });
    m.import();
    m.0.graph.as_mut().unwrap().node[0].domain = Some("ai.onnx.ml".into());
    let e = m.error();
    assert!(e.message.contains("ai.onnx.ml.Relu"), "{e}");
}

#[test]
fn names() {
    let m = model(13).input("x", F32, &["1"]).node("Add", &["x", "ghost"], &["y"], &[]).output("y");
    assert!(m.error().message.contains("`ghost`"));
    let m = model(13)
        .input("x", F32, &["1"])
        .node("Relu", &["x"], &["y"], &[])
        .node("Neg", &["x"], &["y"], &[])
        .output("y");
    assert_eq!(m.error().code, "E-ONNX-010");
    let m = model(13).input("x", F32, &["1"]).node("Relu", &["x"], &["y"], &[]).output("z");
    assert_eq!(m.error().code, "E-ONNX-009");
    let m = model(13)
        .input("x", F32, &["1"])
        .input("x", F32, &["1"])
        .node("Relu", &["x"], &["y"], &[])
        .output("y");
    assert_eq!(m.error().code, "E-ONNX-010");
    let m = model(13).input("x", F32, &["1"]).node("Relu", &["x"], &["y"], &[]);
    assert_eq!(m.error().code, "E-ONNX-003");
}

#[test]
fn cycles() {
    let m = model(13)
        .input("x", F32, &["1"])
        .node("Add", &["x", "b"], &["a"], &[])
        .node("Neg", &["a"], &["b"], &[])
        .output("b");
    let e = m.error();
    assert_eq!((e.code, e.notes.len()), ("E-ONNX-011", 2));
}

#[test]
fn sizes_that_depend_on_data() {
    let m = model(13)
        .input("x", F32, &["6"])
        .input("t", I64, &["2"])
        .node("Reshape", &["x", "t"], &["y"], &[])
        .output("y");
    let e = m.error();
    assert_eq!(e.code, "E-ONNX-016");
    assert!(e.message.contains("depends on the data") && e.notes[0].contains("input `t`"), "{e}");
}

#[test]
fn training() {
    let p = |m: M| ["s", "b", "m", "v"].iter().fold(m, |m, n| m.init(floats(n, &[1], &[1.0])));
    let m = p(model(15).input("x", F32, &["1", "1", "2"]));
    let m = m
        .node("BatchNormalization", &["x", "s", "b", "m", "v"], &["y"], &[("training_mode", A::I(1))])
        .output("y");
    assert_eq!(m.error().code, "E-ONNX-023");
}

#[test]
fn inputs_that_are_no_tensors() {
    let mut m = model(13).input("x", 8, &["1"]).node("Relu", &["x"], &["y"], &[]).output("y");
    assert_eq!(m.error().code, "E-ONNX-008");
    m.0.graph.as_mut().unwrap().input[0].r#type = None;
    assert_eq!(m.error().code, "E-ONNX-012");
}

#[test]
fn hostile_attributes_are_errors() {
    for k in [0, -1, i64::MIN, i64::MAX] {
        let m = model(12).input("x", F32, &["1", "1", "4"]);
        let m = m.node("MaxPool", &["x"], &["y"], &[("kernel_shape", A::Is(&[k]))]).output("y");
        assert_eq!(m.error().code, "E-ONNX-007", "{k}");
    }
    for axis in [i64::MIN, i64::MAX, 2, -3] {
        let m = model(13)
            .input("x", F32, &["2", "2"])
            .node("Softmax", &["x"], &["y"], &[("axis", A::I(axis))])
            .output("y");
        assert_eq!(m.errors().len(), 1, "{axis}");
    }
}

#[test]
fn endless_functions_end() {
    let mut m = model(13).input("x", F32, &["1"]).node("F", &["x"], &["y"], &[]).output("y");
    m.0.graph.as_mut().unwrap().node[0].domain = Some("d".into());
    let mut inner = node("F", &["a"], &["b"], &[]);
    inner.domain = Some("d".into());
    m.0.functions.push(tgc_proto::FunctionProto {
        name: Some("F".into()),
        domain: Some("d".into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: vec![inner],
        ..Default::default()
    });
    assert_eq!(m.error().code, "E-ONNX-017");
}

#[test]
fn symbolic_sizes_do_not_explode() {
    let mut m = model(13).input("x", F32, &["a", "b"]).node("Shape", &["x"], &["s0"], &[]).ints("z", &[0]);
    m = m.node("ReduceSum", &["s0", "z"], &["t0"], &[]);
    for k in 0..40 {
        m = m.node("Mul", &[&format!("t{k}"), &format!("t{k}")], &[&format!("t{}", k + 1)], &[]);
    }
    assert_eq!(m.output("t40").error().code, "E-ONNX-017");
}

fn decode(b: &[u8]) -> tgc_ir::diag::Diag {
    import_bytes(Bytes::copy_from_slice(b), None, &ImportOptions::default()).unwrap_err().remove(0)
}

#[test]
fn what_is_no_model() {
    assert!(decode(b"").message.contains("empty"));
    assert!(decode(b"PK\x03\x04 and so on").message.contains("zip"));
    assert!(decode(b"version https://git-lfs.github.com/spec/v1\n").message.contains("LFS"));
    assert_eq!(decode(b"hello world, this is text").code, "E-ONNX-002");
    let whole = model(13).input("x", F32, &["1"]).node("Relu", &["x"], &["y"], &[]).output("y").bytes();
    assert_eq!(decode(&whole[..whole.len() - 3]).code, "E-ONNX-002");
    let e =
        import(std::path::Path::new("no/such/file.onnx"), &ImportOptions::default()).unwrap_err().remove(0);
    assert!(e.code == "E-ONNX-001" && e.message.contains("no/such/file.onnx"), "{e}");
    let e = import(&std::env::temp_dir(), &ImportOptions::default()).unwrap_err().remove(0);
    assert_eq!(e.code, "E-ONNX-001");
}
