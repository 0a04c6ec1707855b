//! What the text form reads, writes and refuses.

use super::*;
use crate::types::{DType, Type};

fn errors(text: &str) -> Vec<Diag> {
    parse_module(text, &|_| None).expect_err("an error is wanted")
}

fn codes(text: &str) -> Vec<&'static str> {
    errors(text).iter().map(|d| d.code).collect()
}

/// Reads a text that is already in the form of the printer.
fn same(text: &str) {
    let m = parse_module(text, &|_| None).unwrap_or_else(|e| panic!("{}", e[0].render(Some(text))));
    assert_eq!(print_module(&m), text);
}

#[test]
fn dims_and_conditions_print_as_read() {
    for d in [
        "0",
        "-3",
        "n",
        "2*n*m - k + 1",
        "floordiv(n + 1, 2)",
        "min(m, n) + max(m, n)",
        "bcast(m, n)*4",
        "\"a b\" + 1",
        "#0*n + $1",
    ] {
        let v = parse_dim(d).unwrap();
        assert_eq!(parse_dim(&v.to_string()).unwrap(), v, "{d}");
    }
    assert_eq!(parse_dim("(n + 1)*(n - 1)").unwrap().to_string(), "n*n - 1");
    for p in ["true", "eq(n, 4)", "and(le(1, n), or(not(eq(n, m)), broadcastable(n, m)))", "and()"] {
        assert_eq!(parse_pred(p).unwrap().to_string(), p);
    }
}

#[test]
fn dims_are_bounded() {
    let deep = format!("{}n{}", "floordiv(".repeat(100), ", 2)".repeat(100));
    let wide: Vec<String> = (0..40).map(|i| format!("(a{i} + b{i})")).collect();
    for d in [
        deep.as_str(),
        &wide.join("*"),
        &["n"; 40].join("*"),
        &["9000000000000000000"; 9].join("*"),
        "floordiv(n, 0)",
    ] {
        assert!(parse_dim(d).is_err(), "{d}");
    }
    let shape = format!("graph @f(%x: f32[{}]) -> f32[] {{ return %x }}", wide[..40].join(", "));
    assert_eq!(codes(&shape)[0], "E-TXT-003");
}

#[test]
fn literals_keep_their_bits() {
    let f32s = "[0.1, -0.0, 1e-45, 3.4028235e38, inf, -inf, nan, 1.0]";
    let text = format!("graph @f() -> f32[8] {{\n  %0 = constant {f32s} : f32[8]\n  return %0\n}}\n");
    same(&text);
    same(
        "graph @f() -> i64[2] {\n  %0 = constant [-9223372036854775808, 9223372036854775807] : i64[2]\n  return %0\n}\n",
    );
    same(
        "graph @f() -> bf16[1, 2, 1] {\n  %0 = constant [[[1.0], [0.00390625]]] : bf16[1, 2, 1]\n  return %0\n}\n",
    );
    same("graph @f() -> u64[] {\n  %0 = constant 18446744073709551615 : u64[]\n  return %0\n}\n");
    same("graph @f() -> f8e4m3fn[2] {\n  %0 = constant [0x3f, 0xff] : f8e4m3fn[2]\n  return %0\n}\n");
    same("graph @f() -> bool[2] {\n  %0 = constant [true, false] : bool[2]\n  return %0\n}\n");
    same("graph @f() -> f32[2, 0] {\n  %0 = constant [] : f32[2, 0]\n  return %0\n}\n");
    let flat =
        parse_graph("graph @f() -> i8[2, 2] { %c = constant [1, 2, 3, 4] : i8[2, 2] return %c }").unwrap();
    assert!(print_graph(&flat).contains("constant [[1, 2], [3, 4]] : i8[2, 2]"));
}

#[test]
fn literals_that_do_not_fit_are_refused() {
    let constant = |lit: &str, ty: &str| {
        codes(&format!("graph @f() -> {ty} {{ %c = constant {lit} : {ty} return %c }}"))
    };
    for (lit, ty) in [
        ("256", "u8[]"),
        ("-1", "u8[]"),
        ("8", "i4[]"),
        ("1.5", "i32[]"),
        ("1e39", "f32[]"),
        ("true", "f32[]"),
        ("1", "bool[]"),
        ("0x1", "f32[]"),
        ("0x100", "f8e5m2[]"),
        ("[1, 2]", "f32[3]"),
        ("[[1], [2, 3]]", "f32[3]"),
        ("[[1, 2]]", "f32[2, 1]"),
        ("1.0", "f32[1]"),
        ("[1.0]", "f32[n]"),
    ] {
        assert!(constant(lit, ty)[0].starts_with("E-TXT-0"), "{lit} : {ty}");
    }
}

#[test]
fn symbol_tables_keep_their_order() {
    // `m` comes first in the table, though the inputs name `n` first: every symbol is written
    same(
        "graph @f(%x: f32[n], %y: f32[m]) -> f32[n]\n  dim m in 0..1000000000\n  dim n in 0..1000000000\n{\n  return %x\n}\n",
    );
    same("graph @f(%x: f32[n], %y: f32[m]) -> f32[n]\n  dim m in 1..8 anonymous\n{\n  return %x\n}\n");
    same("graph @f(%x: f32[\"a b\"]) -> f32[\"a b\"]\n  dim \"a b\" in 1..8\n{\n  return %x\n}\n");
}

