//! Breaks each invariant once: by text where the parser lets it through, else by the graph's own functions.

use super::*;
use crate::graph::{Guard, Value};
use crate::ops::{BindDim, Constant};
use crate::tensor::{Data, Tensor};
use crate::text::{parse_graph, parse_module};
use crate::types::{DType, Dim, Fact, Pred, SymInfo};

fn codes(d: &[Diag]) -> Vec<&str> {
    d.iter().map(|d| d.code).collect()
}

fn module(text: &str) -> Module {
    let none = |_: &str| None;
    parse_module(text, &none).unwrap_or_else(|e| panic!("{}", e[0].render(Some(text))))
}

fn module_codes(text: &str) -> Vec<String> {
    verify(&module(text)).iter().map(|d| d.code.to_string()).collect()
}

/// `%y = add %x, %x; return %y`
fn small() -> (crate::graph::Graph, Value, Value) {
    let g = parse_graph("graph @f(%x: f32[n, 4]) -> f32[n, 4] { %y = add %x, %x : f32[n, 4] return %y }")
        .unwrap();
    let x = Value { node: g.inputs()[0], result: 0 };
    let y = g.outputs()[0].value;
    assert!(verify_graph(&g, None).is_empty());
    (g, x, y)
}

#[test]
fn v1_operands_exist() {
    let (mut g, x, y) = small();
    g.replace_uses(x, Value { node: x.node, result: 7 });
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-001"]);
    assert!(verify_graph(&g, None)[0].message.contains("`add` (%0)"), "{:?}", verify_graph(&g, None));
    let _ = y;
}

#[test]
fn v2_no_cycles() {
    let (mut g, x, y) = small();
    g.replace_uses(x, y);
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-002"]);
}

#[test]
fn v3_types_are_the_inferred_ones() {
    let text = "graph @f(%x: f32[4], %z: f32[4, 1]) -> f32[4] { %y = add %x, %x : f32[4] return %y }";
    let mut g = parse_graph(text).unwrap();
    let (x, z) = (Value { node: g.inputs()[0], result: 0 }, Value { node: g.inputs()[1], result: 0 });
    g.replace_uses(x, z);
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-003"]);
}

#[test]
fn v3_constraints_hold() {
    let text = "graph @f(%x: f32[4], %z: i32[4]) -> f32[8] {
      %a = add %x, %x : f32[4]
      %y = reshape %z {shape = (2, 2)} : i32[2, 2]
      %b = constant splat 0.0 : f32[8]
      return %b }";
    let mut g = parse_graph(text).unwrap();
    let (x, b) = (Value { node: g.inputs()[0], result: 0 }, g.outputs()[0].value);
    let y = *g.ids().iter().find(|i| g.op_of(**i).unwrap().name() == "reshape").unwrap();
    g.replace_uses(g.operands(y)[0], b);
    let found = verify_graph(&g, None);
    assert_eq!(codes(&found), ["E-VER-003"]);
    assert!(found[0].message.contains("reshape.c1"), "{found:?}");
    let _ = x;
}

#[test]
fn v4_guards_are_there() {
    let text = "graph @f(%x: f32[n], %z: f32[m]) -> f32[bcast(m, n)]
      dim n in 1..1
      dim m in 0..9
    { %y = add %x, %z : f32[bcast(m, n)] return %y }";
    let mut g = parse_graph(text).unwrap();
    assert!(g.guards().is_empty() && verify_graph(&g, None).is_empty());
    g.symbols.insert("n", SymInfo { lo: 0, hi: 9, named: true });
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-004"]);
}

#[test]
fn v4_a_guard_outside_covers_a_region() {
    let region = |guard: &str| {
        let text = format!(
            "graph @f(%x: f32[n], %z: f32[m]) -> f32[bcast(m, n)]
               {guard}
             {{ %y = fused(%x, %z) {{ ^(%a: f32[n], %b: f32[m]): %c = add %a, %b : f32[bcast(m, n)] return %c }} : f32[bcast(m, n)]
               return %y }}"
        );
        parse_graph(&text).unwrap()
    };
    let mut g = region("guard broadcastable(n, m)");
    assert!(verify_graph(&g, None).is_empty());
    g = region("");
    assert_eq!(g.all_guards().len(), 1);
    assert!(verify_graph(&g, None).is_empty());
}

#[test]
fn v5_outputs_exist() {
    let (mut g, x, _) = small();
    g.output("z", Value { node: crate::graph::NodeId(99), result: 0 });
    g.output("w", Value { node: x.node, result: 1 });
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-005", "E-VER-005"]);
}

#[test]
fn v6_inputs_are_the_input_nodes() {
    let (mut g, _, _) = small();
    g.add(crate::ops::Input::default().into(), &[], Vec::new(), Loc::default()).unwrap();
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-006"]);
}

