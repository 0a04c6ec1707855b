//! Whether a module's artifact computes what the interpreter computes: random inputs, a build in memory, runs at one and
//! two threads. What must not be here: how a failing module is made smaller (`reduce`).

use crate::build::{BuildOptions, build};
use std::collections::BTreeMap;
use std::sync::Arc;
use tgc_ir::accuracy::within;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::interp::{self, Bounded};
use tgc_ir::module::Module;
use tgc_ir::ops::Op;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{Atom, DType, Type};
use tgc_runtime as rt;

/// Why an artifact is not what the interpreter says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The code of the diagnostic that ends the build, or `differs`, `threads`, `refused`, `runtime`: what stays the same
    /// while a module is made smaller.
    pub kind: String,
    /// Where and how, in words.
    pub text: String,
}

/// Tuples of sizes tried for every entry, and draws of inputs for the first.
pub(crate) const TRIES: usize = 3;

/// Draws of sizes for tuples that the graph accepts.
const DRAWS: usize = 200;

/// Tuples to choose from.
const CANDIDATES: usize = 12;

/// Builds for this machine and compares with the interpreter on inputs drawn from `seed`, at a few sizes of the dynamic
/// dims within their ranges.
pub fn agree(module: &Module, seed: u64) -> Result<(), Fault> {
    let options = BuildOptions { targets: vec!["native".into()], ..BuildOptions::default() };
    let artifact = build(&mut module.clone(), &options, &mut |_| {}, &|| ()).map_err(|d| refusal(&d))?;
    let model = artifact.to_bytes().and_then(|b| rt::Loader::default().from_bytes(&b)).map_err(of_runtime)?;
    for (name, entry) in &module.entries {
        for (sizes, inputs) in cases(&entry.body, seed) {
            let say = |f: Fault| Fault { text: format!("@{name} at {sizes:?}: {}", f.text), ..f };
            let want = interp::run_bounded(module, name, &inputs);
            compare(&want, name, &model, &inputs).map_err(say)?;
        }
    }
    Ok(())
}

/// Sizes of the dynamic dims.
pub(crate) type Sizes = BTreeMap<String, i64>;

/// Inputs for a few tuples of sizes: a few draws for the first, one for each other.
pub(crate) fn cases(g: &Graph, seed: u64) -> Vec<(Sizes, Vec<Tensor>)> {
    let mut out = Vec::new();
    for (n, sizes) in tuples(g, seed).into_iter().take(TRIES).enumerate() {
        let draws = if n == 0 { TRIES } else { 1 };
        out.extend(draw_inputs(g, &sizes, seed, draws).into_iter().map(|i| (sizes.clone(), i)));
    }
    out
}

/// Inputs of these sizes, drawn a few times; integers are small in some.
fn draw_inputs(g: &Graph, sizes: &Sizes, seed: u64, draws: usize) -> Vec<Vec<Tensor>> {
    let mut rng = Rng(seed);
    (0..draws)
        .filter_map(|_| {
            let small = rng.within(0, 1) == 0;
            draw_all(g, sizes, small, &mut rng)
        })
        .collect()
}

/// One draw of all inputs; integers are 0 or 1 with `small`. None for sizes that no input can have.
pub(crate) fn draw_all(g: &Graph, sizes: &Sizes, small: bool, rng: &mut Rng) -> Option<Vec<Tensor>> {
    input_types(g).iter().map(|t| Some(draw(t.dtype, &shape(t, sizes)?, small, rng))).collect()
}

/// True where an input is of integers, which may be indices.
pub(crate) fn has_integers(g: &Graph) -> bool {
    input_types(g).iter().any(|t| t.dtype.is_int())
}

fn fault(kind: &str, text: impl Into<String>) -> Fault {
    Fault { kind: kind.into(), text: text.into() }
}

