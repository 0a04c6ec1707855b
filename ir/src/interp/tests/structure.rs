//! Tests of binding, variants, defaults, regions, segments and limits.

use super::*;

#[test]
fn binding_names_input_axis_found_and_allowed() {
    let m = module(
        "graph @main(%x: f32[batch, s], %y: f32[batch, 2*s + 1]) -> f32[batch, s]
      dim batch in 1..64
      dim s in 1..8
      guard eq(s, 2) \"two only\"
    {
      return %x
    }",
    );
    let g = &m.entries["main"].body;
    let b = bind(g, &[vec![3, 2], vec![3, 5]]).unwrap();
    assert_eq!((b["batch"], b["s"]), (3, 2));
    let fails = |x: &[usize], y: &[usize]| {
        let d = bind(g, &[x.to_vec(), y.to_vec()]).unwrap_err();
        assert!(d.help.is_some(), "{d}");
        (d.code, d.render(None))
    };
    let (code, text) = fails(&[65, 2], &[65, 5]);
    assert!(
        code == "E-RUN-005" && text.contains("dim `batch` is 65 (input `x`, axis 0); allowed: 1..64"),
        "{text}"
    );
    let (code, text) = fails(&[3, 2], &[4, 5]);
    assert!(
        code == "E-RUN-004"
            && text.contains("input `y`, axis 0 has size 4, but dim `batch` is 3 (input `x`, axis 0)"),
        "{text}"
    );
    let (code, text) = fails(&[3, 2], &[3, 6]);
    assert!(
        code == "E-RUN-004"
            && text.contains("axis 1 has size 6; allowed: 5 (`2*s + 1`)")
            && text.contains("`s` is 2"),
        "{text}"
    );
    assert_eq!(fails(&[3], &[3, 5]).0, "E-RUN-003");
    let (code, text) = fails(&[3, 3], &[3, 7]);
    assert!(code == "E-RUN-007" && text.contains("two only") && text.contains("`s` is 3"), "{text}");
    assert_eq!(bind(g, &[vec![3, 2]]).unwrap_err().code, "E-RUN-001");
    let e = run(&m, "main", &[ints(DType::I32, &[1, 2], &[1, 2]), f(&[1, 5], &[0.; 5])]).unwrap_err();
    assert!(
        e.code == "E-RUN-002" && e.message.contains("input `x` has element type i32; allowed: f32"),
        "{e}"
    );
    assert_eq!(run(&m, "other", &[]).unwrap_err().code, "E-RUN-009");
}

#[test]
fn expressions_alone_determine_their_symbol() {
    let m = module("graph @main(%x: f32[2*n + 1]) -> f32[2*n + 1] {\n return %x\n}");
    let g = &m.entries["main"].body;
    assert_eq!(bind(g, &[vec![7]]).unwrap()["n"], 3);
    assert!(bind(g, &[vec![6]]).unwrap_err().message.contains("not of the form `2*n + 1`"));
}

#[test]
fn variants_are_tried_in_order() {
    let m = module(
        "graph @main(%x: f32[n]) -> f32[n]
      variant when eq(n, 1) {
        %0 = neg %x : f32[n]
        return %0
      }
      variant when eq(n, 2) fails \"two is odd\"
    {
      return %x
    }",
    );
    assert_eq!(run(&m, "main", &[f(&[1], &[4.0])]).unwrap()[0].to_f64(), [-4.0]);
    assert_eq!(run(&m, "main", &[f(&[3], &[4.0; 3])]).unwrap()[0].to_f64(), [4.0; 3]);
    let e = run(&m, "main", &[f(&[2], &[4.0; 2])]).unwrap_err();
    assert!(e.code == "E-RUN-008" && e.message.contains("two is odd"), "{e}");
}

