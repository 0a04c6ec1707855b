//! Runs graphs in the interpreter and compares. The only file here that knows the interfaces of interpreter and passes.

use crate::data::{self, Rng, Sizes};
use crate::header::{Case, Header};
use tgc_ir::accuracy;
use tgc_ir::diag::Diag;
use tgc_ir::graph::Graph;
use tgc_ir::interp::{self, Bounded};
use tgc_ir::module::Module;
use tgc_ir::tensor::Tensor;
use tgc_passes::{Options, run_pipeline};

/// One run of an entry: what goes in, and for messages how it was chosen.
pub struct Run {
    pub entry: String,
    pub inputs: Vec<Tensor>,
    pub how: String,
}

/// Passes by name over the module (None: the default pipeline); gives the `fired:` line.
pub fn passes(m: &mut Module, names: Option<Vec<String>>) -> Result<String, Vec<Diag>> {
    let report = run_pipeline(m, &Options { passes: names, verify_each: true, ..Options::default() })?;
    let fired: Vec<String> = report.fired.iter().map(|(rule, n)| format!("{rule} x{n}")).collect();
    Ok(if fired.is_empty() { "fired: none".into() } else { format!("fired: {}", fired.join(", ")) })
}

pub fn bounded(m: &Module, run: &Run) -> Result<Vec<Bounded>, Diag> {
    interp::run_bounded(m, &run.entry, &run.inputs)
}

/// Seeded runs of every entry.
pub fn seeded(m: &Module, h: &Header, seed: u64) -> Result<Vec<Run>, String> {
    let mut out = Vec::new();
    for (name, e) in &m.entries {
        let mut rng = Rng::new(seed);
        for sizes in data::choose_sizes(&e.body, h, &mut rng)? {
            out.push(seeded_run(name, &e.body, h, &sizes, &mut rng, m.entries.len())?);
        }
    }
    Ok(out)
}

fn seeded_run(
    entry: &str,
    g: &Graph,
    h: &Header,
    sizes: &Sizes,
    rng: &mut Rng,
    entries: usize,
) -> Result<Run, String> {
    let mut inputs = Vec::new();
    for (name, ty) in data::inputs(g) {
        let shape =
            data::shape(&ty, sizes).ok_or_else(|| format!("input `{name}`: no shape for {sizes:?}"))?;
        let range =
            h.ranges.get(&format!("{entry}.{name}")).or_else(|| h.ranges.get(&name).filter(|_| entries == 1));
        inputs.push(data::tensor(ty.dtype, &shape, range.copied(), rng));
    }
    Ok(Run { entry: entry.into(), inputs, how: format!("seeded run of @{entry} at {sizes:?}") })
}

/// A case's entry and inputs. Its names are bare with one entry, else `entry.name`, all of the same entry.
pub fn case(m: &Module, c: &Case) -> Result<Run, String> {
    let only = m.entries.keys().next().filter(|_| m.entries.len() == 1);
    let first = c.inputs.keys().chain(c.expect.keys()).next().ok_or("a case without lines")?;
    let entry = only.cloned().or_else(|| first.split_once('.').map(|(e, _)| e.to_string()));
    let entry = entry.ok_or_else(|| format!("`{first}` must be written `graph.{first}`"))?;
    let body = &m.entries.get(&entry).ok_or_else(|| format!("there is no graph @{entry}"))?.body;
    let known = data::inputs(body);
    if let Some(k) = c.inputs.keys().find(|k| !known.iter().any(|(n, _)| n == bare(k, &entry))) {
        return Err(format!("@{entry} has no input `{k}`"));
    }
    let mut inputs = Vec::new();
    for (name, ty) in known {
        let text = c.inputs.iter().find(|(k, _)| bare(k, &entry) == name).map(|(_, v)| v);
        let text = text.ok_or_else(|| format!("a case lacks `// input {name} = ...`"))?;
        inputs.push(data::written(ty.dtype, text)?);
    }
    Ok(Run { how: format!("case {:?}", c.inputs), entry, inputs })
}

fn bare<'a>(key: &'a str, entry: &str) -> &'a str {
    key.strip_prefix(entry).and_then(|k| k.strip_prefix('.')).unwrap_or(key)
}

/// Runs a case and compares with what it expects.
pub fn check_case(m: &Module, c: &Case, tolerance: f64) -> Result<Run, String> {
    let run = case(m, c)?;
    let got = bounded(m, &run).map_err(|d| format!("{}: {}", run.how, d.render(None)))?;
    let body = &m.entries[&run.entry].body;
    if c.expect.is_empty() {
        return Err(format!("{}: nothing is expected", run.how));
    }
    for (key, text) in &c.expect {
        let name = bare(key, &run.entry);
        let at = body.outputs().iter().position(|o| *o.name == *name);
        let at = at.ok_or_else(|| format!("@{} has no output `{key}`", run.entry))?;
        let want = data::written(got[at].tensor.dtype, text)?;
        // figures in a fixture are decimal, so one rounding of the element type is allowed besides
        let slack = want.dtype.epsilon().max(tolerance) * 2.0;
        let allowed: Vec<f64> = want
            .to_f64()
            .iter()
            .zip(&got[at].bound)
            .map(|(w, b)| {
                (if b.is_finite() { *b } else { 0.0 })
                    + slack * w.abs().max(if tolerance > 0.0 { 1.0 } else { 0.0 })
            })
            .map(|a| if a.is_finite() { a } else { 0.0 })
            .collect();
        accuracy::within(&got[at].tensor, &want, &allowed)
            .map_err(|e| format!("{}: output `{name}`: {e}", run.how))?;
    }
    Ok(run)
}

/// Both modules give the same for this run, as far as each one's error bound goes.
pub fn same(before: &Module, after: &Module, run: &Run, what: &str) -> Result<(), String> {
    let say = |d: Diag| format!("{}, {what}: {}", run.how, d.render(None));
    let (want, got) = (bounded(before, run).map_err(say)?, bounded(after, run).map_err(say)?);
    if want.len() != got.len() {
        return Err(format!("{}, {what}: {} outputs before, {} after", run.how, want.len(), got.len()));
    }
    for (i, (w, g)) in want.iter().zip(&got).enumerate() {
        if w.tensor.shape != g.tensor.shape {
            let (w, g) = (&w.tensor.shape, &g.tensor.shape);
            return Err(format!("{}, {what}: output {i} has shape {w:?} before, {g:?} after", run.how));
        }
        let allowed: Vec<f64> = w.bound.iter().zip(&g.bound).map(|(a, b)| a + b).collect();
        accuracy::within(&g.tensor, &w.tensor, &allowed)
            .map_err(|e| format!("{}, {what}: output {i}: {e}", run.how))?;
        let open = allowed.iter().filter(|a| a.is_infinite()).count();
        if open * 2 > allowed.len() {
            return Err(format!(
                "{}, {what}: output {i}: the bound says nothing for {open} elements",
                run.how
            ));
        }
    }
    Ok(())
}
