//! Random whole graphs of every op, with weights and two dynamic dims: the interpreter, the optimized graph in the
//! interpreter and the compiled artifact at one and two threads give the same, within the error bound of the first; those
//! of one and two threads the same bits. Every graph runs at two sizes of each dim, from one artifact; every buffer of the
//! caller lies against a page that cannot be touched, at its end and at its beginning.
//!
//! `TGC_GRAPHS` is the number of graphs (a long run has 10000), `TGC_GRAPHS_FROM` the first seed. A failing graph is written
//! to `<seed>.tgir` in the folder `graphs` of `CARGO_TARGET_TMPDIR`, its weights beside it; `tgc reduce` shrinks it. If the process itself dies, the
//! graphs that it was about to run are in `running.txt` there.

mod buffers;
mod check;
mod command;
mod maker;
mod rng;

use check::{Tally, check, compile, pools};
use maker::{Made, random};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tgc::ir::module::Module;
use tgc::ir::ops::Op;
use tgc::ir::text::print_module;

/// Graphs in one artifact.
const BATCH: usize = 10;

/// Seeds that have shown a fault; every run begins with them.
const FOUND: [u64; 8] =
    [1_000_471, 1_002_208, 1_002_878, 1_004_935, 1_006_096, 1_006_116, 1_006_621, 1_006_958];

/// Ops that no random graph has: regions, sizes that depend on data, and what code generation refuses.
const WITHOUT: [&str; 7] = ["input", "fused", "cond", "repeat", "bind_dim", "non_zero", "top_k"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn folder() -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("graphs");
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A panic in words.
fn caught<T>(f: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|p| {
        let said = p.downcast_ref::<String>().map(String::as_str).or(p.downcast_ref::<&str>().copied());
        Err(format!("a panic: {}", said.unwrap_or("without words")))
    })
}

/// Builds a batch; one at a time, to name those at fault, when that fails.
fn batch(
    made: &[(u64, Made)],
    pools: &[std::sync::Arc<tgc::runtime::Pool>; 2],
    tally: &mut Tally,
) -> Vec<(u64, String)> {
    let all = caught(|| compile(made.iter().map(|m| &m.1)));
    let mut faults = Vec::new();
    for (seed, m) in made {
        let one = all.clone().or_else(|_| caught(|| compile([m].into_iter())));
        if let Err(e) = one.and_then(|model| caught(|| check(m, &model, pools, tally))) {
            faults.push((*seed, e));
        }
    }
    if let (Err(e), true) = (all, faults.is_empty()) {
        faults.push((made[0].0, format!("{BATCH} graphs from this seed on fail together only: {e}")));
    }
    faults
}

fn count_ops(m: &Module, seen: &mut BTreeMap<&'static str, usize>) {
    for g in m.graphs() {
        g.ids()
            .into_iter()
            .filter_map(|id| g.op_of(id))
            .for_each(|op| *seen.entry(op.name()).or_default() += 1);
    }
}

#[test]
fn random_graphs_compute_the_same_in_every_way() {
    let (from, wanted) = (number("TGC_GRAPHS_FROM", 0), number("TGC_GRAPHS", 200));
    let (folder, pools) = (folder(), pools());
    let (mut tally, mut seen) = (Tally::default(), BTreeMap::new());
    let mut report = String::new();
    let all: Vec<u64> = FOUND.into_iter().chain(from..from + wanted).collect();
    for seeds in all.chunks(BATCH) {
        let made: Vec<(u64, Made)> = seeds.iter().map(|&s| (s, random(s, &format!("g{s}")))).collect();
        made.iter().for_each(|m| count_ops(&m.1.module, &mut seen));
        let texts: Vec<String> = made.iter().map(|m| print_module(&m.1.module)).collect();
        std::fs::write(folder.join("running.txt"), texts.join("\n")).unwrap();
        for (seed, why) in batch(&made, &pools, &mut tally) {
            let path = folder.join(format!("{seed}.tgir"));
            let module = made.iter().find(|m| m.0 == seed).map(|m| &m.1.module);
            tgc::ir::weights::save_module(module.unwrap(), &path).unwrap();
            report += &format!("seed {seed} ({}): {why}\n", path.display());
        }
    }
    assert!(report.is_empty(), "{report}");
    let Tally { runs, refused, elements, open } = tally;
    println!(
        "{wanted} graphs, {runs} runs, {refused} refused, {open} of {elements} elements without a bound\n{seen:?}"
    );
    assert!(open * 2 < elements, "the bound says nothing for {open} of {elements} elements");
    assert!(refused * 4 < runs, "{refused} runs are refused, {runs} are not");
    let missing: Vec<&&str> =
        Op::all().iter().filter(|o| !seen.contains_key(*o) && !WITHOUT.contains(o)).collect();
    assert!(wanted < 200 || missing.is_empty(), "no graph has {missing:?}");
}
