//! Forms that are easy to get wrong, seen as lists of nodes. That files run, and compute the same, is for tests/export.

use super::{ExportOptions, External, export};
use std::collections::BTreeMap;
use tgc_ir::diag::Diag;
use tgc_ir::module::Module;
use tgc_proto::{Message, ModelProto};

fn module(text: &str) -> Module {
    tgc_ir::text::parse_module(text, &|_| None).unwrap()
}

fn exported(text: &str, options: &ExportOptions) -> Result<ModelProto, Vec<Diag>> {
    let bytes = export(&module(text), options)?.to_bytes().map_err(|d| vec![d])?;
    Ok(ModelProto::decode(&bytes[..]).unwrap())
}

fn at(opset: i64) -> ExportOptions {
    ExportOptions { opset, ..ExportOptions::default() }
}

/// Operators in order.
fn operators(text: &str, opset: i64) -> String {
    let m = exported(text, &at(opset)).unwrap();
    let nodes = m.graph.unwrap().node;
    nodes.iter().filter_map(|n| n.op_type.as_deref()).collect::<Vec<_>>().join(" ")
}

/// Integer vectors among the initializers, by name.
fn vectors(m: &ModelProto) -> BTreeMap<String, Vec<i64>> {
    let list = |t: &tgc_proto::TensorProto| {
        let raw = t.raw_data.as_ref()?;
        let v = raw.chunks_exact(8).map(|c| i64::from_le_bytes(c.try_into().unwrap())).collect();
        (t.data_type == Some(7)).then(|| (t.name.clone().unwrap(), v))
    };
    m.graph.iter().flat_map(|g| &g.initializer).filter_map(list).collect()
}

#[test]
fn the_best_form_follows_the_opset() {
    let gelu = "graph @g(%x: f32[n, 4]) -> (f32[n, 4] \"y\") {\n  %y = gelu %x : f32[n, 4]\n  return %y\n}\n";
    assert_eq!(operators(gelu, 20), "Gelu");
    assert_eq!(operators(gelu, 19), "Mul Erf Mul Add Mul");
    let norm = "graph @g(%x: f32[n, 4], %s: f32[4]) -> (f32[n, 4] \"y\") {\n  \
                %y = layer_norm %x, %s {axes = [-1]} : f32[n, 4]\n  return %y\n}\n";
    assert_eq!(operators(norm, 17), "LayerNormalization");
    assert!(operators(norm, 16).starts_with("ReduceMean Sub"), "{}", operators(norm, 16));
    let first = norm.replace("[-1]", "[0]").replace("f32[4]", "f32[1]");
    assert!(operators(&first, 21).starts_with("ReduceMean Sub"), "axes that are not the last ones");
}

#[test]
fn reshapes_to_one_unknown_size_are_constant() {
    let text = "graph @g(%x: f32[n, s, 8]) -> (f32[n, s, 2, 4] \"a\", f32[n*s, 8] \"b\", f32[s, n*8] \"c\") {\n  \
                %a = reshape %x {shape = (n, s, 2, 4)} : f32[n, s, 2, 4]\n  \
                %b = reshape %x {shape = (n*s, 8)} : f32[n*s, 8]\n  \
                %c = reshape %x {shape = (s, 8*n)} : f32[s, 8*n]\n  return %a, %b, %c\n}\n";
    let m = exported(text, &at(21)).unwrap();
    let found: Vec<Vec<i64>> = vectors(&m).into_values().filter(|v| v.len() > 1).collect();
    assert_eq!(found, [vec![0, 0, 2, 4], vec![-1, 8]]);
    assert_eq!(operators(text, 21), "Reshape Reshape Shape Shape Mul Concat Reshape");
}

#[test]
fn sizes_are_computed_once() {
    let text = "graph @g(%x: f32[n]) -> (i64[2] \"a\", i64[] \"b\")\n  dim n in 1..100\n{\n  \
                %a = const_dims {dims = (2*n + 1, 2*n + 1)} : i64[2]\n  \
                %b = const_dims {dims = (floordiv(n, 3),), scalar = true} : i64[]\n  return %a, %b\n}\n";
    assert_eq!(operators(text, 21), "Shape Mul Add Concat Div Squeeze");
}

#[test]
fn floor_division_of_what_may_be_negative() {
    let text = "graph @g(%x: f32[n]) -> (i64[] \"a\")\n  dim n in 0..100\n{\n  \
                %a = const_dims {dims = (floordiv(n - 3, 2),), scalar = true} : i64[]\n  return %a\n}\n";
    // the constant is split off: floordiv(n - 4 + 1, 2)
    let found = operators(text, 21);
    assert!(!found.contains("Mod"), "{found}");
    let two = text
        .replace("floordiv(n - 3, 2)", "floordiv(n - m, 2)")
        .replace("%x: f32[n]", "%x: f32[n], %y: f32[m]");
    let found = operators(&two, 21);
    assert!(found.contains("Sub Mod Sub Div"), "{found}");
}