fn refusal(d: &[Diag]) -> Fault {
    let code = d.first().map_or("E-BUG", |d| d.code);
    fault(code, d.iter().map(|d| d.render(None)).collect::<Vec<_>>().join("\n"))
}

fn of_runtime(e: rt::Error) -> Fault {
    fault("runtime", e.to_string())
}

/// The interpreter's code for more memory than it takes.
const MEMORY: &str = "E-RUN-018";

/// Compares runs with what the interpreter gave; false if both refuse the inputs, or the interpreter has not the memory.
pub(crate) fn compare(
    want: &Result<Vec<Bounded>, Diag>,
    entry: &str,
    model: &Arc<rt::Model>,
    inputs: &[Tensor],
) -> Result<bool, Fault> {
    if want.as_ref().is_err_and(|d| d.code == MEMORY) {
        return Ok(false);
    }
    let (one, two) = (run(model, entry, inputs, 1), run(model, entry, inputs, 2));
    let want = match (want, &one) {
        (Ok(w), _) => w,
        (Err(_), Err(_)) => return Ok(false),
        (Err(d), Ok(_)) => {
            return Err(fault("refused", format!("only the interpreter refuses: {}", d.render(None))));
        }
    };
    let (one, two) = (one.map_err(of_runtime)?, two.map_err(of_runtime)?);
    for (i, (w, got)) in want.iter().zip(&one).enumerate() {
        let got = Tensor::from_bytes(w.tensor.dtype, &w.tensor.shape, Data::new(got.clone()));
        let got =
            got.ok_or_else(|| fault("differs", format!("output {i} has another number of elements")))?;
        within(&got, &w.tensor, &w.bound).map_err(|e| fault("differs", format!("output {i}: {e}")))?;
    }
    if one == two { Ok(true) } else { Err(fault("threads", "one and two threads give different bits")) }
}

/// A session with a pool of its own.
pub(crate) fn session(model: &Arc<rt::Model>, entry: &str, threads: usize) -> Result<rt::Session, rt::Error> {
    let options = rt::SessionOptions { threads: Some(threads), ..rt::SessionOptions::default() };
    rt::Session::new(model, entry, &options)
}

fn run(
    model: &Arc<rt::Model>,
    entry: &str,
    inputs: &[Tensor],
    threads: usize,
) -> Result<Vec<Vec<u8>>, rt::Error> {
    let mut session = session(model, entry, threads)?;
    let mut given = Vec::new();
    for (p, t) in session.entry().inputs.iter().zip(inputs) {
        given.push((p.name.clone(), rt::Tensor::new(p.dtype, &t.shape, t.data.bytes())?));
    }
    let given: Vec<(&str, &rt::Tensor)> = given.iter().map(|(n, t)| (n.as_str(), t)).collect();
    Ok(session.run_owned(&given)?.into_iter().map(|(_, t)| t.bytes().to_vec()).collect())
}

fn input_types(g: &Graph) -> Vec<Type> {
    let ty = |&node| g.ty(Value { node, result: 0 }).cloned();
    g.inputs().iter().filter_map(ty).collect()
}

fn shape(t: &Type, sizes: &Sizes) -> Option<Vec<usize>> {
    let leaf = |a: &Atom| if let Atom::Sym(s) = a { sizes.get(&**s).copied() } else { None };
    t.shape.iter().map(|d| d.eval(&leaf).ok().and_then(|v| usize::try_from(v).ok())).collect()
}

/// Shapes of the inputs at these sizes.
pub(crate) fn input_shapes(g: &Graph, sizes: &Sizes) -> Option<Vec<Vec<usize>>> {
    input_types(g).iter().map(|t| shape(t, sizes)).collect()
}

