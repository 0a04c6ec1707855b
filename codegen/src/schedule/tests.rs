//! What `check` refuses, and the sizes that follow from a schedule.

use super::*;
use crate::kernel::text::parse;
use tgc_ir::types::Dim;

const ISA: Isa = Isa { vector_bytes: 64, fma: true };

fn kernel() -> Kernel {
    let text = r#"kernel @k(d0)(%x: in f32[d0, 100], %y: out f32[d0, 100], %i: in i64[5], %s: out f32[d0, 9]) grid [d0] {
  local %t : f32[tile 0 -1 +1, full 100]
  local %u : u8[ring 3, full d0]
  site 1 "scatter"
  stage "a" over [#0] inner [#1 < 100] map {
    load 0 %x[#0, #1]
    $0 = arg 0 : f32
    result $0
    store %t[#0, #1] = 0
    store %y[#0, #1] = 0
  }
  stage "b" over [#0] inner [#2 < 5] map {
    load 0 %i[#2]
    $0 = arg 0 : i64
    $1 = const 1.0 : f32
    result $1
    store %s[#0, $0] = 0 add site 1
  }
}"#;
    let k = parse(text).unwrap().remove(0);
    assert_eq!(crate::kernel::verify::verify(&k), vec![]);
    k
}

#[test]
fn the_default_is_vectorised_where_stores_are_contiguous() {
    let s = Schedule::default_for(&kernel(), ISA);
    assert_eq!(s.check(&kernel(), ISA), Ok(()));
    assert_eq!((s.stages[0].vector, s.stages[0].width), (Some(1), 16));
    assert_eq!((s.stages[1].vector, s.stages[1].width), (None, 1), "a scatter keeps the order of its points");
    assert!(scratch(&kernel(), &s).eval(&|_| Some(1024)).unwrap() <= 256 << 10, "{s}");
}

#[test]
fn check_refuses_by_rule() {
    let k = kernel();
    let good = Schedule::scalar(&k, 8);
    assert_eq!(good.check(&k, ISA), Ok(()));
    let refused = |f: &dyn Fn(&mut Schedule), what: &str| {
        let mut s = good.clone();
        f(&mut s);
        let d = s.check(&k, ISA).expect_err(what);
        assert!(d.message.contains(what), "{d}");
    };
    refused(&|s| s.tiles.push(1), "tile sizes");
    refused(&|s| s.tiles[0] = 0, "tile of 0");
    refused(&|s| s.stages[0].unroll = 9, "unroll 9");
    refused(&|s| s.stages[0].width = 4, "without a vector label");
    refused(&|s| (s.stages[0].vector, s.stages[0].width) = (Some(1), 24), "powers of two");
    refused(&|s| (s.stages[0].vector, s.stages[0].width) = (Some(7), 8), "label #7");
    refused(&|s| (s.stages[1].vector, s.stages[1].width) = (Some(2), 8), "label #2");
    refused(&|s| s.stages[0].rows = Some((0, 2)), "rows of label");
    assert!(good.check(&k, Isa { vector_bytes: 8, ..ISA }).is_err());
}

#[test]
fn sizes_are_formulas() {
    let k = kernel();
    let s = Schedule::scalar(&k, 8);
    assert_eq!(local_extents(&k, &s, 0), [Dim::from(10), Dim::from(100)]);
    let at: Vec<String> = local_offsets(&k, &s).iter().map(Dim::to_string).collect();
    assert_eq!(at, ["0", "4032"]);
    let value = |d: Dim| d.eval(&|_| Some(50)).unwrap();
    assert_eq!(value(scratch(&k, &s)), 4032 + 192);
    assert_eq!(value(tile_count(&k, &s)), 7);
    assert_eq!(s.to_string(), "tiles [8]; scalar unroll 1; scalar unroll 1");
}

#[test]
fn extents_at_the_end_of_64_bits_do_not_overflow() {
    for far in ["9223372036854775807", "9223372036854775800", "4611686018427387904"] {
        let text = format!(
            r#"kernel @k()(%a: in f32[{far}, {far}, 3], %b: in f32[{far}, 3, 8], %y: out f32[{far}, 8]) grid [{far}, 8] {{
  local %t : f32[full {far}, full -{far}]
  stage "c" over [#0, #1] red [#2 < {far}, #3 < 3] contract chunk 4294967295 {{
    load 0 %a[#0, #2, #3]
    load 1 %b[#2, #3, #1]
    $0 = arg 0 : f32
    $1 = arg 1 : f32
    result $0, $1
    store %y[#0, #1] = 0
  }}
}}"#
        );
        let k = parse(&text).unwrap().remove(0);
        assert_eq!(crate::kernel::verify::verify(&k), vec![]);
        for vector_bytes in [16, 32, 64] {
            let isa = Isa { vector_bytes, ..ISA };
            let s = Schedule::default_for(&k, isa);
            assert_eq!(s.check(&k, isa), Ok(()), "{s}");
        }
    }
}
