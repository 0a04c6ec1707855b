//! Compiled kernels against the kernel interpreter, bit for bit, with buffers against guard pages at both ends: random
//! kernels here, hand-written ones for each feature in the files below.

mod scalars;
mod stages;

use super::testrun::{Loaded, run};
use super::*;
use crate::kernel::{Arg, Buf, Item, Kind, Load, Mode, Role, Stage, Store, interp};
use crate::schedule::StageSchedule;
use scalars::unary_map;
use stages::{arg_max, contract_kernel, gather_kernel, reduce_kernel};
use std::sync::Arc;
use tgc_ir::class::{Combine, Reducer};
use tgc_ir::scalar::{Bin, Expr, Scalar, Un};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, Pred};

fn l(i: u32) -> Dim {
    Dim::label(i)
}

fn n(v: i64) -> Dim {
    Dim::from(v)
}

fn s(name: &str) -> Dim {
    Dim::sym(name)
}

fn arg(name: &str, dtype: DType, dims: &[Dim], role: Role) -> Arg {
    Arg { name: name.into(), dtype, dims: dims.to_vec(), role, packed: None }
}

fn load(from: u32, index: &[Dim]) -> Load {
    Load { from: Buf::Arg(from), index: index.to_vec(), mode: Mode::Proved }
}

fn store(to: u32, index: &[Dim], value: u32) -> Store {
    Store { to: Buf::Arg(to), index: index.to_vec(), value, op: Combine::Set, site: 0 }
}

fn stage(name: &str, over: &[u32], kind: Kind, loads: Vec<Load>, expr: Expr, stores: Vec<Store>) -> Stage {
    Stage {
        name: name.into(),
        when: Pred::True,
        over: over.to_vec(),
        inner: Vec::new(),
        red: Vec::new(),
        kind,
        loads,
        expr,
        post: None,
        stores,
    }
}

fn kernel(params: &[&str], args: Vec<Arg>, grid: &[Dim], stages: Vec<Stage>) -> Kernel {
    Kernel {
        name: "k".into(),
        params: params.iter().map(|p| Arc::from(*p)).collect(),
        args,
        grid: grid.to_vec(),
        locals: Vec::new(),
        body: stages.into_iter().map(Item::Stage).collect(),
        sites: Vec::new(),
    }
}

/// A small pseudo-random stream.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) ^ (self.0 >> 13)
    }

    fn tensor(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        let special = [
            0.0,
            -0.0,
            1.0,
            -1.5,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1e-40,
            3e38,
            127.5,
            -129.0,
            2147483648.0,
        ];
        let count: usize = shape.iter().product();
        let elems: Vec<Scalar> = (0..count)
            .map(|_| {
                let r = self.next();
                if !dtype.is_float() {
                    let v = if r.is_multiple_of(4) {
                        r as i64 % 3
                    } else {
                        r as i64 ^ (self.next() as i64) << 32
                    };
                    return Scalar::from_int(dtype, i128::from(v));
                }
                let v = if r.is_multiple_of(16) {
                    special[(r / 16) as usize % special.len()]
                } else {
                    (r % 20001) as f64 / 1000.0 - 10.0
                };
                Scalar::from_f64(dtype, v)
            })
            .collect();
        Tensor::from_scalars(dtype, shape, elems)
    }
}

fn plain(vector: Option<u32>, width: u32, unroll: u32) -> StageSchedule {
    StageSchedule { vector, width, unroll, rows: None }
}

/// Those that run here, or the guest's.
fn targets() -> Vec<Target> {
    let parse = |t: &str| Target::parse(t).unwrap();
    match &guest::host::targets()[..] {
        [] => ["x86-64-v3", "x86-64-v4", "native"].map(parse).into_iter().filter(Target::runs_here).collect(),
        guest => guest.iter().map(|t| parse(t)).collect(),
    }
}

fn same(a: &Tensor, b: &Tensor) -> bool {
    a.dtype == b.dtype && a.shape == b.shape && a.scalars().zip(b.scalars()).all(|(x, y)| x == y)
}

/// Runs on every target with the schedules given and the default one, and compares with the interpreter.
fn check(k: &Kernel, params: &[i64], args: &[Tensor], schedules: &[Schedule]) {
    check_cases(k, &[(params.to_vec(), args.to_vec())], schedules);
}

/// As [`check`], for several sizes.
fn check_cases(k: &Kernel, cases: &[(Vec<i64>, Vec<Tensor>)], schedules: &[Schedule]) {
    let mut k = k.clone();
    crate::lower::math::lower_kernel(&mut k).unwrap();
    let expected: Vec<Expected> = cases.iter().map(|(p, a)| interpret(&k, p, a)).collect();
    for t in targets() {
        let mut plans = schedules.to_vec();
        plans.extend([Schedule::default_for(&k, t.isa), Schedule::scalar(&k, 3)]);
        for plan in plans {
            let image = compile_all(&[(k.clone(), plan.clone())], &t, 1).unwrap();
            let loaded = Loaded::new(&image, &t);
            for ((params, args), want) in cases.iter().zip(&expected) {
                agrees(&loaded, &k, &plan, (params, args), want, &t.name);
            }
        }
    }
}

/// Compares a lowered kernel with the interpreter under the default schedule and each given one, on this machine's own
/// target or the guest's.
pub(crate) fn check_own(k: &Kernel, params: &[i64], args: &[Tensor], schedules: &[Schedule]) {
    let expected = interpret(k, params, args);
    let target = targets().pop().unwrap();
    for plan in [&[Schedule::default_for(k, target.isa)], schedules].concat() {
        let image = compile_all(&[(k.clone(), plan.clone())], &target, 1).unwrap();
        agrees(&Loaded::new(&image, &target), k, &plan, (params, args), &expected, &target.name);
    }
}