/// Tuples of sizes that the graph accepts, as [`tuples_of`] orders them.
pub(crate) fn tuples(g: &Graph, seed: u64) -> Vec<Sizes> {
    let types = input_types(g);
    let small =
        |shapes: &[Vec<usize>]| fits(types.iter().map(|t| t.dtype).zip(shapes.iter().map(Vec::as_slice)));
    let takes =
        |sizes: &Sizes| input_shapes(g, sizes).is_some_and(|s| small(&s) && interp::bind(g, &s).is_ok());
    tuples_of(&symbols(g), seed, &takes)
}

/// Most bytes of random inputs.
const INPUTS: usize = 2 << 30;

/// True for inputs that are no more than [`INPUTS`] together.
pub(crate) fn fits<'a>(inputs: impl Iterator<Item = (DType, &'a [usize])>) -> bool {
    let bytes = |(d, shape): (DType, &[usize])| shape.iter().try_fold(d.size(), |n, &s| n.checked_mul(s));
    let sum = |all: Option<usize>, b: Option<usize>| all?.checked_add(b?);
    inputs.map(bytes).fold(Some(0), sum).is_some_and(|n| n <= INPUTS)
}

/// A dim with its least and its greatest size.
pub(crate) type Symbol = (String, i64, i64);

/// Dims whose sizes the inputs give.
pub(crate) fn symbols(g: &Graph) -> Vec<Symbol> {
    let inside =
        |s: &str| g.ids().iter().any(|&i| matches!(g.op_of(i), Some(Op::BindDim(b)) if b.symbol == s));
    let chosen = g.symbols.iter().filter(|(s, _)| !inside(s));
    chosen.map(|(s, info)| (s.to_string(), info.lo, info.hi)).collect()
}

/// Tuples of sizes that are taken. The first bring as many new sizes of each dim as they can; sizes around vectors and tiles
/// are likelier than others.
pub(crate) fn tuples_of(symbols: &[Symbol], seed: u64, takes: &dyn Fn(&Sizes) -> bool) -> Vec<Sizes> {
    let mut rng = Rng(seed);
    let mut found: Vec<Sizes> = Vec::new();
    for _ in 0..if symbols.is_empty() { 1 } else { DRAWS } {
        let mut sizes = Sizes::new();
        for (name, lo, hi) in symbols {
            let near = [1, 2, 3, 5, 7, 8, 16, 17, 33, 65][rng.within(0, 9) as usize];
            sizes.insert(name.clone(), near.min(*hi).max(*lo));
        }
        if !found.contains(&sizes) && takes(&sizes) {
            found.push(sizes);
        }
        if found.len() == CANDIDATES {
            break;
        }
    }
    let mut out: Vec<Sizes> = Vec::new();
    while !found.is_empty() {
        let news = |t: &Sizes| t.iter().filter(|(n, v)| out.iter().all(|o| o.get(*n) != Some(v))).count();
        let best = (0..found.len()).rev().max_by_key(|&i| news(&found[i])).unwrap_or(0);
        out.push(found.remove(best));
    }
    out
}

/// Small numbers; integers are 0 or 1 with `small`, as indices into short axes must be.
pub(crate) fn draw(d: DType, shape: &[usize], small: bool, rng: &mut Rng) -> Tensor {
    let n: usize = shape.iter().product();
    let mut one = || match d {
        DType::Bool => Scalar::bool(rng.within(0, 1) == 1),
        d if d.is_float() => Scalar::from_f64(d, rng.within(-2 << 16, 2 << 16) as f64 / f64::from(1 << 16)),
        d if small => Scalar::from_int(d, i128::from(rng.within(0, 1))),
        d if d.is_signed() => Scalar::from_int(d, i128::from(rng.within(-2, 3))),
        d => Scalar::from_int(d, i128::from(rng.within(0, 3))),
    };
    Tensor::from_scalars(d, shape, (0..n).map(|_| one()).collect::<Vec<_>>())
}

/// Splitmix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// From `lo` to `hi`, both included.
    fn within(&mut self, lo: i64, hi: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        lo + ((z ^ (z >> 31)) % (hi - lo + 1) as u64) as i64
    }
}
