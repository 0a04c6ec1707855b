//! Hand-written kernels for every kind of stage, access and buffer.

use super::*;
use crate::kernel::{Local, LocalAxis};

#[test]
fn map_reads_transposed_broadcast_and_divided() {
    let mut e = Expr::default();
    let (a, b, c) = (e.arg(0, DType::F32), e.arg(1, DType::F32), e.arg(2, DType::F32));
    let sum = e.bin(Bin::Add, a, b);
    let d = e.dim(l(1) + n(2) * l(0));
    let d = e.cast(DType::F32, d);
    let m = e.fma(sum, c, d);
    e.roots = vec![m];
    let st = stage(
        "map",
        &[0, 1],
        Kind::Map,
        vec![load(0, &[l(1), l(0)]), load(1, &[l(1).clone()]), load(2, &[l(1).floordiv(&n(3)), l(0)])],
        e,
        vec![store(3, &[l(0), l(1)], 0)],
    );
    let k = kernel(
        &["d0"],
        vec![
            arg("a", DType::F32, &[n(37), s("d0")], Role::In),
            arg("b", DType::F32, &[n(37)], Role::Const),
            arg("c", DType::F32, &[n(13), s("d0")], Role::In),
            arg("y", DType::F32, &[s("d0"), n(37)], Role::Out),
        ],
        &[s("d0"), n(37)],
        vec![st],
    );
    let case = |d0: usize| {
        let mut r = Stream(7);
        let args = vec![
            r.tensor(DType::F32, &[37, d0]),
            r.tensor(DType::F32, &[37]),
            r.tensor(DType::F32, &[13, d0]),
            Tensor::from_f64(DType::F32, &[d0, 37], &vec![0.0; d0 * 37]),
        ];
        (vec![d0 as i64], args)
    };
    let plans = [
        one(&[2, 37], plain(Some(1), 8, 2)),
        one(&[4, 16], plain(Some(0), 4, 1)),
        one(&[1, 7], plain(Some(1), 64, 3)),
    ];
    check_cases(&k, &[0, 1, 5, 21].map(case), &plans);
}

#[test]
fn fill_reads_nothing_outside() {
    let mut e = Expr::default();
    let a = e.arg(0, DType::F32);
    e.roots = vec![a];
    let at = n(2) * l(1) + l(0) - n(3);
    let inside = Pred::in_box(&at, &n(0), &s("d0"));
    for fill in [0.5, -0.0] {
        for step in [1i64, 2] {
            let at = n(step) * l(1) + l(0) - n(3);
            let inside = if step == 2 { inside.clone() } else { Pred::in_box(&at, &n(0), &s("d0")) };
            let x = Load {
                from: Buf::Arg(0),
                index: vec![at],
                mode: Mode::Fill(inside, Scalar::from_f64(DType::F32, fill)),
            };
            let st = stage("pad", &[0, 1], Kind::Map, vec![x], e.clone(), vec![store(1, &[l(0), l(1)], 0)]);
            let k = kernel(
                &["d0"],
                vec![
                    arg("x", DType::F32, &[s("d0")], Role::In),
                    arg("y", DType::F32, &[n(5), n(29)], Role::Out),
                ],
                &[n(5), n(29)],
                vec![st],
            );
            let case = |d0: usize| {
                let y = Tensor::from_f64(DType::F32, &[5, 29], &[0.0; 145]);
                (vec![d0 as i64], vec![Stream(3).tensor(DType::F32, &[d0]), y])
            };
            let plans = [one(&[2, 29], plain(Some(1), 8, 2)), one(&[5, 29], plain(Some(0), 4, 1))];
            check_cases(&k, &[0, 1, 9, 40].map(case), &plans);
        }
    }
}

fn sum_reducer(op: Bin, d: DType) -> Reducer {
    let init = match op {
        Bin::Max => Scalar::extreme(d, false),
        _ => Scalar::from_f64(d, 0.0),
    };
    Reducer::simple(op, d, d, init, d)
}

