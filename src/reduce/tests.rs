//! Graphs made smaller under predicates that stand for faults.

use super::*;
use tgc_ir::text::{parse_module, print_module};

fn module(text: &str) -> Module {
    parse_module(text, &|_| None).unwrap_or_else(|e| panic!("{}", e[0].render(Some(text))))
}

/// Some graph has an `inner` result that an `outer` reads.
fn has(m: &Module, outer: &str, inner: &str) -> bool {
    let is = |g: &Graph, id, name: &str| g.op_of(id).is_some_and(|op| op.name() == name);
    m.graphs().any(|g| {
        let of = |id: NodeId| g.operands(id).iter().any(|v| is(g, v.node, inner));
        g.ids().into_iter().any(|id| is(g, id, outer) && of(id))
    })
}

const GRAPH: &str = r#"weight "w" : f32[4, 8] = dense<[[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]]>

graph @side(%a: f32[n]) -> f32[n] "z" {
  %0 = neg %a : f32[n]
  return %0
}

graph @main(%x: f32[n, 4], %y: f32[n, 8], %u: i64[n]) -> (f32[n, 8] "p", f32[8, n] "q", f32[n] "r") {
  %w = weight {name = "w", dtype = f32, shape = (4, 8)} : f32[4, 8]
  %0 = tanh %x : f32[n, 4]
  %1 = matmul %0, %w : f32[n, 8]
  %2 = exp %1 : f32[n, 8]
  %3 = add %2, %y : f32[n, 8]
  %4 = relu %3 : f32[n, 8]
  %5 = transpose %4 {perm = [1, 0]} : f32[8, n]
  %6 = reduce_sum %y {axes = [1]} : f32[n]
  return %3, %5, %6
}
"#;

#[test]
fn what_matters_is_left() {
    let m = module(GRAPH);
    let small = reduce(&m, &mut |m| has(m, "exp", "matmul")).unwrap();
    let text = print_module(&small);
    insta::assert_snapshot!(text, @r#"
    graph @main(%v1: f32[1, 1], %v0: f32[1, 1]) -> f32[1, 1] "q" {
      %0 = matmul %v0, %v1 : f32[1, 1]
      %1 = exp %0 : f32[1, 1]
      return %1
    }
    "#);
    assert_eq!(print_module(&module(&text)), text);
}

#[test]
fn sizes_and_weights_stay_where_they_matter() {
    let m = module(GRAPH);
    let fails = |m: &Module| {
        let eight =
            |g: &Graph| g.inputs().iter().any(|&node| g.ty(Value { node, result: 0 }).unwrap().rank() > 0);
        m.weights.contains_key("w") && m.weights["w"].shape[1] > 2 && m.graphs().any(eight)
    };
    let small = reduce(&m, &mut |m| fails(m)).unwrap();
    assert_eq!(small.weights["w"].shape, [1, 3]);
    assert_eq!(small.weights["w"].to_f64(), [1.0, 2.0, 3.0]);
    assert!(small.entries["main"].body.symbols.is_empty());
}

#[test]
fn an_operand_of_the_same_type_takes_a_nodes_place() {
    let m = module(
        "graph @main(%x: f32[3]) -> f32[3] { %0 = exp %x : f32[3] %1 = neg %0 : f32[3] %2 = abs %1 : f32[3] return %2 }",
    );
    let names = |m: &Module| -> Vec<&str> {
        let g = &m.entries["main"].body;
        g.topo().into_iter().filter_map(|id| g.op_of(id)).map(Op::name).collect()
    };
    // exp and abs in one graph, whatever lies between
    let small = reduce(&m, &mut |m| ["exp", "abs"].iter().all(|n| names(m).contains(n))).unwrap();
    assert_eq!(names(&small), ["input", "exp", "abs"]);
}

#[test]
fn states_are_refused() {
    let mut m = module(GRAPH);
    let state = tgc_ir::module::State { ty: Type::fixed(tgc_ir::types::DType::F32, &[2]) };
    m.states.insert("s".into(), state);
    assert_eq!(reduce(&m, &mut |_| true).unwrap_err()[0].code, "E-CLI-008");
}
