//! Running one-segment programs: results, threads, sites, states, defaults, aliases, memory.

use tgc_runtime::*;

use crate::machine::*;

fn with_threads(n: usize) -> SessionOptions {
    SessionOptions { threads: Some(n), ..SessionOptions::default() }
}

#[test]
fn every_size_and_thread_count_gives_the_same_values() {
    let model = load(&build(&simple())).unwrap();
    for threads in [1, 2, 3, 8] {
        let mut s = Session::new(&model, "forward", &with_threads(threads)).unwrap();
        for batch in [1usize, 3, 17, 64, 0, 3, 1] {
            let x: Vec<i64> = (0..batch as i64 * 2).map(|v| v * 3).collect();
            let out = s.run_owned(&[("x", &tensor(&[batch, 2], &x))]).unwrap();
            assert_eq!(out[0].0, "y");
            assert_eq!(out[0].1.shape(), [batch, 2]);
            let want: Vec<i64> = x.iter().map(|v| (v + 1) * 2).collect();
            assert_eq!(values(&out[0].1), want, "batch {batch}, {threads} threads");
        }
    }
}

#[test]
fn slices_are_run_in_place_and_checked() {
    let model = load(&build(&simple())).unwrap();
    let mut s = Session::new(&model, "forward", &with_threads(2)).unwrap();
    let (x, mut y) = (tensor(&[2, 2], &[1, 2, 3, 4]), tensor(&[2, 2], &[0; 4]));
    let e = s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Usage);
    s.bind(&[("x", &[2, 2])]).unwrap();
    assert_eq!(s.output_shape(0), Some(&[2, 2][..]));
    s.run(&[Some(x.bytes())], &mut [y.bytes_mut()]).unwrap();
    assert_eq!(values(&y), [4, 6, 8, 10]);
    for (len, text) in [(24, "input `x` has 24 bytes, allowed 32"), (32, "output `y` has 8 bytes")] {
        let e = s.run(&[Some(&x.bytes()[..len])], &mut [&mut y.bytes_mut()[..8]]).unwrap_err();
        assert_eq!(e.faults[0].code, Code::CallerBuffer);
        assert!(e.to_string().contains(text), "{e}");
    }
    let long = tensor(&[5], &[0; 5]);
    let e = s.run(&[Some(&long.bytes()[1..33])], &mut [y.bytes_mut()]).unwrap_err();
    assert!(e.to_string().contains("not aligned"), "{e}");
    let e = s.run(&[None], &mut [y.bytes_mut()]).unwrap_err();
    assert!(e.to_string().contains("bind again"), "{e}");
    let e = s.run(&[], &mut []).unwrap_err();
    assert!(e.to_string().contains("allowed 1 and 1"), "{e}");
}

#[test]
fn a_failing_element_names_its_node() {
    let model = load(&build(&simple())).unwrap();
    for threads in [1, 2, 5] {
        let mut s = Session::new(&model, "forward", &with_threads(threads)).unwrap();
        let mut x = [5; 40];
        (x[11], x[39]) = (-1, -2);
        let e = s.run_owned(&[("x", &tensor(&[20, 2], &x))]).unwrap_err();
        assert_eq!(e.faults[0].code, Code::Data);
        assert!(e.to_string().contains("node `n1` (AddOne) at model.rs:3: a negative element"), "{e}");
        x.fill(1);
        assert!(s.run_owned(&[("x", &tensor(&[20, 2], &x))]).is_ok());
    }
}

#[test]
fn a_failure_code_without_a_site_is_damage() {
    let mut m = simple();
    let Ok(p) = &mut m.entries[0].variants[0].body else { unreachable!() };
    let Step::Launch { sites, .. } = &mut p.segments[0].steps[0] else { unreachable!() };
    sites.clear();
    let mut s = Session::new(&load(&build(&m)).unwrap(), "forward", &with_threads(1)).unwrap();
    let e = s.run_owned(&[("x", &tensor(&[1, 2], &[-1, 0]))]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Damaged);
}

#[test]
fn memory_limits_name_both_numbers() {
    let model = load(&build(&simple())).unwrap();
    let limit = |n| SessionOptions { threads: Some(1), mem_limit: Some(n), pool: None };
    let mut s = Session::new(&model, "forward", &limit(1000)).unwrap();
    assert!(s.bind(&[("x", &[4, 2])]).is_ok());
    let e = s.bind(&[("x", &[64, 2])]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Memory);
    // 64 x 2 x 8 bytes of temporary and 128 of scratch.
    assert!(e.to_string().contains("1152 bytes of memory are needed at these sizes, allowed 1000"), "{e}");
    assert!(Session::new(&model, "forward", &limit(1152)).unwrap().bind(&[("x", &[64, 2])]).is_ok());
}