/// Greatest value and its position.
pub(super) fn arg_max() -> Reducer {
    let pick = |e: &mut Expr, v: u32, i: u32, w: u32, j: u32| {
        let le = e.bin(Bin::Le, w, v);
        let v2 = e.select(le, v, w);
        let i2 = e.select(le, i, j);
        e.roots = vec![v2, i2];
    };
    let mut step = Expr::default();
    let (v, i, x, p) =
        (step.arg(0, DType::F32), step.arg(1, DType::I64), step.arg(2, DType::F32), step.arg(3, DType::I64));
    pick(&mut step, v, i, x, p);
    let mut combine = Expr::default();
    let (v, i, w, j) = (
        combine.arg(0, DType::F32),
        combine.arg(1, DType::I64),
        combine.arg(2, DType::F32),
        combine.arg(3, DType::I64),
    );
    pick(&mut combine, v, i, w, j);
    let mut finish = Expr::default();
    let (v, i) = (finish.arg(0, DType::F32), finish.arg(1, DType::I64));
    finish.roots = vec![v, i];
    Reducer {
        init: vec![Scalar::from_f64(DType::F32, f64::NEG_INFINITY), Scalar::from_int(DType::I64, 0)],
        step,
        combine,
        finish,
    }
}

pub(super) fn reduce_kernel(reducer: Reducer, lanes: u32, rows: bool, dtype: DType) -> Kernel {
    let mut e = Expr::default();
    let a = e.arg(0, dtype);
    e.roots = vec![a];
    let index = if rows { vec![l(0), l(2), l(3)] } else { vec![l(2), l(3), l(0)] };
    let dims = if rows { vec![n(11), n(3), s("d0")] } else { vec![n(3), s("d0"), n(11)] };
    let outputs = reducer.finish.roots.len();
    let mut args = vec![arg("x", dtype, &dims, Role::In)];
    for (i, r) in reducer.finish.roots.iter().enumerate() {
        args.push(arg(["y", "z"][i], reducer.finish.dtype(*r), &[n(11)], Role::Out));
    }
    let stores = (0..outputs as u32).map(|i| store(i + 1, &[l(0)], i)).collect();
    let mut st = stage("reduce", &[0], Kind::Reduce { reducer, lanes }, vec![load(0, &index)], e, stores);
    st.red = vec![(2, n(3)), (3, s("d0"))];
    kernel(&["d0"], args, &[n(11)], vec![st])
}

fn check_reduce(k: &Kernel, lanes: u32) {
    let case = |d0: usize| {
        let mut r = Stream(d0 as u64 + 1);
        let shape: Vec<usize> =
            k.args[0].dims.iter().map(|d| d.as_const().map_or(d0, |v| v as usize)).collect();
        let mut args = vec![r.tensor(k.args[0].dtype, &shape)];
        for a in &k.args[1..] {
            args.push(Tensor::from_f64(a.dtype, &[11], &[0.0; 11]));
        }
        (vec![d0 as i64], args)
    };
    let mut plans = vec![one(&[4], plain(Some(0), 4, 2)), one(&[11], plain(Some(0), 8, 1))];
    for w in [2, 8, 16] {
        if lanes.is_multiple_of(w) {
            plans.push(one(&[3], plain(Some(3), w, 1)));
        }
    }
    check_cases(k, &[0, 1, 2, 7, 9, 64, 75, 131].map(case), &plans);
}

#[test]
fn reductions_keep_the_normative_order() {
    for (lanes, rows) in [(64, true), (8, false), (8, true), (1, false)] {
        check_reduce(&reduce_kernel(sum_reducer(Bin::Add, DType::F32), lanes, rows, DType::F32), lanes);
    }
    check_reduce(&reduce_kernel(sum_reducer(Bin::Max, DType::F32), 64, true, DType::F32), 64);
    check_reduce(&reduce_kernel(sum_reducer(Bin::Or, DType::Bool), 16, true, DType::Bool), 16);
    check_reduce(&reduce_kernel(sum_reducer(Bin::Add, DType::I8), 16, false, DType::I8), 16);
}

#[test]
fn tuple_reductions_know_positions() {
    check_reduce(&reduce_kernel(arg_max(), 64, true, DType::F32), 64);
    check_reduce(&reduce_kernel(arg_max(), 8, false, DType::F32), 8);
}

