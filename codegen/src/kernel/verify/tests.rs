//! One broken kernel for each invariant; the same kernels unbroken pass.

use super::verify;
use crate::kernel::text::parse;

/// A kernel with every part the cases below break.
const GOOD: &str = r#"
kernel @k(d0, d1)(%x: in f32[d0, d1], %i: in i64[d1], %w: const f32[8, 4], %y: out f32[d0, d1], %z: out f32[d0]) grid [d0] {
  local %t : f32[tile 0 -1 +1]
  local %u : f32[tile 0, full d1]
  site 1 "gather"
  stage "halo" over [#0] map {
    load 0 %x[#0, 0] fill and(le(1, #0), le(#0 + 1, d0), le(1, d1)) 0.0 : f32
    $0 = arg 0 : f32
    result $0
    store %t[#0] = 0
  }
  stage "row" over [#0] inner [#1 < d1] map {
    load 0 %t[#0]
    load 1 %i[#1]
    load 2 %x[#0, $1] trap 1 true
    $0 = arg 0 : f32
    $1 = arg 1 : i64
    $2 = arg 2 : f32
    $3 = add $0, $2 : f32
    result $3
    store %u[#0, #1] = 0
    store %y[#0, #1] = 0
  }
  stage "sum" over [#0] red [#2 < d1] reduce lanes 8 {
    init 0.0 : f32
    step {
      $0 = arg 0 : f32
      $1 = arg 1 : f32
      $2 = add $0, $1 : f32
      result $2
    }
    combine {
      $0 = arg 0 : f32
      $1 = arg 1 : f32
      $2 = add $0, $1 : f32
      result $2
    }
    finish {
      $0 = arg 0 : f32
      result $0
    }
    load 0 %u[#0, #2]
    $0 = arg 0 : f32
    result $0
    store %z[#0] = 0
  }
  stage "dot" over [#0] red [#3 < 8] contract chunk 1024 {
    load 0 %w[#3, 0]
    load 1 %w[#3, 3]
    load 2 %z[#0]
    $0 = arg 0 : f32
    $1 = arg 1 : f32
    result $0, $1
    post {
      $0 = arg 0 : f32
      $1 = arg 3 : f32
      $2 = add $0, $1 : f32
      result $2
    }
    store %z[#0] = 0
  }
  loop #4 in 1..d1 {
    stage "late" over [#0] map when le(#4, 3) {
      load 0 %u[#0, #4 - 1]
      $0 = arg 0 : f32
      $1 = dim #4 : i64
      $2 = cast $1 : f32
      $3 = add $0, $2 : f32
      result $3
      store %u[#0, #4 - 1] = 0
    }
  }
}
"#;

/// (code, what is replaced, by what)
const BROKEN: &[(&str, &str, &str)] = &[
    ("E-KRN-001", "kernel @k(", "kernel @\"a b\"("),
    ("E-KRN-001", "out f32[d0]) grid", "out f32[d0], %z: in f32[]) grid"),
    ("E-KRN-001", "(d0, d1)(", "(d0, d1, d0)("),
    ("E-KRN-002", "%w: const f32[8, 4]", "%w: const f32[8, 4*n]"),
    ("E-KRN-002", "grid [d0]", "grid [#0]"),
    ("E-KRN-003", "red [#3 < 8]", "red [#2 < 8]"),
    ("E-KRN-003", "inner [#1 < d1]", "inner [#0 < d1]"),
    ("E-KRN-003", "\"sum\" over [#0]", "\"sum\" over [#1]"),
    ("E-KRN-004", "inner [#1 < d1]", "inner [#1 < #0]"),
    ("E-KRN-004", "when le(#4, 3)", "when le(#0, 3)"),
    ("E-KRN-005", "$3 = add $0, $2 : f32\n    result $3", "$3 = add $0, $1 : f32\n    result $3"),
    ("E-KRN-005", "$3 = add $0, $2 : f32\n    result $3", "$3 = add $0, $3 : f32\n    result $3"),
    ("E-KRN-005", "$1 = dim #4 : i64", "$1 = dim #3 : i64"),
    ("E-KRN-005", "$1 = arg 3 : f32", "$1 = arg 5 : f32"),
    ("E-KRN-006", "load 2 %x[#0, $1] trap 1 true", "load 2 %x[#0, $1]"),
    ("E-KRN-006", "load 2 %x[#0, $1] trap", "load 2 %x[#0, $3] trap"),
    ("E-KRN-006", "load 2 %x[#0, $1] trap", "load 2 %x[#0] trap"),
    ("E-KRN-006", "0.0 : f32\n    $0 = arg", "0 : i64\n    $0 = arg"),
    ("E-KRN-006", "$1 = arg 3 : f32", "$1 = arg 2 : f32"),
    ("E-KRN-007", "store %y[#0, #1] = 0", "store %x[#0, #1] = 0"),
    ("E-KRN-007", "store %y[#0, #1] = 0", "store %y[#0, #1] = 1"),
    ("E-KRN-007", "store %z[#0] = 0\n  }\n  stage", "store %z[#2] = 0\n  }\n  stage"),
    ("E-KRN-008", "store %z[#0] = 0\n  }\n  loop", "store %z[d0 - 1 - #0] = 0\n  }\n  loop"),
    ("E-KRN-008", "store %y[#0, #1] = 0", "store %y[0, #1] = 0"),
    ("E-KRN-009", "store %y[#0, #1] = 0", "store %y[d0 - 1 - #0, #1] = 0 add"),
    ("E-KRN-010", "store %u[#0, #1] = 0", "store %u[#0, 0] = 0"),
    ("E-KRN-011", "load 0 %u[#0, #4 - 1]", "load 0 %u[#0, #4]"),
    ("E-KRN-011", "load 2 %z[#0]", "load 2 %z[0]"),
    ("E-KRN-012", "store %t[#0] = 0", "store %u[#0, 0] = 0"),
    ("E-KRN-013", "load 0 %t[#0]", "load 0 %t[#0 + 2]"),
    ("E-KRN-013", "load 0 %t[#0]", "load 0 %t[0]"),
    ("E-KRN-013", "tile 0 -1 +1", "tile 1 -1 +1"),
    ("E-KRN-014", "lanes 8", "lanes 12"),
    ("E-KRN-014", "chunk 1024", "chunk 0"),
    ("E-KRN-014", "result $0, $1\n    post", "result $0\n    post"),
    ("E-KRN-014", "init 0.0 : f32", "init 0 : i64"),
    ("E-KRN-015", "trap 1 true", "trap 2 true"),
    ("E-KRN-015", "store %y[#0, #1] = 0", "store %y[#0, #1] = 0 site 1"),
    ("E-KRN-016", "load 1 %w[#3, 3]", "load 1 %w[#3, 4]"),
    ("E-KRN-016", "red [#3 < 8]", "red [#3 < 9]"),
    ("E-KRN-016", "store %y[#0, #1] = 0", "store %y[#0, #1 + 1] = 0"),
    ("E-KRN-016", "load 1 %i[#1]", "load 1 %i[#1 - 1]"),
    ("E-KRN-017", "%i: in i64[d1]", "%i: in i64[d1] packed 16 axis 0 order [0]"),
    ("E-KRN-017", "local %u : f32", "local %u : f8e5m2"),
];

#[test]
fn the_unbroken_kernel_passes() {
    let k = parse(GOOD).unwrap().remove(0);
    assert_eq!(verify(&k), vec![]);
}

#[test]
fn every_invariant_is_checked() {
    let mut missed = Vec::new();
    for (code, from, to) in BROKEN {
        assert!(GOOD.contains(from), "{from}");
        let text = GOOD.replacen(from, to, 1);
        let k = parse(&text).unwrap_or_else(|e| panic!("{to}: {}", e[0].render(Some(&text)))).remove(0);
        let found: Vec<&str> = verify(&k).iter().map(|d| d.code).collect();
        if !found.contains(code) {
            missed.push(format!("{to}: wanted {code}, found {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    let codes: std::collections::BTreeSet<_> = BROKEN.iter().map(|b| b.0).collect();
    assert_eq!(codes.len(), 17, "every code of the module's list has a case");
}