#[test]
fn names_that_are_not_plain_are_quoted() {
    same(
        "graph @\"a.b\"(%0: f32[] \"in.1\", %z: f32[], %1: f32[] \"\") -> (f32[] \"out.1\", f32[]) {\n  return %0, %z\n}\n",
    );
    let g = parse_graph(
        "graph @f(%0: f32[4], %b: f32[4] \"c\") -> f32[4] { %0a = add %0, %b : f32[4] return %0a }",
    )
    .unwrap();
    assert!(
        print_graph(&g).starts_with("graph @f(%x0: f32[4], %c: f32[4]) -> f32[4] {\n  %0 = add %x0, %c"),
        "{}",
        print_graph(&g)
    );
}

#[test]
fn numbers_do_not_meet_those_of_inputs() {
    same("graph @f(%0: f32[4] \"in.1\") -> f32[4] {\n  %1 = add %0, %0 : f32[4]\n  return %1\n}\n");
}

#[test]
fn every_fault_is_reported_once() {
    let text = "graph @f(%x: f32[4]) -> f32[4] {
  %a = addd %x, %x : f32[4]
  %b = add %a, %x : f32[4]
  %c = add %x, %q : f32[4]
  %d = add %x, %x : f32[5]
  %e = add %x, %x {k = 1} : f32[4]
  %d = add %x, %x : f32[4]
  %f = add %x, %x : f32[n]
  %g = add %x : f32[4]
  %h = add(%x, %x : f32[4]
  return %b
}
graph @g(%x: f32[4]) -> f32[5] { return %x }
weight \"w\" : f32[2] = dense<[1]>
";
    let found: Vec<(&str, usize)> = errors(text)
        .iter()
        .map(|d| (d.code, text[..d.at.span.unwrap().start].matches('\n').count() + 1))
        .collect();
    let want = [
        ("E-TXT-004", 2),
        ("E-TXT-006", 4),
        ("E-TXT-007", 5),
        ("E-TXT-005", 6),
        ("E-TXT-006", 7),
        ("E-TXT-008", 8),
        ("E-IR-002", 9),
        ("E-TXT-001", 10),
        ("E-TXT-007", 13),
        ("E-TXT-010", 14),
    ];
    assert_eq!(found, want);
}

#[test]
fn faults_in_regions_do_not_hide_others() {
    let text = "graph @f(%x: f32[4]) -> f32[4] {
  %a = fused(%x) {
    ^(%b: f32[4]):
    %c = add %b, %x : f32[4]
    %d = nothing %b : f32[4]
    return %c
  } : f32[4]
  %e = add %x, %y : f32[4]
  return %a
}";
    assert_eq!(codes(text), ["E-TXT-006", "E-TXT-004", "E-TXT-006"]);
}

#[test]
fn weights_are_asked_for_by_name() {
    let data = Tensor::from_f64(DType::F32, &[20], &[1.0; 20]);
    let mut m = Module::default();
    m.weights.insert("w".into(), data.clone());
    let text = print_module(&m);
    let give = |n: &str| (n == "w").then(|| data.clone());
    assert_eq!(parse_module(&text, &give).unwrap().weights["w"], data);
    let other = Tensor::from_f64(DType::F32, &[20], &[2.0; 20]);
    assert_eq!(parse_module(&text, &|_| Some(other.clone())).unwrap_err()[0].code, "E-TXT-011");
    let short = Tensor::from_f64(DType::F32, &[19], &[1.0; 19]);
    assert_eq!(parse_module(&text, &|_| Some(short.clone())).unwrap_err()[0].code, "E-TXT-011");
    assert_eq!(codes(&text), ["E-TXT-011"]);
    assert_eq!(codes(&text.replace("file<\"", "file<\"0")), ["E-TXT-010"]);
}

#[test]
fn the_shape_of_a_module_is_checked() {
    for (text, code) in [
        ("", "E-TXT-001"),
        ("grph @f() -> () { return }", "E-TXT-001"),
        ("graph @f() -> () {", "E-TXT-001"),
        ("graph @f() -> () { return } }", "E-TXT-001"),
        ("graph @f() -> () { return }\ngraph @f() -> () { return }", "E-TXT-009"),
        ("graph @f(%x: f32[n]) -> ()\n guard eq(k, 1)\n { return }", "E-TXT-008"),
        ("graph @f(%x: f32[#1]) -> () { return }", "E-TXT-008"),
        ("state \"s\" : f32[$0]\n", "E-TXT-008"),
        ("graph @f(%x: f32[n]) -> ()\n dim n in 1..2\n dim n in 1..2\n { return }", "E-TXT-009"),
        ("graph @f(%x: f32[n]) -> ()\n guard eq(n, 1)\n dim k in 1..2\n { return }", "E-TXT-001"),
        ("graph @f(%x: f99[n]) -> () { return }", "E-TXT-001"),
        ("graph @f(%x: f32[n]) -> f32[n] { return }", "E-TXT-007"),
    ] {
        let found = parse_graph(text).expect_err(text);
        assert_eq!(found[0].code, code, "{text}: {found:?}");
    }
}

#[test]
fn errors_show_the_line() {
    let text = "graph @f(%x: f32[4]) -> f32[4] {\n  %y = rehsape %x {shape = (4)} : f32[4]\n  return %y\n}\n";
    let d = &errors(text)[0];
    let shown = d.render(Some(text));
    let want = "error[E-TXT-004]: there is no op `rehsape`\n  --> line 2, column 8\n   |   %y = rehsape %x {shape = (4)} : f32[4]\n   |        ^^^^^^^\n  help: near: reshape";
    assert_eq!(shown, want);
}

#[test]
fn types_need_every_part() {
    let mut c = Cursor::new("f32[n, 4,] rest");
    assert_eq!(c.ty().unwrap(), Type::new(DType::F32, vec![Dim::sym("n"), Dim::from(4)]));
    assert_eq!(c.ident("a word"), Ok("rest"));
    assert!(c.end().is_ok());
}