pub(super) fn contract_kernel(dtype: DType, k_dims: &[Dim], chunk: u32, post: bool) -> Kernel {
    let mut e = Expr::default();
    let (a, b) = (e.arg(0, dtype), e.arg(1, dtype));
    e.roots = vec![a, b];
    let reds: Vec<(u32, Dim)> = k_dims.iter().enumerate().map(|(i, d)| (5 + i as u32, d.clone())).collect();
    let red: Vec<Dim> = reds.iter().map(|r| l(r.0)).collect();
    let dims = |more: Dim, first: bool| {
        let mut v = k_dims.to_vec();
        v.insert(if first { 0 } else { v.len() }, more);
        v
    };
    let mut loads =
        vec![load(0, &[vec![l(0)], red.clone()].concat()), load(1, &[red.clone(), vec![l(1)]].concat())];
    let mut args = vec![
        arg("a", dtype, &dims(s("d0"), true), Role::In),
        arg("b", dtype, &dims(n(19), false), Role::Const),
        arg("y", dtype, &[s("d0"), n(19)], Role::Out),
    ];
    if post {
        loads.push(load(3, &[l(1)]));
        args.push(arg("bias", dtype, &[n(19)], Role::Const));
    }
    let mut st =
        stage("matmul", &[0, 1], Kind::Contract { chunk }, loads, e, vec![store(2, &[l(0), l(1)], 0)]);
    st.red = reds;
    if post {
        let mut p = Expr::default();
        let (r, b) = (p.arg(0, dtype), p.arg(3, dtype));
        let sum = p.bin(Bin::Add, r, b);
        let zero = p.num(sum, 0.0);
        let relu = p.bin(Bin::Max, sum, zero);
        p.roots = vec![relu];
        st.post = Some(p);
    }
    kernel(&["d0", "d1"], args, &[s("d0"), n(19)], vec![st])
}

#[test]
fn contractions_keep_chains_and_chunks() {
    let cases: [(&[Dim], u32, bool); 6] = [
        (&[s("d1")], 4, true),
        (&[s("d1")], 1024, false),
        (&[n(12)], 1024, true),
        (&[n(3), s("d1")], 5, false),
        (&[s("d1"), n(2), n(3)], 12, true),
        (&[n(5), n(7)], 16, false),
    ];
    for (dims, chunk, post) in cases {
        for dtype in [DType::F32, DType::F64, DType::I32] {
            let k = contract_kernel(dtype, dims, chunk, post);
            let case = |(d0, d1): (usize, usize)| {
                let mut r = Stream(11);
                let size = |v: &[Dim]| -> Vec<usize> {
                    let f = |d: &Dim| match d.as_sym().map(|s| &**s) {
                        Some("d0") => d0,
                        Some(_) => d1,
                        None => d.as_const().unwrap() as usize,
                    };
                    v.iter().map(f).collect()
                };
                let mut args: Vec<Tensor> = k.args.iter().map(|a| r.tensor(dtype, &size(&a.dims))).collect();
                args[2] = Tensor::from_f64(dtype, &[d0, 19], &vec![0.0; d0 * 19]);
                (vec![d0 as i64, d1 as i64], args)
            };
            let plans = [
                one(&[2, 19], plain(Some(1), 4, 3)),
                one(&[4, 8], plain(Some(1), 8, 1)),
                one(&[2, 19], plain(Some(0), 2, 1)),
            ];
            check_cases(&k, &[(1, 0), (3, 1), (2, 4), (2, 13), (0, 3)].map(case), &plans);
        }
    }
}

