//! Runs passes over a module: verifies, prints, times, stops and bisects. What the passes do is theirs.

use crate::pass::{Cx, Editor, Log, Row};
use crate::pipeline::{DEFAULT, PASSES};
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tgc_ir::diag::{Diag, Severity};
use tgc_ir::graph::{Graph, Value};
use tgc_ir::module::Module;
use tgc_ir::ops::{Add, Constant, Op};
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::scalar::Scalar;

/// How to run a pipeline.
#[derive(Clone, Debug)]
pub struct Options {
    /// Passes in order; None: [`DEFAULT`].
    pub passes: Option<Vec<String>>,
    /// Verify after every pass, not only before the first and after the last.
    pub verify_each: bool,
    /// Print the module after every pass.
    pub print_after_all: bool,
    /// Print the module after this pass.
    pub print_after: Option<String>,
    /// The last pass to run (its first occurrence).
    pub stop_after: Option<String>,
    /// Optional passes apply only so many patches in all.
    pub bisect: Option<usize>,
    /// For tests of what finds faulty passes: the first run of this pass also makes one output of each entry wrong, by a patch
    /// that counts as the pass's own.
    pub sabotage: Option<String>,
}

impl Default for Options {
    /// The default pipeline; verification after every pass in debug builds.
    fn default() -> Options {
        Options {
            passes: None,
            verify_each: cfg!(debug_assertions),
            print_after_all: false,
            print_after: None,
            stop_after: None,
            bisect: None,
            sabotage: None,
        }
    }
}

/// What a pipeline did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Rules that fired, with how often, in order of their first time.
    pub fired: IndexMap<String, usize>,
    /// Printed modules: the pass's name with its position in the pipeline, and the text.
    pub texts: Vec<(String, String)>,
    /// Time of each pass run.
    pub times: Vec<(&'static str, Duration)>,
    /// Patches that optional passes applied: the upper end for a bisection.
    pub patches: usize,
    /// What to tell the user.
    pub warnings: Vec<Diag>,
}

/// Runs passes over every graph of `module`. On an error the module is as the failing pass left it.
pub fn run_pipeline(module: &mut Module, options: &Options) -> Result<Report, Vec<Diag>> {
    let rows = select(options)?;
    verify(module, None)?;
    let mut report = Report { warnings: misplaced(&rows), ..Report::default() };
    let mut log = Log { limit: options.bisect, ..Log::default() };
    let mut replaced = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let start = Instant::now();
        run_pass(module, row, &mut log, &mut replaced)
            .map_err(|d| vec![d.note(format!("in pass `{}`", row.name))])?;
        if options.sabotage.as_deref() == Some(row.name) && !rows[..at].iter().any(|r| r.name == row.name) {
            let allowed = row.required || log.limit.is_none_or(|l| log.optional < l);
            for e in module.entries.values_mut().filter(|_| allowed) {
                sabotage(&mut e.body).map_err(|d| vec![d])?;
                log.optional += usize::from(!row.required);
            }
        }
        report.times.push((row.name, start.elapsed()));
        if options.print_after_all || options.print_after.as_deref() == Some(row.name) {
            report.texts.push((format!("{}: {}", at + 1, row.name), tgc_ir::text::print_module(module)));
        }
        if options.verify_each || at + 1 == rows.len() {
            verify(module, Some(row.name))?;
        }
    }
    prune_weights(module, &replaced);
    report.fired = log.fired;
    report.patches = log.optional;
    report.warnings.append(&mut log.warnings);
    Ok(report)
}

/// Runs the named passes over one graph that uses no weights; gives the rules that fired, with how often.
pub fn run_passes(graph: &mut Graph, passes: &[&str]) -> Result<IndexMap<String, usize>, Vec<Diag>> {
    let name = graph.name.clone();
    let mut module = Module::single(graph.clone());
    let passes = Some(passes.iter().map(|p| p.to_string()).collect());
    let report = run_pipeline(&mut module, &Options { passes, verify_each: true, ..Options::default() })?;
    if let Some(entry) = module.entries.swap_remove(&name) {
        *graph = entry.body;
    }
    Ok(report.fired)
}

fn select(options: &Options) -> Result<Vec<&'static Row>, Vec<Diag>> {
    let mut faults = Vec::new();
    let mut find = |name: &str| {
        let row = PASSES.iter().find(|r| r.name == name);
        if row.is_none() {
            let valid: Vec<&str> = PASSES.iter().map(|r| r.name).collect();
            faults.push(
                Diag::error("E-PASS-001", format!("there is no pass `{name}`"))
                    .help(format!("passes are: {}", valid.join(", "))),
            );
        }
        row
    };
    for name in options.print_after.iter().chain(&options.stop_after) {
        find(name);
    }
    let names: Vec<&str> = match &options.passes {
        Some(names) => names.iter().map(String::as_str).collect(),
        None => DEFAULT.to_vec(),
    };
    let mut rows: Vec<&'static Row> = names.iter().filter_map(|n| find(n)).collect();
    if let Some(stop) = &options.stop_after {
        match rows.iter().position(|r| r.name == stop) {
            Some(last) => rows.truncate(last + 1),
            None if faults.is_empty() => faults.push(
                Diag::error(
                    "E-PASS-004",
                    format!("cannot stop after `{stop}`: it is not among the passes to run"),
                )
                .help(format!("passes to run: {}", names.join(", "))),
            ),
            None => {}
        }
    }
    if faults.is_empty() { Ok(rows) } else { Err(faults) }
}

