//! Property test of lowering and code: random regions, run as a graph, as a kernel, and compiled under random schedules.

mod chain;
pub(crate) mod region;

use super::lower_region;
use crate::cpu::tests::check_own;
use crate::kernel::interp::{self, Stop};
use crate::kernel::text::print;
use crate::kernel::{Arg, Kernel};
use crate::lower::math::lower_kernel;
use crate::schedule::Schedule;
use region::{Region, Rng};
use tgc_ir::accuracy::within;
use tgc_ir::interp::run_graph_bounded;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{Atom, Dim};

/// Number of regions, from the environment for long runs.
pub(crate) fn count(default: u64) -> u64 {
    std::env::var("TGC_KERNELS").ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn zeros(t: &Tensor) -> Tensor {
    Tensor { data: Data::new(vec![0u8; t.data.bytes().len()]), ..t.clone() }
}

fn named(k: &Kernel, params: &[i64], a: &Atom) -> Option<i64> {
    match a {
        Atom::Sym(s) => k.params.iter().position(|p| p == s).map(|i| params[i]),
        _ => None,
    }
}

/// One region: graph interpreter against kernel interpreter within the bound. True when it was one kernel that ran.
fn check_region(seed: u64, r: &Region) -> bool {
    let show = || format!("seed {seed}\n{}", tgc_ir::text::print_graph(&r.graph));
    let want = match run_graph_bounded(&r.graph, &r.inputs, &|_| None) {
        Ok(w) => w,
        Err(_) => return false,
    };
    let mut rng = crate::kernel::random::Rng::new(seed);
    // Which inputs are weights changes how they lie in memory and nothing else.
    let consts: Vec<bool> = r.inputs.iter().map(|_| rng.once_in(2)).collect();
    let low = match lower_region(&r.graph, &r.graph.symbols, &consts) {
        Err(d) if d.code == "E-CG-002" => return false,
        low => low.unwrap_or_else(|d| panic!("{d}\n{}", show())),
    };
    let mut kernel = low.kernel;
    kernel.name = "k".to_string();
    if let Some(d) = crate::kernel::verify::verify(&kernel).into_iter().next() {
        panic!("{d}\n{}\n{}", show(), print(&kernel));
    }
    lower_kernel(&mut kernel).unwrap_or_else(|d| panic!("{d}\n{}", show()));
    let leaf = |a: &Atom| match a {
        Atom::Sym(s) => r.symbols.get(&**s).copied(),
        _ => None,
    };
    let params: Vec<i64> = low.dims.iter().map(|d| d.eval(&leaf).unwrap()).collect();
    // Lowering may join axes of a buffer, which changes its shape and not its bytes.
    let shaped = |tensors: Vec<Tensor>| -> Vec<Tensor> {
        let value = |d: &Dim| d.eval(&|a| named(&kernel, &params, a)).unwrap() as usize;
        let shape = |(t, a): (Tensor, &Arg)| Tensor { shape: a.dims.iter().map(value).collect(), ..t };
        tensors.into_iter().zip(&kernel.args).map(shape).collect()
    };
    let given =
        || -> Vec<Tensor> { r.inputs.iter().cloned().chain(want.iter().map(|w| zeros(&w.tensor))).collect() };
    let mut args = shaped(given());
    match interp::run(&kernel, &params, &mut args) {
        Ok(()) => {}
        Err(Stop::Trap(s)) => panic!("trap {s}\n{}", show()),
        Err(Stop::Fault(d)) => panic!("{d}\n{}\n{}", show(), print(&kernel)),
    }
    let fresh = shaped(given());
    let plans: Vec<Schedule> = (0..4).map(|_| Schedule::random(&kernel, &mut rng)).collect();
    check_own(&kernel, &params, &fresh, &plans);
    let outs = &args[r.inputs.len()..];
    for (got, want) in outs.iter().zip(&want) {
        let got = Tensor { shape: want.tensor.shape.clone(), ..got.clone() };
        if let Err(m) = within(&got, &want.tensor, &want.bound) {
            panic!("{m}\n{}\n{}", show(), print(&kernel));
        }
    }
    true
}

#[test]
fn kernels_of_random_regions_equal_the_graph() {
    let mut done = 0;
    let wanted = count(500);
    for seed in 0..wanted * 40 {
        if done == wanted {
            break;
        }
        if let Some(r) = region::random(&mut Rng::new(seed)) {
            done += u64::from(check_region(seed, &r));
        }
    }
    assert_eq!(done, wanted);
}
