//! Verified builds: the artifact, through the loader that users have, against the interpreter on the model as it was given.
//! Where they differ, the first pass whose result computes something else is at fault, or the kernel whose code does not
//! what its region says. What must not be here: how inputs are drawn (`agree`).

use crate::agree::{Fault, Rng, Sizes, TRIES, cases, compare, draw_all, has_integers, tuples};
use crate::build::{BuildOptions, Verify, build, lower};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tgc_codegen::artifact::{self, Artifact};
use tgc_codegen::cpu::Target;
use tgc_codegen::kernel::Kernel;
use tgc_ir::accuracy::within;
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::interp::{self, Bounded};
use tgc_ir::module::Module;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, Type};
use tgc_passes as passes;
use tgc_runtime as rt;

/// Draws of inputs begin with this number: the same model is verified on the same inputs.
const SEED: u64 = 1;

/// What [`Verify::Auto`] spends: operations and bytes of all interpreted runs.
const BUDGET: u64 = 1_000_000_000;

/// Operations that the interpreter takes to widen an element of a weight that is stored narrow; kernels read it as it is.
const WIDEN: u64 = 16;

/// A build to verify.
pub(crate) struct Job<'a> {
    /// The module before the pipeline.
    pub(crate) given: &'a Module,
    /// After it.
    pub(crate) optimized: &'a Module,
    pub(crate) options: &'a BuildOptions,
    /// The kernels of `options.kernels`.
    pub(crate) replace: &'a [Kernel],
}

/// A run that shows a difference.
struct Run<'a> {
    entry: &'a str,
    sizes: &'a Sizes,
    inputs: Vec<Tensor>,
    want: Result<Vec<Bounded>, Diag>,
    target: &'a str,
}

/// What was compared.
#[derive(Default)]
struct Record {
    runs: usize,
    /// Sizes of each dim of each entry.
    sizes: BTreeMap<String, BTreeSet<i64>>,
    /// What was not compared, and why.
    left: Vec<String>,
}

impl Record {
    fn add(&mut self, sizes: &Sizes) {
        self.runs += 1;
        for (name, size) in sizes {
            self.sizes.entry(name.clone()).or_default().insert(*size);
        }
    }

    /// The record in the artifact.
    fn text(&self, targets: &[&str]) -> String {
        let left = self.left.join("; ");
        if self.runs == 0 {
            let why =
                if left.is_empty() { "the model refuses all random inputs that were tried" } else { &left };
            return format!("not verified: {why}");
        }
        let mut out = format!(
            "equal to the interpreter on {} random inputs, with one and two threads and the code for {}",
            self.runs,
            targets.join(", ")
        );
        for (dim, sizes) in &self.sizes {
            let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
            out += &format!("; {dim} = {}", sizes.join(", "));
        }
        if left.is_empty() { out } else { format!("{out}; not verified: {left}") }
    }
}

/// Compares. Gives the record for the artifact.
pub(crate) fn verify(job: &Job<'_>, artifact: &Artifact) -> Result<String, Vec<Diag>> {
    let always = job.options.verify == Verify::Always;
    let mut record = Record::default();
    let models = models(artifact, &mut record)?;
    let Some((_, model)) = models.first() else {
        if always {
            let m = "--verify: this machine can run none of the targets, so nothing can be compared";
            let help = "add --target native, or build with --verify=never";
            return Err(vec![Diag::error("E-VERIFY-003", m).help(help)]);
        }
        return Ok(record.text(&[]));
    };
    let mut budget = if always { u64::MAX } else { BUDGET };
    for (entry, e) in &job.given.entries {
        for (sizes, draws) in plan(model, entry, &e.body, &mut budget, &mut record) {
            let mut rng = Rng(SEED);
            for _ in 0..draws {
                // inputs that the model itself refuses, as an index out of range is, say nothing: then smaller integers
                let kinds: &[bool] = if has_integers(&e.body) { &[false, true] } else { &[false] };
                for &small in kinds {
                    let Some(inputs) = draw_all(&e.body, &sizes, small, &mut rng) else { break };
                    let want = interp::run_bounded(job.given, entry, &inputs);
                    // what only a value that nothing reads refuses may be left out
                    if want.is_err() && interp::run_bounded(&live(job), entry, &inputs).is_ok() {
                        continue;
                    }
                    let mut run = Run { entry, sizes: &sizes, inputs, want, target: "" };
                    let mut equal = true;
                    for (target, model) in &models {
                        run.target = target;
                        equal &= compare(&run.want, entry, model, &run.inputs)
                            .map_err(|fault| vec![explain(job, &run, &fault)])?;
                    }
                    if equal {
                        record.add(&sizes);
                        break;
                    }
                }
            }
        }
    }
    if record.runs == 0 && always {
        let why = match record.left.is_empty() {
            true => "the model refuses all random inputs that were tried".to_string(),
            false => record.left.join("; "),
        };
        let m = format!("--verify: nothing could be compared: {why}");
        let help = "build with --verify=never, and compare on real inputs";
        return Err(vec![Diag::error("E-VERIFY-002", m).help(help)]);
    }
    Ok(record.text(&models.iter().map(|m| m.0.as_str()).collect::<Vec<_>>()))
}