#[test]
fn reverse_slices_end_before_the_first_element() {
    let text = "graph @g(%x: f32[5]) -> (f32[5] \"y\") {\n  \
                %y = slice %x {starts = (4,), sizes = (5,), steps = [-1]} : f32[5]\n  return %y\n}\n";
    let m = exported(text, &at(21)).unwrap();
    assert!(vectors(&m).values().any(|v| *v == [i64::MIN]), "{:?}", vectors(&m));
}

#[test]
fn limits_are_one_node() {
    let text = "graph @g(%x: f32[n]) -> (f32[n] \"y\") {\n  %a = constant 0.0 : f32[]\n  %b = constant 6.0 : f32[]\n  \
                %c = lt %x, %a : bool[n]\n  %d = select %c, %a, %x : f32[n]\n  \
                %e = lt %b, %d : bool[n]\n  %y = select %e, %b, %d : f32[n]\n  return %y\n}\n";
    assert_eq!(operators(text, 21), "Clip");
}

#[test]
fn every_blocker_is_named() {
    let text = "graph @g(%x: i32[n]) -> (i32[n] \"a\", i32[n] \"b\") {\n  %a = and %x, %x : i32[n]\n  \
                %b = xor %x, %x : i32[n]\n  return %a, %b\n}\n";
    let d = exported(text, &at(17)).unwrap_err();
    let said: Vec<&str> = d.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("BitwiseAnd exists from opset 18 on"), "{said:?}");
    assert_eq!(operators(text, 18), "BitwiseAnd BitwiseXor");
    let d = exported(text, &at(12)).unwrap_err();
    assert!(d[0].help.as_deref().is_some_and(|h| h.contains("13 to 28")), "{d:?}");
}

#[test]
fn axes_get_names() {
    let text = "graph @g(%x: f32[n, 2*n, 4]) -> (f32[n, 2*n, 4] \"y\") {\n  %y = neg %x : f32[n, 2*n, 4]\n  return %y\n}\n";
    let named = |s: &str| ExportOptions { axes: vec![s.parse().unwrap()], ..ExportOptions::default() };
    let m = exported(text, &named("x:0=batch")).unwrap();
    let shape = format!("{:?}", m.graph.unwrap().input[0]);
    assert!(shape.contains("DimParam(\"batch\")") && shape.contains("DimParam(\"2*batch\")"), "{shape}");
    for (name, word) in [
        ("x:1=m", "not a symbol"),
        ("x:2=m", "always 4"),
        ("y:0=m", "no such input"),
        ("x:3=m", "no such axis"),
    ] {
        let d = exported(text, &named(name)).unwrap_err();
        assert!(d[0].message.contains(word), "{name}: {}", d[0].message);
    }
}

#[test]
fn one_entry_is_chosen() {
    let text = "graph @a(%x: f32[n]) -> (f32[n] \"y\") {\n  %y = neg %x : f32[n]\n  return %y\n}\n\n\
                graph @b(%x: f32[n]) -> (f32[n] \"y\") {\n  %y = exp %x : f32[n]\n  return %y\n}\n";
    let d = exported(text, &at(21)).unwrap_err();
    assert!(d[0].help.as_deref().is_some_and(|h| h.ends_with("a, b")), "{d:?}");
    let options = ExportOptions { entry: Some("b".into()), ..ExportOptions::default() };
    assert_eq!(exported(text, &options).unwrap().graph.unwrap().node[0].op_type.as_deref(), Some("Exp"));
}

#[test]
fn weights_go_beside_the_file() {
    let text = "weight \"w\" : f32[2, 2] = dense<[[1.0, 2.0], [3.0, 4.0]]>\n\n\
                graph @g(%x: f32[n, 2]) -> (f32[n, 2] \"y\") {\n  %w = weight \"w\" : f32[2, 2]\n  \
                %y = matmul %x, %w : f32[n, 2]\n  return %y\n}\n";
    let folder = std::env::temp_dir().join(format!("tgc-export-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let options = ExportOptions { external: External::Always, ..ExportOptions::default() };
    let mut m = module(text);
    let big = tgc_ir::tensor::Tensor::from_f64(tgc_ir::types::DType::F32, &[2, 2048], &vec![1.5; 4096]);
    m.weights.insert("w".into(), big);
    let files = export(&m, &options).unwrap().write(&folder, "m.onnx").unwrap();
    assert_eq!(files, ["m.onnx.data", "m.onnx"]);
    assert_eq!(std::fs::metadata(folder.join("m.onnx.data")).unwrap().len(), 16384);
    let read = ModelProto::decode(&std::fs::read(folder.join("m.onnx")).unwrap()[..]).unwrap();
    let t = &read.graph.unwrap().initializer[0];
    let said: Vec<(&str, &str)> =
        t.external_data.iter().map(|e| (e.key.as_deref().unwrap(), e.value.as_deref().unwrap())).collect();
    assert_eq!(said, [("location", "m.onnx.data"), ("offset", "0"), ("length", "16384")]);
    assert!(t.raw_data.is_none());
    let missing = export(&m, &options).unwrap().write(&folder.join("absent"), "m.onnx").unwrap_err();
    assert_eq!(missing.code, "E-EXP-006");
    std::fs::remove_dir_all(&folder).unwrap();
}
