//! Verified builds: the artifact, through the loader that users have, against the interpreter on the model as it was given.
//! Where they differ, the first pass whose result computes something else is at fault, or the kernel whose code does not
//! what its region says. What must not be here: how inputs are drawn (`agree`).

use crate::agree::{Case, Fault, cases, compare};
use crate::build::{BuildOptions, build};
use std::collections::BTreeSet;
use tgc_codegen::artifact::Artifact;
use tgc_ir::accuracy::within;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::interp;
use tgc_ir::module::Module;
use tgc_ir::types::Type;
use tgc_passes as passes;
use tgc_runtime as rt;

/// Draws of inputs begin with this number: the same model is verified on the same inputs.
const SEED: u64 = 1;

/// An entry with inputs.
struct Run {
    entry: String,
    case: Case,
}

/// Compares. `given` is the module before the pipeline, `optimized` after it. Gives the record for the artifact.
pub(crate) fn verify(
    given: &Module,
    optimized: &Module,
    artifact: &Artifact,
    pipeline: &passes::Options,
) -> Result<String, Vec<Diag>> {
    let failed = |e: rt::Error| vec![Diag::error("E-BUG", format!("the new artifact does not load: {e}"))];
    let model = artifact.to_bytes().and_then(|b| rt::Loader::default().from_bytes(&b)).map_err(failed)?;
    let (mut runs, mut sizes) = (0, BTreeSet::new());
    for (entry, e) in &given.entries {
        for case in cases(&e.body, SEED) {
            match compare(given, entry, &model, &case.inputs) {
                Ok(true) => {}
                // Inputs that the model itself refuses (an index out of range) say nothing.
                Ok(false) => continue,
                Err(fault) => {
                    let run = Run { entry: entry.clone(), case };
                    return Err(vec![explain(given, optimized, pipeline, &run, &fault)]);
                }
            }
            runs += 1;
            sizes.insert(format!("{entry}{:?}", case.sizes));
        }
    }
    if runs == 0 {
        let m = "--verify: the model refuses all random inputs that were tried, so nothing could be compared";
        let help = "build without --verify, and compare on real inputs";
        return Err(vec![Diag::error("E-VERIFY-002", m).help(help)]);
    }
    Ok(format!(
        "equal to the interpreter on {runs} random inputs at {} tuples of sizes, with one and two threads",
        sizes.len()
    ))
}

/// The diagnostic for a difference: what, at which sizes, and whose fault.
fn explain(given: &Module, optimized: &Module, pipeline: &passes::Options, run: &Run, fault: &Fault) -> Diag {
    let text = format!(
        "the artifact computes something else than the model: entry `{}`, sizes {:?}: {}",
        run.entry, run.case.sizes, fault.text
    );
    let d = Diag::error("E-VERIFY-001", text);
    let d = match guilty_pass(given, pipeline, run) {
        Some(Blame { pass, nodes }) => {
            let d =
                d.note(format!("pass `{pass}` is at fault: the graph is right before it and wrong after it"));
            if nodes.is_empty() { d } else { d.note(format!("its change at: {}", nodes.join(", "))) }
        }
        None => match guilty_kernel(optimized) {
            Some(node) => {
                d.note(format!("the code of the kernel for `{node}` is at fault; the graph is right"))
            }
            None => d.note(
                "every pass and every kernel alone is right: buffers or steps of the program are at fault",
            ),
        },
    };
    d.help("no artifact is written; report the model as a bug of tgc (`tgc reduce` makes it small)")
}

struct Blame {
    pass: String,
    /// Where the patch that makes the difference works, if it can be told apart.
    nodes: Vec<String>,
}