/// Warnings for passes that come before one they ask to follow.
fn misplaced(rows: &[&'static Row]) -> Vec<Diag> {
    let mut out = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let late = |b: &&&str| rows.iter().position(|r| r.name == **b).is_some_and(|p| p > at);
        for before in row.after.iter().filter(late) {
            let message = format!("pass `{}` runs before `{before}`, which should come first", row.name);
            out.push(Diag::warning("E-PASS-006", message));
        }
    }
    out
}

fn run_pass(module: &mut Module, row: &Row, log: &mut Log, replaced: &mut Vec<String>) -> Result<(), Diag> {
    let uses = weight_uses(module);
    let mut cx = Cx { weights: &mut module.weights, weight_uses: uses, replaced: Vec::new() };
    log.pass = row.name;
    log.required = row.required;
    for entry in module.entries.values_mut() {
        let variants = entry.variants.iter_mut().filter_map(|v| v.body.as_mut().ok());
        for graph in variants.chain([&mut entry.body]) {
            log.fuel = 1000 + 64 * size(graph);
            let mut editor = Editor::new(graph, log);
            let _ = editor.regions(row.run, &mut cx)?;
            let _ = (row.run)(&mut editor, &mut cx)?;
        }
    }
    replaced.append(&mut cx.replaced);
    Ok(())
}

/// Makes the first output that is a number one more than it should be.
fn sabotage(g: &mut Graph) -> Result<(), Diag> {
    let number = |v: &Value| g.ty(*v).is_some_and(|t| t.dtype.is_float() || t.dtype.is_int());
    let Some(v) = g.outputs().iter().map(|o| o.value).find(number) else { return Ok(()) };
    let (Some(node), Some(ty)) = (g.node(v.node), g.ty(v)) else { return Ok(()) };
    let (op, dtype, mut regions) = (node.op.clone(), ty.dtype, node.regions.clone());
    let kernel = crate::pass::is_kernel(g, v.node);
    if let (true, Some(region)) = (kernel, regions.first_mut()) {
        sabotage(region)?;
    }
    let operands: Vec<PVal> = g.operands(v.node).into_iter().map(Into::into).collect();
    let mut patch = Patch::new(g, v.node);
    let again = patch.node(op, &operands, regions)?;
    let Some(again) = again.get(v.result as usize).copied() else { return Ok(()) };
    let wrong = if kernel {
        again
    } else {
        let one = patch.op(Constant::scalar(Scalar::from_int(dtype, 1)), &[])?;
        patch.op(Add {}, &[again, one])?
    };
    patch.replace(v, wrong);
    let edit = patch.finish();
    g.apply(edit, "sabotage").map(|_| ())
}

/// Number of nodes, those of regions included.
fn size(g: &Graph) -> usize {
    let inner = |id| g.node(id).map_or(0, |n| n.regions.iter().map(size).sum::<usize>());
    g.len() + g.ids().into_iter().map(inner).sum::<usize>()
}

/// Verifies the module. A fault after a pass is that pass's.
fn verify(module: &Module, after: Option<&str>) -> Result<(), Vec<Diag>> {
    let faults: Vec<Diag> =
        tgc_ir::verify::verify(module).into_iter().filter(|d| d.severity == Severity::Error).collect();
    if faults.is_empty() {
        return Ok(());
    }
    let blame = |d: Diag| match after {
        Some(pass) => d.note(format!("the module was right before pass `{pass}`: this is a bug of tgc")),
        None => d,
    };
    Err(faults.into_iter().map(blame).collect())
}

fn weight_uses(module: &Module) -> BTreeMap<String, usize> {
    let mut uses = BTreeMap::new();
    module.graphs().for_each(|g| count_weights(g, &mut uses));
    uses
}

fn count_weights(g: &Graph, uses: &mut BTreeMap<String, usize>) {
    for id in g.ids() {
        let Some(node) = g.node(id) else { continue };
        let name = if let Op::Weight(w) = &node.op {
            // A weight node counts once for each reader: folding one of several would keep the others' copy.
            let v = tgc_ir::graph::Value { node: id, result: 0 };
            *uses.entry(w.name.clone()).or_insert(0) += g.users(v).len() + usize::from(g.is_output(v));
            None
        } else if let Op::Input(i) = &node.op {
            i.default.clone()
        } else {
            None
        };
        if let Some(name) = name {
            *uses.entry(name).or_insert(0) += 1;
        }
        node.regions.iter().for_each(|r| count_weights(r, uses));
    }
}

/// Drops weights whose last use was replaced by a folded one.
fn prune_weights(module: &mut Module, replaced: &[String]) {
    if !replaced.is_empty() {
        let uses = weight_uses(module);
        module.weights.retain(|name, _| uses.contains_key(name) || !replaced.contains(name));
    }
}