#[test]
fn stages_share_locals_of_a_tile() {
    // Softmax without the exponential: subtract the row's greatest value, divide by the sum.
    let mut id = Expr::default();
    let x = id.arg(0, DType::F32);
    id.roots = vec![x];
    let row = |from: Buf, index: Vec<Dim>| Load { from, index, mode: Mode::Proved };
    let to =
        |b: u32, index: Vec<Dim>| Store { to: Buf::Local(b), index, value: 0, op: Combine::Set, site: 0 };
    let reduce = |reducer| Kind::Reduce { reducer, lanes: 64 };
    let mut greatest = stage(
        "max",
        &[0],
        reduce(sum_reducer(Bin::Max, DType::F32)),
        vec![row(Buf::Arg(0), vec![l(0), l(1)])],
        id.clone(),
        vec![to(0, vec![l(0)])],
    );
    greatest.red = vec![(1, s("d1"))];
    let mut e = Expr::default();
    let (a, b) = (e.arg(0, DType::F32), e.arg(1, DType::F32));
    e.roots = vec![e.bin(Bin::Sub, a, b)];
    let mut shift = stage(
        "sub",
        &[0],
        Kind::Map,
        vec![row(Buf::Arg(0), vec![l(0), l(2)]), row(Buf::Local(0), vec![l(0)])],
        e,
        vec![to(1, vec![l(0), l(2)])],
    );
    shift.inner = vec![(2, s("d1"))];
    let mut total = stage(
        "sum",
        &[0],
        reduce(sum_reducer(Bin::Add, DType::F32)),
        vec![row(Buf::Local(1), vec![l(0), l(3)])],
        id,
        vec![to(2, vec![l(0)])],
    );
    total.red = vec![(3, s("d1"))];
    let mut e = Expr::default();
    let (a, b) = (e.arg(0, DType::F32), e.arg(1, DType::F32));
    e.roots = vec![e.bin(Bin::Div, a, b)];
    let mut div = stage(
        "div",
        &[0],
        Kind::Map,
        vec![row(Buf::Local(1), vec![l(0), l(4)]), row(Buf::Local(2), vec![l(0)])],
        e,
        vec![store(1, &[l(0), l(4)], 0)],
    );
    div.inner = vec![(4, s("d1"))];
    let mut k = kernel(
        &["d0", "d1"],
        vec![
            arg("x", DType::F32, &[s("d0"), s("d1")], Role::In),
            arg("y", DType::F32, &[s("d0"), s("d1")], Role::Out),
        ],
        &[s("d0")],
        vec![greatest, shift, total, div],
    );
    let tile = || LocalAxis::Tile { grid: 0, lo: 0, hi: 0 };
    let local = |name: &str, axes| Local { name: name.into(), dtype: DType::F32, axes };
    k.locals = vec![
        local("m", vec![tile()]),
        local("t", vec![tile(), LocalAxis::Full(s("d1"))]),
        local("s", vec![tile()]),
    ];
    let case = |(d0, d1): (usize, usize)| {
        let args = vec![
            Stream(5).tensor(DType::F32, &[d0, d1]),
            Tensor::from_f64(DType::F32, &[d0, d1], &vec![0.0; d0 * d1]),
        ];
        (vec![d0 as i64, d1 as i64], args)
    };
    let plans = [
        Schedule {
            tiles: vec![2],
            order: vec![0],
            stages: vec![
                plain(Some(1), 16, 1),
                plain(Some(2), 8, 2),
                plain(Some(3), 16, 1),
                plain(Some(4), 8, 1),
            ],
        },
        Schedule {
            tiles: vec![4],
            order: vec![0],
            stages: vec![
                plain(Some(0), 4, 1),
                plain(Some(0), 4, 1),
                plain(Some(0), 2, 1),
                plain(Some(4), 4, 4),
            ],
        },
    ];
    check_cases(&k, &[(5, 77), (1, 3), (3, 0), (4, 128)].map(case), &plans);
}

pub(super) fn gather_kernel() -> Kernel {
    let mut e = Expr::default();
    let i = e.arg(0, DType::I64);
    let d = e.dim(s("d0"));
    let zero = e.constant(Scalar::from_int(DType::I64, 0));
    let below = e.bin(Bin::Lt, i, zero);
    let up = e.bin(Bin::Add, i, d);
    let at = e.select(below, up, i);
    let x = e.arg(1, DType::F32);
    e.roots = vec![x];
    let read = Load { from: Buf::Arg(0), index: vec![Dim::val(at), l(1)], mode: Mode::Trap(1, Pred::True) };
    let st = stage(
        "gather",
        &[0, 1],
        Kind::Map,
        vec![load(1, &[l(0)]), read],
        e,
        vec![store(2, &[l(0), l(1)], 0)],
    );
    let mut k = kernel(
        &["d0"],
        vec![
            arg("x", DType::F32, &[s("d0"), n(9)], Role::In),
            arg("i", DType::I64, &[n(13)], Role::In),
            arg("y", DType::F32, &[n(13), n(9)], Role::Out),
        ],
        &[n(13), n(9)],
        vec![st],
    );
    k.sites = vec!["index out of range".into()];
    k
}

#[test]
fn gathers_check_their_indices() {
    let k = gather_kernel();
    let x = Stream(9).tensor(DType::F32, &[6, 9]);
    let y = Tensor::from_f64(DType::F32, &[13, 9], &[0.0; 117]);
    let plans = [one(&[4, 9], plain(Some(1), 8, 1)), one(&[13, 2], plain(Some(0), 4, 2))];
    let good: Vec<i64> = (0..13).map(|i| i % 12 - 6).collect();
    check(&k, &[6], &[x.clone(), Tensor::from_ints(DType::I64, &[13], &good), y.clone()], &plans);
    let case = |bad: i64| {
        let mut v = good.clone();
        v[11] = bad;
        (vec![6], vec![x.clone(), Tensor::from_ints(DType::I64, &[13], &v), y.clone()])
    };
    check_cases(&k, &[6, -7, i64::MIN, i64::MAX].map(case), &plans);
}

