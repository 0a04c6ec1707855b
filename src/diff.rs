//! Two models, or artifacts, against each other: their interfaces, what artifacts hold, and what they compute on the same
//! random inputs. Of two models also the first node whose value differs. What must not be here: how it is printed.

use crate::DimOption;
use crate::agree::{Rng, Sizes, Symbol, draw, fits, input_shapes, session, symbols, tuples_of};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::interp;
use tgc_ir::module::Module;
use tgc_ir::ops::Op;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::DType;
use tgc_runtime as rt;

/// Tuples of sizes that are tried.
const TUPLES: usize = 3;

/// One of the two.
pub enum Side {
    /// Run by the interpreter.
    Model(Box<Module>),
    /// Run as compiled.
    Artifact(Arc<rt::Model>),
}

/// How far results may be apart: `|a - b| <= absolute + relative * |b|`. Integers and bool must be equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// In the output's own unit. None: what noise of roundings can be, as a part of the output's greatest element: 1e-4 in
    /// f32 and f64, 1e-2 in f16, 5e-2 in bf16.
    pub absolute: Option<f64>,
    /// In relation to B's element.
    pub relative: f64,
}

impl Tolerance {
    fn allowed(&self, d: DType, scale: f64, y: f64) -> f64 {
        let noise = match d {
            DType::F16 => 1e-2,
            DType::BF16 => 5e-2,
            d if d.is_float() => 1e-4,
            _ => return 0.0,
        };
        self.absolute.unwrap_or(noise * scale) + self.relative * y.abs()
    }
}

/// One output of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputDiff {
    /// The entry, with the sizes of its dims.
    pub run: String,
    /// The output's name.
    pub output: String,
    /// Greatest absolute difference; infinite for another shape or a NaN against a number.
    pub greatest: f64,
    /// Greatest difference in relation to the greatest element.
    pub relative: f64,
    /// Elements beyond the tolerance, of how many.
    pub beyond: (usize, usize),
    /// The worst element in words, if there is one beyond the tolerance.
    pub worst: Option<String>,
}

/// What differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Differences {
    /// Of inputs, outputs and dims, a line each.
    pub interface: Vec<String>,
    /// Of what the artifacts hold: options, targets, kernels, weights. Empty unless both are artifacts.
    pub content: Vec<String>,
    /// Every output of every run.
    pub outputs: Vec<OutputDiff>,
    /// What could not be run, and why.
    pub refused: Vec<String>,
    /// The first node, in order of the first model, whose value differs beyond the tolerance.
    pub first: Option<String>,
}

impl Differences {
    /// True where both compute the same behind the same interface, at all sizes that were tried.
    pub fn same(&self) -> bool {
        self.interface.is_empty() && self.refused.is_empty() && self.outputs.iter().all(|o| o.worst.is_none())
    }
}

impl Side {
    /// Opens an artifact; None for a file that is none.
    pub fn artifact(path: &Path) -> Option<Result<Side, rt::Error>> {
        match rt::Model::open(path) {
            Ok(model) => Some(Ok(Side::Artifact(model))),
            Err(e) if e.faults.iter().any(|f| f.code == rt::Code::NotArtifact) => None,
            Err(e) => Some(Err(e)),
        }
    }

    fn entries(&self) -> Vec<String> {
        match self {
            Side::Model(m) => m.entries.keys().cloned().collect(),
            Side::Artifact(a) => a.manifest().entries.iter().map(|e| e.name.clone()).collect(),
        }
    }