#[test]
fn defaults_states_and_weights() {
    let m = module("weight \"w\" : f32[2] = dense<[1.0, 2.0]>
    state \"kv\" : f32[2]
    graph @main(%kv: f32[2] state \"kv\", %x: f32[2], %b: f32[2] default \"w\") -> (f32[2], f32[2] state \"kv\") {
      %w = weight {name = \"w\", dtype = f32, shape = (2,)} : f32[2]
      %0 = add %x, %b : f32[2]
      %1 = mul %kv, %w : f32[2]
      return %0, %1
    }");
    let (kv, x) = (f(&[2], &[10., 10.]), f(&[2], &[0.5, 0.5]));
    let out = run(&m, "main", &[kv.clone(), x.clone()]).unwrap();
    assert_eq!((out[0].to_f64(), out[1].to_f64()), (vec![1.5, 2.5], vec![10., 20.]));
    let out = run(&m, "main", &[kv.clone(), x.clone(), f(&[2], &[0., 0.])]).unwrap();
    assert_eq!(out[0].to_f64(), [0.5, 0.5]);
    let e = run_graph(&m.entries["main"].body, &[kv, x.clone(), x], &|_| None).unwrap_err();
    assert_eq!(e.code, "E-RUN-020");
}

#[test]
fn segments_bind_sizes_on_the_way() {
    let text = "graph @main(%x: f32[n]) -> f32[k]
      dim n in 0..100
      dim k in 0..2
    {
      %0, %1 = non_zero %x : i64[1, n], i64[]
      %2 = bind_dim %1 {symbol = \"k\"} : i64[]
      %3 = slice %0 {starts = (0, 0), sizes = (1, k), steps = [1, 1]} : i64[1, k]
      %4 = reshape %3 {shape = (k,)} : i64[k]
      %5 = gather %x, %4 {axis = 0} : f32[k]
      return %5
    }";
    assert_eq!(nums(text, &[f(&[4], &[0., 5., 0., 7.])]), [5., 7.]);
    assert!(nums(text, &[f(&[4], &[0.; 4])]).is_empty());
    let e = go(text, &[f(&[4], &[1., 5., 0., 7.])]).unwrap_err();
    assert!(
        e.code == "E-RUN-005" && e.message.contains("dim `k` is 3") && e.message.contains("allowed: 0..2"),
        "{e}"
    );
}

#[test]
fn regions_choose_repeat_and_stack() {
    let text = "graph @main(%c: bool[], %x: f32[2]) -> f32[2] {
      %0 = cond(%c, %x) {
        ^(%a: f32[2]):
        %1 = neg %a : f32[2]
        return %1
      } {
        ^(%b: f32[2]):
        return %b
      } : f32[2]
      return %0
    }";
    let x = f(&[2], &[1., 2.]);
    assert_eq!(nums(text, &[ints(DType::Bool, &[], &[1]), x.clone()]), [-1., -2.]);
    assert_eq!(nums(text, &[ints(DType::Bool, &[], &[0]), x]), [1., 2.]);
    let text = "graph @main(%n: i64[], %go: bool[], %x: f32[]) -> (f32[], f32[3]) {
      %0, %1 = repeat(%n, %go, %x) {carried = 1, trip = 3} {
        ^(%i: i64[], %c: bool[], %s: f32[]):
        %2 = add %s, %s : f32[]
        return %c, %2, %s
      } : f32[], f32[3]
      return %0, %1
    }";
    let run3 = |n: i64, go_on: i64| {
        go(text, &[ints(DType::I64, &[], &[n]), ints(DType::Bool, &[], &[go_on]), f(&[], &[1.])])
    };
    let out = run3(3, 1).unwrap();
    assert_eq!((out[0].to_f64(), out[1].to_f64()), (vec![8.], vec![1., 2., 4.]));
    assert_eq!(run3(2, 1).unwrap_err().code, "E-RUN-022");
    assert_eq!(run3(3, 0).unwrap_err().code, "E-RUN-022");
    assert_eq!(run3(i64::MIN, 1).unwrap_err().code, "E-RUN-022");
}

#[test]
fn fused_regions_run_like_their_nodes() {
    let text = "graph @main(%x: f32[n], %y: f32[n]) -> f32[n] {
      %0 = fused(%x, %y) {
        ^(%a: f32[n], %b: f32[n]):
        %c = constant 2.0 : f32[]
        %1 = mul %a, %c : f32[n]
        %2 = add %1, %b : f32[n]
        return %2
      } : f32[n]
      return %0
    }";
    assert_eq!(nums(text, &[f(&[2], &[1., 2.]), f(&[2], &[10., 20.])]), [12., 24.]);
}

#[test]
fn too_big_tensors_are_refused_not_allocated() {
    let text = "graph @main(%x: f32[n]) -> f32[n, 1000000, 1000000] {
      %0 = expand %x {shape = (1, 1, n)} : f32[1, 1, n]
      %1 = constant splat 1.0 : f32[n, 1000000, 1000000]
      return %1
    }";
    let e = go(text, &[f(&[3], &[0.; 3])]).unwrap_err();
    assert!(e.code == "E-RUN-018" && e.message.contains("[3, 1000000, 1000000]"), "{e}");
    let m = module(
        "graph @main(%x: f32[n]) -> f32[n, n] {
      %0 = expand %x {shape = (n, n)} : f32[n, n]
      %1 = neg %0 : f32[n, n]
      %2 = neg %1 : f32[n, n]
      %3 = add %1, %2 : f32[n, n]
      return %3
    }",
    );
    let g = &m.entries["main"].body;
    let x = Rc::new(Val::from_tensor(&f(&[16], &[1.; 16])).unwrap());
    let none = |_: &str| None;
    let with = |budget: u64| {
        let mut b = bind(g, &[vec![16]]).unwrap();
        Exec::new(&none, budget, false).graph(g, std::slice::from_ref(&x), &mut b).map(|v| v.len())
    };
    // two values of 1 KiB live while a third, counted at 8 bytes an element, is made
    assert_eq!(with(4 * 1024).unwrap(), 1);
    assert_eq!(with(3 * 1024).unwrap_err().code, "E-RUN-018");
}

#[test]
fn single_nodes_and_classes_for_the_folder() {
    use crate::ops::{Add, Reshape};
    use crate::types::Dim;
    let (a, b) = (f(&[2], &[1., 2.]), f(&[1], &[3.]));
    let (symbols, none) = (SymTable::default(), Bindings::new());
    let out = eval_node(
        &Op::Add(Add {}),
        &[a.clone(), b.clone()],
        &[],
        &symbols,
        &none,
        &[Type::fixed(DType::F32, &[2])],
    );
    assert_eq!(out.unwrap()[0].to_f64(), [4., 5.]);
    let op = Op::Reshape(Reshape { shape: vec![Dim::sym("n")] });
    let outs = [Type::new(DType::F32, vec![Dim::sym("n")])];
    let e = eval_node(&op, std::slice::from_ref(&a), &[], &symbols, &none, &outs).unwrap_err();
    assert_eq!(e.code, "E-RUN-013");
    let ty = Type::fixed(DType::F32, &[2]);
    let class = match Op::Add(Add {}).lower(&[ty.clone(), ty.clone()], &[ty], &symbols).unwrap() {
        crate::ops::Lowering::Class(c) => c,
        other => panic!("{other:?}"),
    };
    let out = eval_class(&class, &[a.clone(), a], &[(DType::F32, vec![2])], &|_| None).unwrap();
    assert_eq!(out[0].to_f64(), [2., 4.]);
}