#[test]
fn scatters_combine_in_order() {
    for (op, dtype) in [
        (Combine::Add, DType::F32),
        (Combine::Set, DType::F32),
        (Combine::Max, DType::I64),
        (Combine::Mul, DType::F16),
    ] {
        let mut e = Expr::default();
        let (u, i) = (e.arg(1, dtype), e.arg(0, DType::I32));
        e.roots = vec![u];
        let mut st =
            stage("scatter", &[], Kind::Map, vec![load(1, &[l(0)]), load(2, &[l(0)])], e, Vec::new());
        st.inner = vec![(0, n(40))];
        st.stores = vec![Store { to: Buf::Arg(0), index: vec![Dim::val(i)], value: 0, op, site: 1 }];
        let mut k = kernel(
            &[],
            vec![
                arg("y", dtype, &[n(7)], Role::InOut),
                arg("i", DType::I32, &[n(40)], Role::In),
                arg("u", dtype, &[n(40)], Role::In),
            ],
            &[],
            vec![st],
        );
        k.sites = vec!["index out of range".into()];
        let mut r = Stream(21);
        let y = r.tensor(dtype, &[7]);
        let u = r.tensor(dtype, &[40]);
        let i: Vec<i64> = (0..40).map(|_| (r.next() % 7) as i64).collect();
        check(&k, &[], &[y.clone(), Tensor::from_ints(DType::I32, &[40], &i), u.clone()], &[]);
        let mut bad = i.clone();
        bad[30] = -1;
        check(&k, &[], &[y, Tensor::from_ints(DType::I32, &[40], &bad), u], &[]);
    }
}

#[test]
fn loops_carry_state_in_rings() {
    // y[i] = x[i] + y[i - 1], by a ring of two positions.
    let mut e = Expr::default();
    let (x, before) = (e.arg(0, DType::F32), e.arg(1, DType::F32));
    e.roots = vec![e.bin(Bin::Add, x, before)];
    let prev = l(1) - n(1);
    let st = stage(
        "cumsum",
        &[0],
        Kind::Map,
        vec![
            load(0, &[l(1), l(0)]),
            Load {
                from: Buf::Local(0),
                index: vec![prev.clone(), l(0)],
                mode: Mode::Fill(Pred::Le(n(1), l(1)), Scalar::from_f64(DType::F32, 0.0)),
            },
        ],
        e,
        vec![store(1, &[l(1), l(0)], 0)],
    );
    let mut keep = Expr::default();
    let x = keep.arg(0, DType::F32);
    keep.roots = vec![x];
    let zero = stage(
        "zero",
        &[0],
        Kind::Map,
        vec![load(0, &[n(0), l(0)])],
        keep.clone(),
        vec![Store { to: Buf::Local(0), index: vec![n(0), l(0)], value: 0, op: Combine::Set, site: 0 }],
    );
    let back = stage(
        "keep",
        &[0],
        Kind::Map,
        vec![load(1, &[l(1), l(0)])],
        keep,
        vec![Store { to: Buf::Local(0), index: vec![l(1), l(0)], value: 0, op: Combine::Set, site: 0 }],
    );
    let mut k = kernel(
        &["d0"],
        vec![
            arg("x", DType::F32, &[n(6), s("d0")], Role::In),
            arg("y", DType::F32, &[n(6), s("d0")], Role::Out),
        ],
        &[s("d0")],
        vec![zero],
    );
    k.locals = vec![Local {
        name: "r".into(),
        dtype: DType::F32,
        axes: vec![LocalAxis::Ring(2), LocalAxis::Tile { grid: 0, lo: 0, hi: 0 }],
    }];
    k.body.push(Item::Loop { var: 1, lo: n(0), hi: n(6), body: vec![Item::Stage(st), Item::Stage(back)] });
    let args = [Stream(2).tensor(DType::F32, &[6, 10]), Tensor::from_f64(DType::F32, &[6, 10], &[0.0; 60])];
    let p = plain(Some(0), 4, 1);
    check(&k, &[10], &args, &[Schedule { tiles: vec![7], order: vec![0], stages: vec![p; 3] }]);
}