/// The given module without what nothing reads.
fn live(job: &Job<'_>) -> Module {
    let mut module = job.given.clone();
    let options = passes::Options { passes: Some(vec!["dce".to_string()]), ..passes::Options::default() };
    match passes::run_pipeline(&mut module, &options) {
        Ok(_) => module,
        Err(_) => job.given.clone(),
    }
}

/// The artifact, opened once for each image that this machine can run.
fn models(artifact: &Artifact, record: &mut Record) -> Result<Vec<(String, Arc<rt::Model>)>, Vec<Diag>> {
    let failed = |e: rt::Error| vec![Diag::error("E-BUG", format!("the new artifact does not load: {e}"))];
    let bytes = artifact.to_bytes().map_err(failed)?;
    let mut out = Vec::new();
    for image in artifact.images() {
        let here = image.features.iter().all(|f| rt::host_features().contains(&f.as_str()));
        if !here || image.arch != std::env::consts::ARCH {
            record.left.push(format!("the code for {}, which this machine cannot run", image.target));
            continue;
        }
        let loader = rt::Loader { features: Some(image.features.clone()), ..rt::Loader::default() };
        out.push((image.target.clone(), loader.from_bytes(&bytes).map_err(failed)?));
    }
    Ok(out)
}

/// Tuples of sizes with the number of draws for each, within the budget.
fn plan(
    model: &Arc<rt::Model>,
    entry: &str,
    g: &Graph,
    budget: &mut u64,
    record: &mut Record,
) -> Vec<(Sizes, usize)> {
    let mut out = Vec::new();
    let mut cheapest: Option<(u64, Sizes)> = None;
    let all = tuples(g, SEED);
    let wanted = all.len().min(TRIES);
    for sizes in all {
        let work = work(model, entry, &sizes).max(1);
        let several = out.is_empty() && work <= *budget / (2 * TRIES as u64);
        let draws = if several { TRIES } else { 1 };
        if work <= *budget {
            *budget -= work * draws as u64;
            out.push((sizes, draws));
        } else if cheapest.as_ref().is_none_or(|c| work < c.0) {
            cheapest = Some((work, sizes));
        }
        if out.len() == wanted {
            return out;
        }
    }
    if wanted == 0 {
        record
            .left
            .push(format!("`{entry}`: no sizes were found that it takes, with inputs of 2 GiB at most"));
    }
    if let Some((work, sizes)) = cheapest {
        let sizes: Vec<String> = sizes.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let at = if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(", ")) };
        let more = if out.is_empty() { "" } else { "more sizes: " };
        record.left.push(format!(
            "{more}`{entry}`{at} takes {work} operations, and a build spends {BUDGET} unless --verify is given"
        ));
    }
    out
}