#[test]
fn v7_regions_have_no_symbols_of_their_own() {
    let text =
        "graph @f(%x: f32[n]) -> f32[n] { %y = fused(%x) { ^(%a: f32[n]): return %a } : f32[n] return %y }";
    let g = parse_graph(text).unwrap();
    let fused = g.outputs()[0].value.node;
    let mut region = g.node(fused).unwrap().regions[0].clone();
    region.symbols.insert("q", SymInfo::default());
    let mut h = crate::graph::Graph::new("f");
    h.symbols = g.symbols.clone();
    let x = h.input("x", g.ty(g.outputs()[0].value).unwrap().clone(), Loc::default());
    let y = h.add(g.op_of(fused).unwrap().clone(), &[x], vec![region], Loc::default()).unwrap();
    h.output("y0", Value { node: y, result: 0 });
    assert_eq!(codes(&verify_graph(&h, None)), ["E-VER-007"]);
}

#[test]
fn v7_faults_inside_regions_are_found() {
    let text = "graph @f(%x: f32[4]) -> f32[4] { %y = fused(%x) { ^(%a: f32[4]): %b = add %a, %a : f32[4] return %b } : f32[4] return %y }";
    let g = parse_graph(text).unwrap();
    let fused = g.outputs()[0].value.node;
    let mut region = g.node(fused).unwrap().regions[0].clone();
    let a = Value { node: region.inputs()[0], result: 0 };
    region.replace_uses(a, region.outputs()[0].value);
    let mut h = crate::graph::Graph::new("f");
    let x = h.input("x", crate::types::Type::fixed(DType::F32, &[4]), Loc::default());
    let y = h.add(g.op_of(fused).unwrap().clone(), &[x], vec![region], Loc::default()).unwrap();
    h.output("y0", Value { node: y, result: 0 });
    let found = verify_graph(&h, None);
    assert_eq!(codes(&found), ["E-VER-002"]);
    assert_eq!(found[0].notes, ["inside region 0 of `fused` (%0)"]);
}

#[test]
fn v8_names_differ() {
    let text =
        "graph @f(%0: f32[4] \"x\", %1: f32[4] \"x\") -> (f32[4] \"y\", f32[4] \"y\") { return %0, %1 }";
    assert_eq!(codes(&verify_graph(&parse_graph(text).unwrap(), None)), ["E-VER-008", "E-VER-008"]);
}

#[test]
fn v9_symbols_are_declared() {
    let (mut g, _, _) = small();
    g.symbols = crate::types::SymTable::default();
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-009", "E-VER-009"]);
    let mut h = parse_graph("graph @f(%x: f32[4]) -> f32[4] { return %x }").unwrap();
    h.guard(Guard { pred: Pred::Le(Dim::from(1), Dim::sym("q")), why: String::new(), at: Loc::default() });
    assert_eq!(codes(&verify_graph(&h, None)), ["E-VER-009"]);
}

#[test]
fn v10_ranges_are_sane() {
    for range in ["-1..4", "5..4"] {
        let text = format!("graph @f(%x: f32[n]) -> f32[n]\n dim n in {range}\n{{ return %x }}");
        assert!(codes(&verify_graph(&parse_graph(&text).unwrap(), None)).contains(&"E-VER-010"));
    }
}

#[test]
fn v11_symbols_are_bound_once() {
    let (mut g, _, _) = small();
    let n =
        g.op(Constant::scalar(crate::scalar::Scalar::from_int(DType::I64, 3)), &[], &Loc::default()).unwrap();
    g.symbols.insert("k", SymInfo::default());
    g.op(BindDim { symbol: "n".into() }, &[n], &Loc::default()).unwrap();
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-011"]);
    g.op(BindDim { symbol: "k".into() }, &[n], &Loc::default()).unwrap();
    g.op(BindDim { symbol: "k".into() }, &[n], &Loc::default()).unwrap();
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-011", "E-VER-011"]);
}

#[test]
fn v12_symbols_have_a_source() {
    let text =
        "graph @f(%x: f32[4]) -> f32[k]\n dim k in 0..9\n { %y = constant splat 0.0 : f32[k] return %y }";
    assert_eq!(codes(&verify_graph(&parse_graph(text).unwrap(), None)), ["E-VER-012"]);
    for (dims, found) in
        [("floordiv(n, 2)", 1), ("2*n + 1", 0), ("n + m, m", 0), ("n + m, n + m", 2), ("n*n", 1)]
    {
        let text = format!("graph @f(%x: f32[{dims}]) -> f32[{dims}] {{ return %x }}");
        assert_eq!(
            codes(&verify_graph(&parse_graph(&text).unwrap(), None)),
            vec!["E-VER-012"; found],
            "{dims}"
        );
    }
}