    /// Inputs, outputs and dims as text; `formulas` of sizes, or only how many axes there are.
    fn interface(&self, entry: &str, formulas: bool) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        let port = |what: &str, name: &str, dtype: &str, dims: Vec<String>| match formulas {
            true => format!("{what} `{name}`: {dtype}[{}]", dims.join(", ")),
            false => format!("{what} `{name}`: {dtype} of {} axes", dims.len()),
        };
        match self {
            Side::Model(m) => {
                let g = &m.entries[entry].body;
                let text =
                    |v: Value| g.ty(v).map(|t| (t.dtype.name(), t.shape.iter().map(|d| d.to_string())));
                for &node in g.inputs() {
                    let (Some(Op::Input(i)), Some((d, dims))) =
                        (g.op_of(node), text(Value { node, result: 0 }))
                    else {
                        continue;
                    };
                    out.insert(port("input", &i.name, d, dims.collect()));
                }
                for o in g.outputs() {
                    let Some((d, dims)) = text(o.value) else { continue };
                    out.insert(port("output", &o.name, d, dims.collect()));
                }
            }
            Side::Artifact(a) => {
                let Some(e) = a.manifest().entries.iter().find(|e| e.name == entry) else { return out };
                let names: Vec<&str> = e.symbols.iter().map(|s| s.name.as_str()).collect();
                for (what, ports) in [("input", &e.inputs), ("output", &e.outputs)] {
                    for p in ports {
                        let dims = p.dims.iter().map(|d| d.show(&names)).collect();
                        out.insert(port(what, &p.name, &p.dtype.to_string(), dims));
                    }
                }
            }
        }
        out.extend(self.symbols(entry).into_iter().map(|(n, lo, hi)| format!("dim `{n}`: {lo}..={hi}")));
        out
    }

    /// Dims that the caller chooses.
    fn symbols(&self, entry: &str) -> Vec<Symbol> {
        match self {
            Side::Model(m) => symbols(&m.entries[entry].body),
            Side::Artifact(a) => {
                let Some(e) = a.manifest().entries.iter().find(|e| e.name == entry) else {
                    return Vec::new();
                };
                let in_input = |slot: usize| {
                    let is = |d: &rt::Expr| *d == rt::Expr::Sym(slot as u32);
                    e.inputs.iter().any(|p| p.dims.iter().any(is))
                };
                let chosen = e.symbols.iter().enumerate().filter(|(i, _)| in_input(*i));
                chosen.map(|(_, s)| (s.name.clone(), s.lo, s.hi)).collect()
            }
        }
    }

    /// Names, types and shapes of the inputs at these sizes; None where it refuses them.
    fn inputs(&self, entry: &str, sizes: &Sizes) -> Option<Vec<(String, DType, Vec<usize>)>> {
        match self {
            Side::Model(m) => {
                let g = &m.entries[entry].body;
                let shapes = input_shapes(g, sizes)?;
                interp::bind(g, &shapes).ok()?;
                let one = |(&node, shape): (&NodeId, Vec<usize>)| {
                    let Some(Op::Input(i)) = g.op_of(node) else { return None };
                    Some((i.name.to_string(), g.ty(Value { node, result: 0 })?.dtype, shape))
                };
                g.inputs().iter().zip(shapes).map(one).collect()
            }
            Side::Artifact(a) => {
                let e = a.manifest().entries.iter().find(|e| e.name == entry)?;
                let syms: Vec<Option<i64>> = e.symbols.iter().map(|s| sizes.get(&s.name).copied()).collect();
                let one = |p: &rt::Port| {
                    let size = |d: &rt::Expr| d.eval(&syms).ok().and_then(|v| usize::try_from(v).ok());
                    Some((
                        p.name.clone(),
                        dtype(p.dtype)?,
                        p.dims.iter().map(size).collect::<Option<Vec<_>>>()?,
                    ))
                };
                let found: Vec<_> = e.inputs.iter().map(one).collect::<Option<_>>()?;
                let shapes: Vec<(&str, &[usize])> =
                    found.iter().map(|(n, _, s)| (n.as_str(), s.as_slice())).collect();
                session(a, entry, 1).ok()?.bind(&shapes).ok()?;
                Some(found)
            }
        }
    }

    /// Runs; outputs by name.
    fn run(&self, entry: &str, given: &BTreeMap<String, Tensor>) -> Result<Vec<Output>, String> {
        match self {
            Side::Model(m) => {
                let g = &m.entries[entry].body;
                let one = |&id: &NodeId| match g.op_of(id) {
                    Some(Op::Input(i)) => given.get(&*i.name).cloned(),
                    _ => None,
                };
                let inputs: Vec<Tensor> = g.inputs().iter().filter_map(one).collect();
                let found = interp::run(m, entry, &inputs).map_err(|d| d.render(None))?;
                Ok(g.outputs().iter().map(|o| o.name.to_string()).zip(found).collect())
            }
            Side::Artifact(a) => {
                let mut session = session(a, entry, 1).map_err(|e| e.to_string())?;
                let mut inputs = Vec::new();
                for p in &session.entry().inputs {
                    let Some(t) = given.get(&p.name) else { continue };
                    let t = rt::Tensor::new(p.dtype, &t.shape, t.data.bytes()).map_err(|e| e.to_string())?;
                    inputs.push((p.name.clone(), t));
                }
                let named: Vec<(&str, &rt::Tensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t)).collect();
                let found = session.run_owned(&named).map_err(|e| e.to_string())?;
                let one = |(name, t): (String, rt::Tensor)| {
                    let data = Data::new(t.bytes().to_vec());
                    Some((name, Tensor::from_bytes(dtype(t.dtype())?, t.shape(), data)?))
                };
                Ok(found.into_iter().filter_map(one).collect())
            }
        }
    }
}