/// What an interpreted run costs: operations on elements and bytes moved by all launches, as far as sizes of inputs tell.
fn work(model: &rt::Model, entry: &str, sizes: &Sizes) -> u64 {
    let m = model.manifest();
    let Some(e) = m.entries.iter().find(|e| e.name == entry) else { return 0 };
    let syms: Vec<Option<i64>> = e.symbols.iter().map(|s| sizes.get(&s.name).copied()).collect();
    let chosen = |v: &&rt::Variant| v.when.as_ref().is_none_or(|p| p.eval(&syms) == Ok(true));
    let Some(Ok(program)) = e.variants.iter().find(chosen).map(|v| &v.body) else { return 0 };
    let launch = |step: &rt::Step| {
        let rt::Step::Launch { kernel, dims, .. } = step else { return 0 };
        let values: Vec<Option<i64>> = dims.iter().map(|d| d.eval(&syms).ok()).collect();
        let k = &m.kernels[*kernel as usize];
        let count = |f: &rt::Expr| f.eval(&values).ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        count(&k.flops).saturating_add(count(&k.bytes))
    };
    let narrow = m.weights.iter().filter(|w| w.dtype.size() < 4);
    let widened: u64 = narrow.map(|w| WIDEN * w.dims.iter().product::<u64>()).sum();
    program.segments.iter().flat_map(|s| &s.steps).map(launch).fold(widened, u64::saturating_add)
}

