//! Exported ONNX files against outside oracles: the ONNX checker with strict shape inference, and ONNX Runtime on stored inputs and
//! outputs. Exported are the cases of the ONNX backend suite that tgc imports, as the files have them and with the sizes
//! of their inputs as symbols, the corpus of whole models, and fixtures of the ops and random graphs, whose results are the
//! interpreter's.
//!
//! What does not survive, and why, is known.tsv: kind, name, opset, status. Anything else is a failure, and so is a line there that
//! survives. Of the core cases at the default opset at least 95% must survive.
//!
//! One Python process checks and runs all files. `TGC_CASES=relu,conv` takes only cases with one of the words in their names and
//! prints what becomes of them; `TGC_WRITE=1` writes known.tsv anew.

mod command;
#[allow(dead_code)] // shared with the harness of fixtures
#[path = "../harness/data.rs"]
mod data;
#[allow(dead_code)] // shared with the harness of fixtures
#[path = "../harness/execute.rs"]
mod execute;
#[allow(dead_code)] // shared with the harness of fixtures
#[path = "../harness/header.rs"]
mod header;
mod made;
#[path = "../graphs/maker/mod.rs"]
mod maker;
mod outcome;
#[path = "../graphs/rng.rs"]
mod rng;
#[allow(dead_code)] // shared with the conformance suite
#[path = "../conformance/stored.rs"]
mod stored;
#[allow(dead_code)] // shared with the harness of fixtures
#[path = "../harness/walk.rs"]
mod walk;
mod worker;

use libtest_mimic::{Arguments, Trial};
use outcome::Outcome;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What ./test prepares under target/.
fn prepared(path: &str) -> PathBuf {
    let p = root().join("target").join(path);
    assert!(p.exists(), "{} is missing: run ./test, which prepares it", p.display());
    p
}

/// Makes what is exported.
type Jobs = fn() -> Vec<made::Job>;

fn main() {
    let args = Arguments::from_args();
    let mut trials = vec![Trial::test("command", || command::run().map_err(Into::into))];
    let groups = [
        ("suite", made::suite as Jobs),
        ("models", made::models),
        ("ops", made::fixtures),
        ("graphs", made::graphs),
    ];
    trials
        .extend(groups.map(|(name, jobs)| Trial::test(name, move || run(name, jobs()).map_err(Into::into))));
    libtest_mimic::run(&args, trials).exit();
}

fn run(group: &'static str, mut jobs: Vec<made::Job>) -> Result<(), String> {
    let words = std::env::var("TGC_CASES").unwrap_or_default();
    jobs.retain(|j| words.split(',').any(|w| j.name.contains(w)));
    let found: Vec<Outcome> = worker::run_all(jobs)?;
    if !words.is_empty() {
        found.iter().for_each(|o| println!("{} {} {}: {} {}", o.kind, o.name, o.opset, o.status, o.why));
        return Ok(());
    }
    outcome::judge(group, &found)
}