/// What the interpreter gives: the outcome and the arguments after it.
type Expected = (Result<(), i32>, Vec<Tensor>);

fn interpret(k: &Kernel, params: &[i64], args: &[Tensor]) -> Expected {
    let mut want = args.to_vec();
    match interp::run(k, params, &mut want) {
        Err(interp::Stop::Trap(site)) => (Err(site as i32), want),
        r => {
            r.unwrap();
            (Ok(()), want)
        }
    }
}

/// Compares one kernel with the interpreter, its buffers against guard pages at the end and at the beginning, one tile a
/// call and all at once.
fn agrees(
    loaded: &Loaded,
    k: &Kernel,
    plan: &Schedule,
    (params, args): (&[i64], &[Tensor]),
    (expected, want): &Expected,
    context: &str,
) {
    for (at_end, grain) in [(true, 1), (false, 1 << 40)] {
        let mut got = args.to_vec();
        let r = run(loaded, k, plan, params, &mut got, at_end, grain);
        let show = || format!("{context}, {plan}, params {params:?}\n{}", crate::kernel::text::print(k));
        assert_eq!(r, *expected, "{}", show());
        if r.is_err() {
            continue;
        }
        for ((g, w), a) in got.iter().zip(want).zip(&k.args) {
            assert!(same(g, w), "{}`{}`\n got {:?}\nwant {:?}", show(), a.name, g.to_f64(), w.to_f64());
        }
    }
}

fn one(tiles: &[u32], plan: StageSchedule) -> Schedule {
    Schedule { tiles: tiles.to_vec(), order: (0..tiles.len() as u32).collect(), stages: vec![plan] }
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    let t = Target::parse("x86-64-v3").unwrap();
    let k = unary_map(DType::F32, DType::F32, |e, x| e.un(Un::Exp, x));
    let e = compile(&k, &Schedule::scalar(&k, 8), &t).unwrap_err();
    assert!(e.to_string().contains("`exp`"), "{e}");
    let v2 = Target::parse("x86-64-v2").unwrap();
    let k = unary_map(DType::F16, DType::F32, |e, x| e.cast(DType::F32, x));
    let e = compile(&k, &Schedule::scalar(&k, 8), &v2).unwrap_err();
    assert!(e.to_string().contains("F16C"), "{e}");
}

#[test]
fn images_do_not_depend_on_threads() {
    let t = Target::parse("x86-64-v4").unwrap();
    let mut kernels = Vec::new();
    for (i, chunk) in [4, 8, 16, 1024].into_iter().enumerate() {
        let mut k = contract_kernel(DType::F32, &[s("d1")], chunk, true);
        k.name = format!("k{i}");
        let s = Schedule::default_for(&k, t.isa);
        kernels.push((k, s));
    }
    let one = compile_all(&kernels, &t, 1).unwrap();
    assert_eq!(one, compile_all(&kernels, &t, 4).unwrap());
    assert_eq!(one.symbols.len(), 4);
    let text = text(&kernels[0].0, &kernels[0].1, &t, true).unwrap();
    assert!(text.contains("vfmadd"), "{text}");
}

#[test]
fn other_targets_make_objects_that_link() {
    for name in ["x86-64-v2", "x86-64-v4+avx512vnni", "aarch64"] {
        let t = Target::parse(name).unwrap();
        for k in [
            contract_kernel(DType::F32, &[s("d1")], 4, true),
            reduce_kernel(arg_max(), 64, true, DType::F32),
            gather_kernel(),
        ] {
            let s = Schedule::default_for(&k, t.isa);
            let image = compile_all(&[(k, s)], &t, 1).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(image.bytes.len() > 64);
        }
    }
}

/// Random kernels, each with several random schedules.
#[test]
fn random_kernels_equal_the_interpreter_under_random_schedules() {
    const SCHEDULES: usize = 5;
    let targets = targets();
    let seeds: Vec<u64> = (0..crate::lower::tests::count(500)).collect();
    for batch in seeds.chunks(100) {
        let cases: Vec<_> = batch
            .iter()
            .map(|&seed| {
                let c = crate::kernel::random::case(seed);
                let want = interpret(&c.kernel, &c.params, &c.args);
                (c, want)
            })
            .collect();
        for (t, target) in targets.iter().enumerate() {
            let mut work = Vec::new();
            for (n, (case, want)) in cases.iter().enumerate() {
                let mut r = crate::kernel::random::Rng::new(batch[n]);
                for i in 0..SCHEDULES {
                    let plan = if i == 0 {
                        Schedule::default_for(&case.kernel, target.isa)
                    } else {
                        Schedule::random(&case.kernel, &mut r)
                    };
                    if (n + i) % targets.len() == t {
                        let k = Kernel { name: format!("{}_{i}", case.kernel.name), ..case.kernel.clone() };
                        work.push(((k, plan), case, want));
                    }
                }
            }
            let kernels: Vec<_> = work.iter().map(|w| w.0.clone()).collect();
            let image = compile_all(&kernels, target, 2).unwrap_or_else(|e| panic!("{e}"));
            let loaded = Loaded::new(&image, target);
            for ((k, plan), case, want) in work {
                agrees(&loaded, &k, &plan, (&case.params, &case.args), want, &target.name);
            }
        }
    }
}
