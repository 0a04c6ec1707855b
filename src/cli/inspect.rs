//! `tgc inspect`: what an artifact does, step by step, and in how much memory. Reads the artifact only, for any target.
//! What must not be here: running (tgc-run), the text itself (`text`).

mod json;
mod text;

use super::Failure;
use clap::Args;
use std::collections::BTreeSet;
use std::path::PathBuf;
use tgc::ir::diag::Diag;
use tgc::runtime as rt;

#[derive(Args)]
pub struct InspectArgs {
    /// Artifact written by `tgc build`.
    artifact: PathBuf,
    /// Size of a dim for the figures: batch=8. Others take the smallest size allowed, from 1 on. Repeatable.
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim)]
    dims: Vec<(String, i64)>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn dim(text: &str) -> Result<(String, i64), String> {
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let parsed = parts.and_then(|(name, size)| Some((name.to_string(), size.parse().ok()?)));
    parsed.filter(|(_, size)| *size >= 0).ok_or_else(|| "write it as NAME=SIZE, such as batch=8".into())
}

pub fn run(a: &InspectArgs) -> Result<(), Failure> {
    let loader = rt::Loader { inspect: true, ..rt::Loader::default() };
    let model = loader.open(&a.artifact).map_err(Failure::Runtime)?;
    let sizes = sizes(model.manifest(), &a.dims).map_err(Failure::Input)?;
    let entries: Vec<Figures> =
        model.manifest().entries.iter().zip(sizes).map(|(e, syms)| Figures::new(&model, e, syms)).collect();
    super::print(&match a.json {
        true => format!("{:#}\n", json::artifact(&a.artifact, &model, &entries)),
        false => text::artifact(&a.artifact, &model, &entries),
    })
}

/// Values of the symbols of every entry.
fn sizes(m: &rt::Manifest, given: &[(String, i64)]) -> Result<Vec<Vec<Option<i64>>>, Vec<Diag>> {
    let mut faults = Vec::new();
    for (name, size) in given {
        let mut all = m.entries.iter().flat_map(|e| &e.symbols).filter(|s| s.name == *name).peekable();
        if all.peek().is_none() {
            let names: BTreeSet<&str> =
                m.entries.iter().flat_map(|e| &e.symbols).map(|s| s.name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let have = if names.is_empty() { "none".into() } else { names.join(", ") };
            faults.push(
                Diag::error("E-CLI-001", format!("--dim {name}: the artifact has no dim of that name"))
                    .help(format!("its dims: {have}")),
            );
        }
        if let Some(s) = all.find(|s| !(s.lo..=s.hi).contains(size)) {
            let text = format!("--dim {name}={size}: the artifact allows {}..={}", s.lo, s.hi);
            faults.push(Diag::error("E-CLI-006", text).help("give a size in that range"));
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let of = |s: &rt::Symbol| {
        let found = given.iter().rev().find(|(name, _)| *name == s.name);
        Some(found.map_or(s.lo.max(1), |(_, size)| *size))
    };
    Ok(m.entries.iter().map(|e| e.symbols.iter().map(of).collect()).collect())
}

/// An entry at some sizes.
struct Figures<'m> {
    entry: &'m rt::Entry,
    names: Vec<&'m str>,
    syms: Vec<Option<i64>>,
    variants: Vec<VariantFigures<'m>>,
}

struct VariantFigures<'m> {
    when: Option<&'m rt::Pred>,
    body: Result<ProgramFigures<'m>, &'m str>,
}

/// A program at some sizes.
struct ProgramFigures<'m> {
    program: &'m rt::Program,
    launches: usize,
    copies: usize,
    /// Steps that the runtime's own code does.
    others: usize,
    /// How many different kernels are launched.
    kernels: usize,
    /// Operations on elements and bytes touched by all launches.
    flops: Option<i64>,
    bytes: Option<i64>,
    memory: Result<rt::Plan, rt::Error>,
}

