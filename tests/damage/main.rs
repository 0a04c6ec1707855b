//! Damaged files of every kind: artifacts, ONNX models, `.tgir` texts with their weights, texts of kernels. Each must give
//! a diagnostic or be a right file of another kind; a panic, the end of a process, more than a GiB of memory, a case
//! without end, or a diagnostic that blames tgc is a finding.
//!
//! Cases run in processes of their own, many after another. `TGC_DAMAGE` is the number of cases over all files (a long run
//! has 20000), `TGC_DAMAGE_FROM` the first number; a number means the same damage on every machine that has the same
//! files. `TGC_DAMAGE_CASE=onnx-small:17` runs one case alone. The file of a finding stays in the folder `damage` of
//! `CARGO_TARGET_TMPDIR`.

mod artifact;
mod model;
mod mutate;
#[allow(dead_code)]
#[path = "../graphs/rng.rs"]
mod rng;
mod samples;
mod verdict;
mod wire;
mod workers;

use libtest_mimic::{Arguments, Trial};
use std::collections::BTreeMap;

/// The process is a worker and reads numbers of cases.
const WORKER: &str = "TGC_DAMAGE_WORKER";
/// Cases over all files if nobody says.
const FEW: usize = if cfg!(debug_assertions) { 800 } else { 3200 };

fn number(name: &str, default: usize) -> usize {
    match std::env::var(name) {
        Ok(v) => v.parse().unwrap_or_else(|_| panic!("{name}={v} is no number")),
        Err(_) => default,
    }
}

fn main() {
    if std::env::var_os(WORKER).is_some() {
        workers::work();
        return;
    }
    let args = Arguments::from_args();
    let trials = vec![
        Trial::test("what_must_not_happen_is_noticed", || workers::notices().map_err(Into::into)),
        Trial::test("damaged_files", || campaign().map_err(Into::into)),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn campaign() -> Result<(), String> {
    samples::prepare();
    if let Ok(case) = std::env::var("TGC_DAMAGE_CASE") {
        let (file, n) = case.split_once(':').ok_or("TGC_DAMAGE_CASE=FILE:NUMBER is wanted")?;
        let n = n.parse().map_err(|_| format!("`{n}` is no number"))?;
        let (what, verdict) = samples::Held::default().case(file, n);
        println!("{case}: {what}\n{}", verdict.map(|v| v.word())?);
        return Ok(());
    }
    let (from, wanted) = (number("TGC_DAMAGE_FROM", 0), number("TGC_DAMAGE", FEW));
    let files = samples::NAMES;
    let cases: Vec<(&str, usize)> =
        (0..wanted).map(|n| (files[n % files.len()], from + n / files.len())).collect();
    let ends = workers::run_all(&cases);
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let mut findings = Vec::new();
    for ((file, n), end) in cases.iter().zip(&ends) {
        match &end.verdict {
            Ok(word) => *counts.entry(file).or_default().entry(word).or_default() += 1,
            Err(why) => findings.push(format!("TGC_DAMAGE_CASE={file}:{n} ({}): {why}", end.what)),
        }
    }
    for (file, words) in &counts {
        println!("{file}: {words:?}");
    }
    let peak = ends.iter().map(|e| e.peak).max().unwrap_or(0);
    println!("{wanted} damaged files, {} findings, at most {} MiB", findings.len(), peak >> 20);
    if !findings.is_empty() {
        return Err(findings.join("\n"));
    }
    for file in files.iter().filter(|_| wanted >= 400) {
        let refused = counts.get(file).is_some_and(|w| w.keys().any(|w| w.starts_with("E-")));
        let accepted = counts.get(file).is_some_and(|w| w.keys().any(|w| !w.starts_with("E-")));
        if !refused || !accepted {
            return Err(format!(
                "{file}: damage is always harmless, or always fatal: {:?}",
                counts.get(file)
            ));
        }
    }
    Ok(())
}