type Output = (String, Tensor);

fn dtype(d: rt::DType) -> Option<DType> {
    let name = d.to_string();
    DType::all().find(|d| d.name() == name)
}

/// Compares two sides on inputs drawn from `seed`, at sizes within `dims` where those name a dim; their ranges are no
/// difference then. Diagnostics for what cannot be compared at all.
pub fn diff(
    a: &Side,
    b: &Side,
    seed: u64,
    tolerance: Tolerance,
    dims: &[DimOption],
) -> Result<Differences, Vec<Diag>> {
    let mut out = Differences::default();
    if let (Side::Artifact(x), Side::Artifact(y)) = (a, b) {
        out.content = content(x, y);
    }
    let alike = std::mem::discriminant(a) == std::mem::discriminant(b);
    let (of_a, of_b) = (a.entries(), b.entries());
    // one entry each, of whatever names: the same one
    let pairs: Vec<(String, String)> = match (&of_a[..], &of_b[..]) {
        ([x], [y]) => vec![(x.clone(), y.clone())],
        _ => of_a.iter().filter(|e| of_b.contains(e)).map(|e| (e.clone(), e.clone())).collect(),
    };
    out.interface.extend(only("A", "entry", &of_a, pairs.iter().map(|p| &p.0).collect()));
    out.interface.extend(only("B", "entry", &of_b, pairs.iter().map(|p| &p.1).collect()));
    for (ea, eb) in &pairs {
        // the two kinds write formulas differently; their values are compared below
        let (mut ia, mut ib) = (a.interface(ea, alike), b.interface(eb, alike));
        for d in dims {
            let range = format!("dim `{}`: ", d.name);
            ia.retain(|l| !l.starts_with(&range));
            ib.retain(|l| !l.starts_with(&range));
        }
        out.interface.extend(ia.difference(&ib).map(|l| format!("only A: {l}")));
        out.interface.extend(ib.difference(&ia).map(|l| format!("only B: {l}")));
        runs(&mut out, (a, ea), (b, eb), seed, tolerance, dims);
    }
    if out.outputs.is_empty() && out.refused.is_empty() {
        let m = "nothing can be compared: the two have no entry, or no output, in common, or both refuse all random inputs";
        return Err(vec![Diag::error("E-DIFF-001", m).help(
            "compare models whose inputs and outputs have the same names; another --seed draws other inputs",
        )]);
    }
    Ok(out)
}

fn only(side: &str, what: &str, all: &[String], common: Vec<&String>) -> Vec<String> {
    let rest = all.iter().filter(|e| !common.contains(e));
    rest.map(|e| format!("only {side}: {what} `{e}`")).collect()
}