impl<'m> Figures<'m> {
    fn new(model: &'m rt::Model, entry: &'m rt::Entry, syms: Vec<Option<i64>>) -> Figures<'m> {
        let variants = entry
            .variants
            .iter()
            .map(|v| VariantFigures {
                when: v.when.as_ref(),
                body: match &v.body {
                    Ok(p) => Ok(ProgramFigures::new(model.manifest(), entry, p, &syms)),
                    Err(why) => Err(why.as_str()),
                },
            })
            .collect();
        let names = entry.symbols.iter().map(|s| s.name.as_str()).collect();
        Figures { entry, names, syms, variants }
    }
}

impl<'m> ProgramFigures<'m> {
    fn new(
        m: &rt::Manifest,
        entry: &rt::Entry,
        program: &'m rt::Program,
        syms: &[Option<i64>],
    ) -> ProgramFigures<'m> {
        let mut out = ProgramFigures {
            program,
            launches: 0,
            copies: 0,
            others: 0,
            kernels: 0,
            flops: Some(0),
            bytes: Some(0),
            memory: rt::plan_program(entry, program, syms),
        };
        let mut kernels = BTreeSet::new();
        for step in program.segments.iter().flat_map(|s| &s.steps) {
            match step {
                rt::Step::Launch { kernel, dims, .. } => {
                    out.launches += 1;
                    kernels.insert(*kernel);
                    let (flops, bytes) = work(m, *kernel, dims, syms);
                    out.flops = out.flops.zip(flops).and_then(|(a, b)| a.checked_add(b));
                    out.bytes = out.bytes.zip(bytes).and_then(|(a, b)| a.checked_add(b));
                }
                rt::Step::Copy { .. } => out.copies += 1,
                rt::Step::Opaque { .. } | rt::Step::If { .. } | rt::Step::Loop { .. } => out.others += 1,
            }
        }
        out.kernels = kernels.len();
        out
    }

    fn steps(&self) -> usize {
        self.launches + self.copies + self.others
    }

    /// Steps that generated code does, in percent.
    fn generated(&self) -> f64 {
        100.0 * self.launches as f64 / self.steps().max(1) as f64
    }
}

/// Operations and bytes of one launch at these sizes.
fn work(
    m: &rt::Manifest,
    kernel: u32,
    dims: &[rt::Expr],
    syms: &[Option<i64>],
) -> (Option<i64>, Option<i64>) {
    let values: Vec<Option<i64>> = dims.iter().map(|d| d.eval(syms).ok()).collect();
    let k = &m.kernels[kernel as usize];
    (k.flops.eval(&values).ok(), k.bytes.eval(&values).ok())
}

/// Bytes and number of weights by element type, the types in order of name.
fn weights_by_type(m: &rt::Manifest) -> Vec<(String, usize, u64)> {
    let mut all: std::collections::BTreeMap<String, (usize, u64)> = Default::default();
    for w in &m.weights {
        let e = all.entry(w.dtype.to_string()).or_default();
        e.0 += 1;
        e.1 += w.dims.iter().product::<u64>() * w.dtype.size() as u64;
    }
    all.into_iter().map(|(t, (n, bytes))| (t, n, bytes)).collect()
}

/// `input x`, `temp` and so on.
fn kind(m: &rt::Manifest, e: &rt::Entry, b: &rt::Buffer) -> String {
    match b.kind {
        rt::BufferKind::Input(i) => format!("input {}", e.inputs[i as usize].name),
        rt::BufferKind::Output(i) => format!("output {}", e.outputs[i as usize].name),
        rt::BufferKind::State(i) => format!("state {}", m.states[i as usize].name),
        rt::BufferKind::Weight(i) => format!("weight {}", m.weights[i as usize].name),
        rt::BufferKind::Temp => "temp".into(),
    }
}

fn code_bytes(model: &rt::Model) -> Vec<u64> {
    model.sections().iter().filter(|s| s.kind == "code").map(|s| s.len).collect()
}

fn file_bytes(model: &rt::Model) -> u64 {
    model.sections().iter().map(|s| s.offset + s.len).max().unwrap_or(0)
}

fn role(r: rt::Role) -> &'static str {
    match r {
        rt::Role::In => "in",
        rt::Role::Out => "out",
        rt::Role::InOut => "inout",
        rt::Role::Const => "const",
    }
}