/// `count(x [1]) -> y [1]`: the state grows by x, y is its new value.
fn counter() -> Manifest {
    let one = Expr::Const(8);
    let buffers = vec![
        buffer("x", BufferKind::Input(0), one.clone(), 0, 0),
        buffer("s", BufferKind::State(0), one.clone(), 0, 2),
        buffer("new", BufferKind::Temp, one.clone(), 0, 2),
        buffer("y", BufferKind::Output(0), one.clone(), 1, 1),
    ];
    let steps = vec![
        launch(ADD, &[0, 1, 2], &[Expr::Const(1)]),
        Step::Copy { src: 2, dst: 3, bytes: one.clone() },
        Step::Copy { src: 2, dst: 1, bytes: one },
    ];
    let mut m = manifest(Entry {
        name: "count".into(),
        inputs: vec![port("x", &[Expr::Const(1)])],
        outputs: vec![port("y", &[Expr::Const(1)])],
        reads: vec![0],
        writes: vec![0],
        variants: program(buffers, steps),
        ..Entry::default()
    });
    m.states.push(StateDecl {
        name: "total".into(),
        dtype: tgc_runtime::DType::I64,
        dims: vec![1],
        init: None,
    });
    m
}

#[test]
fn states_persist_and_start_from_their_weight() {
    let run = |m: &Manifest, weights: &[Vec<i64>]| {
        let model = load(&build_with(m, weights)).unwrap();
        let mut s = Session::new(&model, "count", &with_threads(1)).unwrap();
        let mut go = |x| values(&s.run_owned(&[("x", &tensor(&[1], &[x]))]).unwrap()[0].1)[0];
        [go(5), go(7), go(-2)]
    };
    let mut m = counter();
    assert_eq!(run(&m, &[]), [5, 12, 10]);
    m.weights.push(weight("w", &[1]));
    m.states[0].init = Some(0);
    assert_eq!(run(&m, &[vec![100]]), [105, 112, 110]);
    assert_eq!(run(&m, &[vec![100]]), [105, 112, 110]);
}

#[test]
fn writing_an_undeclared_state_is_refused() {
    let mut m = counter();
    m.entries[0].writes.clear();
    let mut out = std::io::Cursor::new(Vec::new());
    let e = tgc_runtime::write(&m, &[&CODE], &mut |_, _| Ok(()), &mut out).unwrap_err();
    assert!(e.to_string().contains("writes buffer `s`, which is read-only"), "{e}");
}

#[test]
fn inputs_with_a_default_may_be_left_out_and_weights_are_read() {
    let (m, weights) = with_default();
    let model = load(&build_with(&m, &weights)).unwrap();
    model.check_weights().unwrap();
    let mut s = Session::new(&model, "forward", &with_threads(1)).unwrap();
    assert_eq!(values(&s.run_owned(&[]).unwrap()[0].1), [11, 22]);
    let given = s.run_owned(&[("a", &tensor(&[3], &[5, 5, 5]))]).unwrap();
    assert_eq!(values(&given[0].1), [15, 25, 35]);
    assert_eq!(values(&s.run_owned(&[]).unwrap()[0].1), [11, 22]);
}

#[test]
fn temporaries_may_live_in_an_output_and_share_places() {
    let mut m = simple();
    let Ok(p) = &mut m.entries[0].variants[0].body else { unreachable!() };
    p.buffers[1].alias = Some(4);
    p.buffers[2].alias = Some(4);
    let model = load(&build(&m)).unwrap();
    let mut s = Session::new(&model, "forward", &with_threads(2)).unwrap();
    let out = s.run_owned(&[("x", &tensor(&[2, 2], &[1, 2, 3, 4]))]).unwrap();
    assert_eq!(values(&out[0].1), [4, 6, 8, 10]);
    assert_eq!(s.memory(), 2 * 128, "only scratch");
}

#[test]
fn copies_may_not_exceed_their_buffers() {
    let mut m = simple();
    let Ok(p) = &mut m.entries[0].variants[0].body else { unreachable!() };
    p.segments[0].steps[1] = Step::Copy { src: 1, dst: 2, bytes: Expr::Const(33) };
    let model = load(&build(&m)).unwrap();
    let mut s = Session::new(&model, "forward", &with_threads(1)).unwrap();
    let e = s.bind(&[("x", &[2, 2])]).unwrap_err();
    assert_eq!(e.faults[0].code, Code::Damaged);
    assert!(s.bind(&[("x", &[3, 2])]).is_ok());
}

#[test]
fn models_are_shared_and_sessions_move_between_threads() {
    fn shared<T: Send + Sync>() {}
    fn moves<T: Send>() {}
    shared::<Model>();
    shared::<Pool>();
    moves::<Session>();
    let model = load(&build(&simple())).unwrap();
    std::thread::scope(|s| {
        for n in 1..5i64 {
            let model = &model;
            s.spawn(move || {
                let mut session = Session::new(model, "forward", &SessionOptions::default()).unwrap();
                for i in 0..200 {
                    let out = session.run_owned(&[("x", &tensor(&[1, 2], &[n, i]))]).unwrap();
                    assert_eq!(values(&out[0].1), [2 * (n + 1), 2 * (i + 1)]);
                }
            });
        }
    });
}