#[test]
fn v13_states_are_those_of_the_module() {
    let with = |state: &str, rest: &str| {
        module_codes(&format!(
            "{state}\ngraph @f(%k: f32[4] state \"kv\") -> f32[4] state \"kv\" {{ return %k }}{rest}"
        ))
    };
    assert!(with("state \"kv\" : f32[4]", "").is_empty());
    assert_eq!(with("state \"kv\" : f32[5]", ""), ["E-VER-013", "E-VER-013"]);
    assert_eq!(with("", ""), ["E-VER-013", "E-VER-013"]);
    let text = "state \"s\" : f32[4]\ngraph @f(%a: f32[4] state \"s\", %b: f32[4] state \"s\") -> f32[4] { return %a }";
    assert_eq!(module_codes(text), ["E-VER-013"]);
}

#[test]
fn v14_weights_are_there() {
    let text = "graph @f(%a: f32[2] default \"d\") -> f32[2] { %w = weight \"w\" : f32[2] return %w }";
    assert_eq!(module_codes(text), ["E-VER-014", "E-VER-014"]);
    let with = |ty: &str| {
        format!("weight \"w\" : {ty} = dense<[1, 2]>\nweight \"d\" : {ty} = dense<[1, 2]>\n{text}")
    };
    assert!(module_codes(&with("f32[2]")).is_empty());
    assert_eq!(module_codes(&with("i32[2]")), ["E-VER-014", "E-VER-014"]);
}

#[test]
fn v15_variants_have_one_signature() {
    let text = "graph @f(%x: f32[n]) -> f32[n]\n variant when eq(n, 1) { return %x }\n { return %x }";
    let mut m = module(text);
    assert!(verify(&m).is_empty());
    let mut other = parse_graph("graph @f(%z: f32[n]) -> (f32[n], f32[n]) { return %z, %z }").unwrap();
    std::mem::swap(m.entries[0].variants[0].body.as_mut().unwrap(), &mut other);
    assert_eq!(codes(&verify(&m)), ["E-VER-015", "E-VER-015"]);
    m.entries[0].variants[0] =
        crate::module::Variant { when: Pred::Eq(Dim::sym("q"), Dim::from(1)), body: Err("no".into()) };
    assert_eq!(codes(&verify(&m)), ["E-VER-009"]);
}

#[test]
fn v16_known_elements_fit() {
    let g = parse_graph("graph @f() -> i64[2] { %c = constant [1, 2] : i64[2] return %c }").unwrap();
    let fact: &Fact = g.fact(g.outputs()[0].value).unwrap();
    assert_eq!(fact.known.as_ref().unwrap().0.len(), 2);
    let mut h = g.clone();
    let c = h.outputs()[0].value;
    h.break_known(c);
    assert_eq!(codes(&verify_graph(&h, None)), ["E-VER-016"]);
}

#[test]
fn v17_data_is_complete() {
    let mut m = module("graph @f() -> f32[] { %c = constant 1.0 : f32[] return %c }");
    let short = Tensor { dtype: DType::F32, shape: vec![3], data: Data::new(vec![0u8; 8]) };
    m.weights.insert("w".into(), short.clone());
    assert_eq!(codes(&verify(&m)), ["E-VER-017"]);
    m.weights.clear();
    let g = &mut m.entries[0].body;
    g.op(Constant { value: short, shape: None }, &[], &Loc::default()).unwrap();
    assert_eq!(codes(&verify(&m)), ["E-VER-017"]);
}

#[test]
fn v18_guards_can_hold() {
    let (mut g, _, _) = small();
    g.guard(Guard { pred: Pred::Le(Dim::from(2), Dim::sym("n")), why: String::new(), at: Loc::default() });
    assert!(verify_graph(&g, None).is_empty());
    g.symbols.insert("n", SymInfo { lo: 0, hi: 1, named: true });
    assert_eq!(codes(&verify_graph(&g, None)), ["E-VER-018"]);
}

#[test]
fn v19_entry_names() {
    let (g, _, _) = small();
    let mut m = Module::single(g);
    assert!(verify(&m).is_empty());
    m.entries[0].body.name = "other".into();
    assert_eq!(codes(&verify(&m)), ["E-VER-019"]);
}

#[test]
fn faults_name_the_place() {
    let text =
        "graph @f(%x: f32[4], %z: f32[2]) -> f32[4] { %y = add %x, %x : f32[4] loc \"node `A`\" return %y }";
    let mut g = parse_graph(text).unwrap();
    let (x, z) = (Value { node: g.inputs()[0], result: 0 }, Value { node: g.inputs()[1], result: 0 });
    g.replace_uses(x, z);
    assert_eq!(&*verify_graph(&g, None)[0].at.place, "node `A`");
}