/// Runs both at a few tuples of sizes that both take.
fn runs(
    out: &mut Differences,
    (a, ea): (&Side, &str),
    (b, eb): (&Side, &str),
    seed: u64,
    tol: Tolerance,
    dims: &[DimOption],
) {
    let mut symbols = a.symbols(ea);
    for (name, lo, hi) in b.symbols(eb) {
        match symbols.iter_mut().find(|s| s.0 == name) {
            Some(s) => (s.1, s.2) = (s.1.max(lo), s.2.min(hi)),
            None => symbols.push((name, lo, hi)),
        }
    }
    for s in &mut symbols {
        if let Some(d) = dims.iter().find(|d| d.name == s.0) {
            (s.1, s.2) = (s.1.max(d.lo), s.2.min(d.hi));
        }
    }
    let both = |sizes: &Sizes| {
        let (Some(x), Some(y)) = (a.inputs(ea, sizes), b.inputs(eb, sizes)) else { return None };
        let same = x.len() == y.len() && x.iter().all(|i| y.contains(i));
        (same && fits(x.iter().map(|(_, d, shape)| (*d, shape.as_slice())))).then_some(x)
    };
    let tuples = tuples_of(&symbols, seed, &|sizes| both(sizes).is_some());
    if tuples.is_empty() {
        let m = "no sizes were found at which both take the same inputs, 2 GiB at most";
        out.refused.push(format!("entry `{ea}`: {m}"));
    }
    for (sizes, small) in tuples.iter().take(TUPLES).flat_map(|s| [(s, false), (s, true)]) {
        let Some(ports) = both(sizes) else { continue };
        // once more with small integers, which may be indices into short axes
        if small && !ports.iter().any(|p| p.1.is_int()) {
            continue;
        }
        let mut rng = Rng(seed);
        let given: BTreeMap<String, Tensor> =
            ports.iter().map(|(n, d, shape)| (n.clone(), draw(*d, shape, small, &mut rng))).collect();
        let dims: Vec<String> = sizes.iter().map(|(n, v)| format!("{n} = {v}")).collect();
        let mut run = if dims.is_empty() { ea.to_string() } else { format!("{ea} at {}", dims.join(", ")) };
        if small {
            run += ", integers 0 and 1";
        }
        let (x, y) = match (a.run(ea, &given), b.run(eb, &given)) {
            (Ok(x), Ok(y)) => (x, y),
            // both say no: the inputs mean nothing to this model
            (Err(_), Err(_)) => continue,
            (Err(e), Ok(_)) => {
                out.refused.push(format!("{run}: only A refuses these inputs: {e}"));
                continue;
            }
            (Ok(_), Err(e)) => {
                out.refused.push(format!("{run}: only B refuses these inputs: {e}"));
                continue;
            }
        };
        let mut differs = false;
        for (name, x) in &x {
            let Some((_, y)) = y.iter().find(|o| o.0 == *name) else { continue };
            let d = compare(&run, name, x, y, tol);
            differs |= d.worst.is_some();
            out.outputs.push(d);
        }
        if let (true, None, Side::Model(x), Side::Model(y)) = (differs, &out.first, a, b) {
            out.first = first((x, ea), (y, eb), &given, tol);
        }
    }
}

/// How two tensors of one output differ.
pub(crate) fn compare(run: &str, name: &str, a: &Tensor, b: &Tensor, tol: Tolerance) -> OutputDiff {
    let mut out = OutputDiff {
        run: run.into(),
        output: name.into(),
        greatest: 0.0,
        relative: 0.0,
        beyond: (0, a.numel()),
        worst: None,
    };
    if a.dtype != b.dtype || a.shape != b.shape {
        (out.greatest, out.relative, out.beyond.0) = (f64::INFINITY, f64::INFINITY, a.numel().max(1));
        out.worst = Some(format!("A is {}{:?}, B is {}{:?}", a.dtype, a.shape, b.dtype, b.shape));
        return out;
    }
    let scale = b.scalars().map(|y| y.as_f64().abs()).filter(|y| y.is_finite()).fold(0.0, f64::max);
    let mut excess = 0f64;
    for (i, (x, y)) in a.scalars().zip(b.scalars()).enumerate().filter(|(_, (x, y))| x != y) {
        let (x, y) = (x.as_f64(), y.as_f64());
        let equal = a.dtype.is_float() && (x == y || (x.is_nan() && y.is_nan()));
        // 64-bit integers that differ may be equal as f64
        let gap = if equal {
            0.0
        } else if a.dtype.is_float() {
            (x - y).abs()
        } else {
            (x - y).abs().max(1.0)
        };
        let gap = if gap.is_nan() { f64::INFINITY } else { gap };
        let allowed = tol.allowed(a.dtype, scale, y);
        out.greatest = out.greatest.max(gap);
        // an infinite or NaN element allows nothing beside itself
        if gap.is_infinite() || gap > allowed {
            out.beyond.0 += 1;
            let ratio = gap / allowed.max(f64::MIN_POSITIVE);
            if ratio > excess || out.worst.is_none() {
                excess = ratio;
                let index = index(i, &a.shape);
                out.worst = Some(format!(
                    "at {index:?}: A {x:?}, B {y:?}, difference {gap:.3e}, allowed {allowed:.3e}"
                ));
            }
        }
    }
    out.relative = if out.greatest == 0.0 { 0.0 } else { out.greatest / scale };
    out
}

fn index(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut out = vec![0; shape.len()];
    for (x, &d) in out.iter_mut().zip(shape).rev() {
        (*x, at) = (at % d.max(1), at / d.max(1));
    }
    out
}