/// The diagnostic for a difference: what, at which sizes, and whose fault.
fn explain(job: &Job<'_>, run: &Run<'_>, fault: &Fault) -> Diag {
    let text = format!(
        "the artifact computes something else than the model: entry `{}`, sizes {:?}, code for {}: {}",
        run.entry, run.sizes, run.target, fault.text
    );
    if let Some(said) = guilty_replacement(job, run) {
        let d = Diag::error("E-VERIFY-004", text).note(said);
        return d.help("no artifact is written; mend the kernels, or build with --verify=never");
    }
    let d = Diag::error("E-VERIFY-001", text);
    let d = match guilty_pass(job, run) {
        Some(Blame { pass, nodes }) => {
            let d =
                d.note(format!("pass `{pass}` is at fault: the graph is right before it and wrong after it"));
            if nodes.is_empty() { d } else { d.note(format!("its change at: {}", nodes.join(", "))) }
        }
        None => match guilty_kernel(job, run) {
            Some(said) => d.note(said),
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
fn guilty_pass(job: &Job<'_>, run: &Run<'_>) -> Option<Blame> {
    let names = passes::pipeline::DEFAULT;
    let after = |count: usize, limit: Option<usize>| {
        let options = passes::Options {
            passes: Some(names[..count].iter().map(|p| p.to_string()).collect()),
            verify_each: false,
            bisect: limit,
            ..job.options.passes()
        };
        let mut module = job.given.clone();
        passes::run_pipeline(&mut module, &options).ok().map(|report| (module, report.patches))
    };
    let mut before = 0;
    for count in 1..=names.len() {
        let (module, patches) = after(count, None)?;
        if same(&module, run) {
            before = patches;
            continue;
        }
        // The first patch that makes the difference, if it is a patch of an optional pass.
        let wrong = |limit: usize| after(count, Some(limit)).is_some_and(|(m, _)| !same(&m, run));
        let (mut right, mut bad) = (before, patches);
        let mut nodes = Vec::new();
        if bad > right && !wrong(right) {
            while bad - right > 1 {
                let middle = right + (bad - right) / 2;
                if wrong(middle) { bad = middle } else { right = middle }
            }
            if let (Some((old, _)), Some((new, _))) = (after(count, Some(right)), after(count, Some(bad))) {
                nodes = new_nodes(&old, &new, run.entry);
            }
        }
        return Some(Blame { pass: names[count - 1].to_string(), nodes });
    }
    None
}

/// The interpreter gives the same on the module, within the error bounds of both.
fn same(m: &Module, run: &Run<'_>) -> bool {
    let (Ok(want), Ok(got)) = (&run.want, &interp::run_bounded(m, run.entry, &run.inputs)) else {
        return false;
    };
    want.len() == got.len()
        && want.iter().zip(got).all(|(w, g)| {
            let allowed: Vec<f64> = w.bound.iter().zip(&g.bound).map(|(a, b)| a + b).collect();
            within(&g.tensor, &w.tensor, &allowed).is_ok()
        })
}

/// Places of the nodes that only the second has.
fn new_nodes(old: &Module, new: &Module, entry: &str) -> Vec<String> {
    let (Some(old), Some(new)) = (old.entries.get(entry), new.entries.get(entry)) else { return Vec::new() };
    let ids: BTreeSet<_> = old.body.ids().into_iter().collect();
    let fresh = new.body.ids().into_iter().filter(|id| !ids.contains(id));
    let mut places: Vec<String> = fresh.map(|id| place(&new.body, id)).collect();
    places.dedup();
    places
}

/// A node in words.
fn place(g: &Graph, id: NodeId) -> String {
    let place = g.loc(id).place.to_string();
    if !place.is_empty() {
        return place;
    }
    format!("a node `{}`", g.op_of(id).map_or("?", |op| op.name()))
}

fn open(artifact: Artifact) -> Option<Arc<rt::Model>> {
    artifact.to_bytes().and_then(|b| rt::Loader::default().from_bytes(&b)).ok()
}

/// The hand-edited kernels that make the difference, in words.
fn guilty_replacement(job: &Job<'_>, run: &Run<'_>) -> Option<String> {
    let path = job.options.kernels.as_ref()?.display();
    let target = Target::parse(run.target).ok()?;
    let wrong = |replace: &[Kernel]| {
        let lowered = lower(&mut job.given.clone(), job.options, &mut |_| {}).ok()?;
        let made = artifact::compile(lowered, std::slice::from_ref(&target), replace, 0, "", &|| ()).ok()?;
        Some(compare(&run.want, run.entry, &open(made)?, &run.inputs).is_err())
    };
    if wrong(&[])? {
        return None;
    }
    let one = job.replace.iter().find(|k| wrong(std::slice::from_ref(k)) == Some(true));
    Some(match one {
        Some(k) => format!("kernel `{}` of {path} is at fault: the generated one is right", k.name),
        None => format!("the kernels of {path} are at fault: the generated ones are right"),
    })
}

/// The first kernel whose code, alone in a program, differs from the interpreter, in words.
fn guilty_kernel(job: &Job<'_>, run: &Run<'_>) -> Option<String> {
    let options = BuildOptions {
        targets: vec![run.target.into()],
        sabotage: job.options.sabotage.clone(),
        ..BuildOptions::default()
    };
    let g = &job.optimized.entries.get(run.entry)?.body;
    for id in g.topo() {
        let Some(alone) = alone(job.optimized, g, id) else { continue };
        let Ok(artifact) = build(&mut alone.clone(), &options, &mut |_| {}, &|| ()) else { continue };
        let Some(model) = open(artifact) else { continue };
        let Some((name, entry)) = alone.entries.first() else { continue };
        let differs = |(_, inputs): (Sizes, Vec<Tensor>)| {
            let want = interp::run_bounded(&alone, name, &inputs);
            want.is_ok() && compare(&want, name, &model, &inputs).is_err()
        };
        if cases(&entry.body, SEED).into_iter().any(differs) {
            let place = place(g, id);
            return Some(format!("the code of the kernel for {place} is at fault; the graph is right"));
        }
    }
    None
}

/// A module of one node of the graph, its operands inputs. A dim that no operand has of its own comes from an input that
/// nothing reads.
fn alone(m: &Module, g: &Graph, id: NodeId) -> Option<Module> {
    let node = g.node(id)?;
    let region = node.regions.first()?;
    let mut out = Graph::new("kernel");
    out.symbols = g.symbols.clone();
    let mut operands = Vec::new();
    for (i, v) in g.operands(id).into_iter().enumerate() {
        let ty: Type = g.ty(v)?.clone();
        operands.push(out.input(&format!("x{i}"), ty, g.loc(v.node)));
    }
    let given: BTreeSet<Dim> =
        operands.iter().filter_map(|v| out.ty(*v)).flat_map(|t| t.shape.clone()).collect();
    for (name, _) in g.symbols.iter().filter(|(name, _)| !given.contains(&Dim::sym(name))) {
        out.input(&format!("size of {name}"), Type::new(DType::U8, vec![Dim::sym(name)]), Loc::default());
    }
    let made = out.add(node.op.clone(), &operands, vec![region.clone()], g.loc(id)).ok()?;
    for r in 0..node.results.len() {
        out.output(&format!("y{r}"), Value { node: made, result: r as u32 });
    }
    let mut module = Module::single(out);
    module.weights = m.weights.clone();
    Some(module)
}
