//! Sizes that come from data, variants and guards.

use tgc_runtime::*;

use crate::machine::*;

fn options() -> SessionOptions {
    SessionOptions { threads: Some(2), ..SessionOptions::default() }
}

#[test]
fn later_segments_grow_the_arena_and_keep_what_lives() {
    let model = load(&build(&by_data())).unwrap();
    let mut s = Session::new(&model, "forward", &options()).unwrap();
    for n in [3i64, 50_000, 0, 7, 100_000, 1] {
        let out = s.run_owned(&[("x", &tensor(&[3], &[n.max(1) - 1, 5, 6]))]).unwrap();
        let n = n.max(1);
        assert_eq!(out[0].1.shape(), [n as usize]);
        assert_eq!(values(&out[0].1), (0..n).map(|i| 2 * (10 + i)).collect::<Vec<_>>());
        assert_eq!(values(&out[1].1), [n, 6, 7]);
    }
    assert_eq!(s.output_shape(0), None);
    let e = s.run_owned(&[("x", &tensor(&[1], &[100_000]))]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Data);
    assert!(e.to_string().contains("size `n` is 100001 (from `len`), allowed 0..=100000"), "{e}");
}

#[test]
fn data_dependent_outputs_need_owned_runs() {
    let model = load(&build(&by_data())).unwrap();
    let mut s = Session::new(&model, "forward", &options()).unwrap();
    s.bind(&[("x", &[1])]).unwrap();
    let (x, mut y, mut z) = (tensor(&[1], &[1]), tensor(&[2], &[0; 2]), tensor(&[1], &[0]));
    let e = s.run(&[Some(x.bytes())], &mut [y.bytes_mut(), z.bytes_mut()]).unwrap_err();
    assert!(e.to_string().contains("depends on data"), "{e}");
    let e = s.run_bound(&[]).unwrap_err();
    assert!(e.to_string().contains("0 inputs given, allowed 1"), "{e}");
    let e = s.run_bound(&[Some(&x.bytes()[1..])]).unwrap_err();
    assert!(e.to_string().contains("input `x` has 7 bytes, allowed 8"), "{e}");
    for n in [1i64, 40, 3] {
        let x = tensor(&[1], &[n]);
        let out = s.run_bound(&[Some(x.bytes())]).unwrap();
        assert_eq!(values(&out[0].1), (0..=n).map(|i| 2 * (10 + i)).collect::<Vec<_>>());
        assert_eq!((out[1].0.as_str(), values(&out[1].1)), ("z", vec![n + 1]));
    }
}

#[test]
fn the_memory_limit_counts_later_segments() {
    let model = load(&build(&by_data())).unwrap();
    let limited = SessionOptions { mem_limit: Some(10_000), ..options() };
    let mut s = Session::new(&model, "forward", &limited).unwrap();
    assert!(s.run_owned(&[("x", &tensor(&[1], &[999]))]).is_ok());
    let e = s.run_owned(&[("x", &tensor(&[1], &[9_999]))]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Memory);
}

#[test]
fn a_first_segment_may_take_a_size_from_an_input() {
    let bytes = mul(&[sym(0), Expr::Const(8)]);
    let buffers = vec![
        buffer("n", BufferKind::Input(0), Expr::Const(8), 0, 0),
        buffer("y", BufferKind::Output(0), bytes, 0, 0),
    ];
    let segment = Segment {
        binds: vec![Bind { symbol: 0, buffer: 0 }],
        steps: vec![launch(IOTA, &[1], &[Expr::Const(0), sym(0)])],
    };
    let program = Program { buffers, segments: vec![segment] };
    let m = manifest(Entry {
        name: "forward".into(),
        symbols: vec![symbol("n", 0, 9)],
        inputs: vec![port("n", &[])],
        outputs: vec![port("y", &[sym(0)])],
        variants: vec![Variant { when: None, body: Ok(program) }],
        guards: vec![Guard { pred: Pred::Le(sym(0), Expr::Const(8)), message: "slice `s1`".into() }],
        ..Entry::default()
    });
    let model = load(&build(&m)).unwrap();
    let mut s = Session::new(&model, "forward", &options()).unwrap();
    for n in [4, 0, 8] {
        let out = s.run_owned(&[("n", &tensor(&[], &[n]))]).unwrap();
        assert_eq!(values(&out[0].1), (0..n).collect::<Vec<_>>());
    }
    let e = s.run_owned(&[("n", &tensor(&[], &[9]))]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Guard);
    assert!(e.to_string().contains("n <= 8 does not hold with n = 9: slice `s1`"), "{e}");
}

#[test]
fn the_first_variant_that_holds_is_run() {
    let mut m = simple();
    let e = &mut m.entries[0];
    let mut plain = e.variants.remove(0);
    plain.when = Some(Pred::Le(sym(0), Expr::Const(4)));
    let small = Variant {
        when: Some(Pred::Eq(sym(0), Expr::Const(2))),
        body: Err("branch `else` has rank 3".into()),
    };
    e.variants = vec![small, plain];
    let model = load(&build(&m)).unwrap();
    let mut s = Session::new(&model, "forward", &options()).unwrap();
    assert!(s.bind(&[("x", &[4, 2])]).is_ok());
    let e = s.bind(&[("x", &[2, 2])]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Variant);
    assert!(e.to_string().contains("with batch = 2: branch `else` has rank 3"), "{e}");
    let e = s.bind(&[("x", &[5, 2])]).unwrap_err();
    assert!(
        e.to_string().contains("no variant of entry `forward` fits") && e.to_string().contains("batch <= 4"),
        "{e}"
    );
    let (x, mut y) = (tensor(&[5, 2], &[0; 10]), tensor(&[5, 2], &[0; 10]));
    let e = s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Usage, "a failed bind leaves nothing bound");
}