/// The first node of A whose value differs from that of the node at the same place of B.
fn first(
    (a, ea): (&Module, &str),
    (b, eb): (&Module, &str),
    given: &BTreeMap<String, Tensor>,
    tol: Tolerance,
) -> Option<String> {
    let (of_a, of_b) = (places(&a.entries[ea].body), places(&b.entries[eb].body));
    let common: Vec<&String> =
        of_a.iter().map(|p| &p.0).filter(|p| of_b.iter().any(|q| q.0 == **p)).collect();
    let run = |m: &Module, entry: &str, places: &[(String, Value)]| {
        let mut m = m.clone();
        let g = &mut m.entries.get_mut(entry)?.body;
        for (place, v) in places.iter().filter(|(p, _)| common.contains(&p)) {
            g.output(&format!("value of {place}"), *v);
        }
        Side::Model(Box::new(m)).run(entry, given).ok()
    };
    let (x, y) = (run(a, ea, &of_a)?, run(b, eb, &of_b)?);
    for place in common {
        let name = format!("value of {place}");
        let find = |all: &[Output]| all.iter().find(|o| o.0 == name).cloned();
        let (Some((_, x)), Some((_, y))) = (find(&x), find(&y)) else { continue };
        if let Some(worst) = compare("", "", &x, &y, tol).worst {
            return Some(format!("{place}: {worst}"));
        }
    }
    None
}

/// Places with the value of the last node there, in order.
fn places(g: &Graph) -> Vec<(String, Value)> {
    let mut out: Vec<(String, Value)> = Vec::new();
    for node in g.topo() {
        let place = same_place(&g.loc(node).place);
        let v = Value { node, result: 0 };
        if place.is_empty() || matches!(g.op_of(node), Some(Op::Input(_) | Op::Weight(_) | Op::Constant(_))) {
            continue;
        }
        out.retain(|p| p.0 != place);
        out.push((place, v));
    }
    out
}

/// A place without the operator's name, which may be what differs.
fn same_place(place: &str) -> String {
    let named = place.strip_prefix("node `").and_then(|p| p.rsplit_once("` ("));
    named.map_or_else(|| place.to_string(), |(name, _)| format!("node `{name}`"))
}

/// What two artifacts hold.
fn content(a: &rt::Model, b: &rt::Model) -> Vec<String> {
    let (a, b) = (a.manifest(), b.manifest());
    let mut out = Vec::new();
    for (what, x, y) in [
        ("producer", &a.producer, &b.producer),
        ("options", &a.options, &b.options),
        ("verification", &a.verification, &b.verification),
    ] {
        if x != y {
            out.push(format!("{what}: A `{x}`, B `{y}`"));
        }
    }
    let targets = |m: &rt::Manifest| m.images.iter().map(|i| i.target.clone()).collect::<Vec<_>>().join(", ");
    if targets(a) != targets(b) {
        out.push(format!("targets: A {}, B {}", targets(a), targets(b)));
    }
    let kernels = |m: &rt::Manifest| -> BTreeMap<String, [u8; 16]> {
        m.kernels.iter().map(|k| (k.name.clone(), k.text_hash)).collect()
    };
    lines(&mut out, "kernel", &kernels(a), &kernels(b));
    let weights = |m: &rt::Manifest| -> BTreeMap<String, (rt::DType, Vec<u64>, Vec<u32>)> {
        m.weights.iter().map(|w| (w.name.clone(), (w.dtype, w.dims.clone(), w.blocks.clone()))).collect()
    };
    lines(&mut out, "weight", &weights(a), &weights(b));
    let steps = |m: &rt::Manifest| -> usize {
        let programs = m.entries.iter().flat_map(|e| &e.variants).filter_map(|v| v.body.as_ref().ok());
        programs.flat_map(|p| &p.segments).map(|s| s.steps.len()).sum()
    };
    if steps(a) != steps(b) {
        out.push(format!("steps: A {}, B {}", steps(a), steps(b)));
    }
    out
}

fn lines<T: PartialEq>(out: &mut Vec<String>, what: &str, a: &BTreeMap<String, T>, b: &BTreeMap<String, T>) {
    for (name, x) in a {
        match b.get(name) {
            None => out.push(format!("{what} `{name}`: only in A")),
            Some(y) if x != y => out.push(format!("{what} `{name}`: differs")),
            Some(_) => {}
        }
    }
    out.extend(b.keys().filter(|n| !a.contains_key(*n)).map(|n| format!("{what} `{n}`: only in B")));
}