/// The first pass after which the interpreter gives something else.
fn guilty_pass(given: &Module, pipeline: &passes::Options, run: &Run) -> Option<Blame> {
    let names = pipeline.passes.clone();
    let names = names.unwrap_or_else(|| passes::pipeline::DEFAULT.iter().map(|p| p.to_string()).collect());
    let after = |count: usize, limit: Option<usize>| {
        let options = passes::Options {
            passes: Some(names[..count].to_vec()),
            verify_each: false,
            bisect: limit,
            ..pipeline.clone()
        };
        let mut module = given.clone();
        passes::run_pipeline(&mut module, &options).ok().map(|report| (module, report.patches))
    };
    let mut before = 0;
    for count in 1..=names.len() {
        let (module, patches) = after(count, None)?;
        if same(given, &module, run) {
            before = patches;
            continue;
        }
        // The first patch that makes the difference, if it is a patch of an optional pass.
        let wrong = |limit: usize| after(count, Some(limit)).is_some_and(|(m, _)| !same(given, &m, run));
        let (mut right, mut bad) = (before, patches);
        let mut nodes = Vec::new();
        if bad > right && !wrong(right) {
            while bad - right > 1 {
                let middle = right + (bad - right) / 2;
                if wrong(middle) { bad = middle } else { right = middle }
            }
            if let (Some((old, _)), Some((new, _))) = (after(count, Some(right)), after(count, Some(bad))) {
                nodes = new_nodes(&old, &new, &run.entry);
            }
        }
        return Some(Blame { pass: names[count - 1].clone(), nodes });
    }
    None
}

/// The interpreter gives the same on both, within the error bounds of both.
fn same(a: &Module, b: &Module, run: &Run) -> bool {
    let of = |m| interp::run_bounded(m, &run.entry, &run.case.inputs);
    let (Ok(want), Ok(got)) = (of(a), of(b)) else { return false };
    want.len() == got.len()
        && want.iter().zip(&got).all(|(w, g)| {
            let allowed: Vec<f64> = w.bound.iter().zip(&g.bound).map(|(a, b)| a + b).collect();
            within(&g.tensor, &w.tensor, &allowed).is_ok()
        })
}

/// Places of the nodes that only the second has.
fn new_nodes(old: &Module, new: &Module, entry: &str) -> Vec<String> {
    let (Some(old), Some(new)) = (old.entries.get(entry), new.entries.get(entry)) else { return Vec::new() };
    let ids: BTreeSet<_> = old.body.ids().into_iter().collect();
    let fresh = new.body.ids().into_iter().filter(|id| !ids.contains(id));
    let mut places: Vec<String> =
        fresh.map(|id| new.body.loc(id).place.to_string()).filter(|p| !p.is_empty()).collect();
    places.dedup();
    places
}

/// The node of the first kernel whose code, alone in a program, differs from the interpreter.
fn guilty_kernel(optimized: &Module) -> Option<String> {
    let options = BuildOptions { targets: vec!["native".into()], ..BuildOptions::default() };
    for e in optimized.entries.values() {
        for id in e.body.topo() {
            let Some(alone) = alone(optimized, &e.body, id) else { continue };
            let Ok(artifact) = build(&mut alone.clone(), &options, &mut |_| {}, &|| ()) else { continue };
            let Ok(model) = artifact.to_bytes().and_then(|b| rt::Loader::default().from_bytes(&b)) else {
                continue;
            };
            let Some((name, entry)) = alone.entries.first() else { continue };
            let differs = |c: Case| {
                interp::run(&alone, name, &c.inputs).is_ok()
                    && compare(&alone, name, &model, &c.inputs).is_err()
            };
            if cases(&entry.body, SEED).into_iter().any(differs) {
                return Some(e.body.loc(id).place.to_string());
            }
        }
    }
    None
}

/// A module of one node of the graph, its operands inputs.
fn alone(m: &Module, g: &Graph, id: tgc_ir::graph::NodeId) -> Option<Module> {
    let node = g.node(id)?;
    let region = node.regions.first()?;
    let mut out = Graph::new("kernel");
    out.symbols = g.symbols.clone();
    let mut operands = Vec::new();
    for (i, v) in g.operands(id).into_iter().enumerate() {
        let ty: Type = g.ty(v)?.clone();
        operands.push(out.input(&format!("x{i}"), ty, g.loc(v.node)));
    }
    let made = out.add(node.op.clone(), &operands, vec![region.clone()], g.loc(id)).ok()?;
    for r in 0..node.results.len() {
        out.output(&format!("y{r}"), Value { node: made, result: r as u32 });
    }
    let mut module = Module::single(out);
    module.weights = m.weights.clone();
    Some(module)
}
