//! The trace under way on this thread: the graph that grows, the model's names, and the places that operations come
//! from. Tensor operations reach it through [`with`]; nothing here knows an operation.

use super::dim::{Dim, DimSpec};
use super::error::{Errors, TraceEnd};
use super::module::{Cell, Kind, Module};
use super::tensor::{Node, Repr, Tensor};
use indexmap::{IndexMap, IndexSet};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, Guard, Value};
use tgc_ir::ops::{Constant, Input, Op, Weight};
use tgc_ir::tensor::Tensor as Data;
use tgc_ir::types::{Dim as Size, Pred, SymInfo, SymTable, Type};

/// Most elements of a tensor from outside the trace that is written into the graph; larger ones are weights.
const INLINE: usize = 64;

enum Frame {
    Trace(Box<Trace>),
    /// Inside `eager`.
    Eager,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

static NEXT: AtomicU64 = AtomicU64::new(1);

fn fresh_id() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A graph under construction: an entry's, or a branch's or loop's body.
pub(crate) struct Region {
    id: u64,
    pub(crate) graph: Graph,
    /// Values of the graph around it, and the inputs that stand for them.
    pub(crate) captures: Vec<(Value, Value)>,
    weights: BTreeMap<String, Value>,
    constants: BTreeMap<(usize, usize), Value>,
}

impl Region {
    fn new(graph: Graph) -> Region {
        Region {
            id: fresh_id(),
            graph,
            captures: Vec::new(),
            weights: BTreeMap::new(),
            constants: BTreeMap::new(),
        }
    }

    pub(crate) fn capture(&mut self, outer: Value, ty: Type) -> Value {
        if let Some(c) = self.captures.iter().find(|c| c.0 == outer) {
            return c.1;
        }
        let inner = self.graph.input(&format!("c{}", self.captures.len()), ty, Loc::default());
        self.captures.push((outer, inner));
        inner
    }
}

struct Scope {
    path: String,
    at: &'static Location<'static>,
}

/// A state of the model: its value when the entry begins, and what was set since.
struct Held {
    ty: Type,
    now: Node,
    written: bool,
}

/// One entry being captured.
pub(crate) struct Trace {
    pub(crate) id: u64,
    /// Sizes that dims of this trace stand for.
    pub(crate) dims: Vec<Size>,
    pub(crate) errors: Vec<Diag>,
    regions: Vec<Region>,
    scopes: Vec<Scope>,
    modules: BTreeMap<(usize, &'static str), String>,
    cells: BTreeMap<usize, (String, Kind)>,
    weights: IndexMap<String, Data>,
    /// Names of weights that are tensors from outside the trace.
    constants: IndexSet<String>,
    states: IndexMap<String, Held>,
    training: bool,
}

/// Runs `f` on the trace under way; `default` where there is none.
pub(crate) fn with<R>(f: impl FnOnce(&mut Trace) -> R, default: R) -> R {
    FRAMES.with_borrow_mut(|frames| match frames.last_mut() {
        Some(Frame::Trace(t)) => f(t),
        _ => default,
    })
}

/// True where operations are recorded.
pub(crate) fn is_tracing() -> bool {
    with(|_| true, false)
}

/// True where layers may run in training mode.
pub(crate) fn allows_training() -> bool {
    with(|t| t.training, true)
}

/// Adds an error to the trace under way or the one around this eager code; false without one.
pub(crate) fn record(d: Diag, at: &'static Location<'static>) -> bool {
    FRAMES.with_borrow_mut(|frames| {
        let trace = frames.iter_mut().rev().find_map(|f| match f {
            Frame::Trace(t) => Some(t),
            Frame::Eager => None,
        });
        let Some(t) = trace else { return false };
        let loc = t.loc(at);
        let d = d.at(&loc);
        if !t.errors.contains(&d) {
            t.errors.push(d);
        }
        true
    })
}

/// How many traces and eager parts are nested.
pub(crate) fn depth() -> usize {
    FRAMES.with_borrow(Vec::len)
}

/// Leaves those beyond a depth, after an unwind.
pub(crate) fn cut(depth: usize) {
    let gone: Vec<Frame> = FRAMES.with_borrow_mut(|f| f.drain(depth.min(f.len())..).collect());
    drop(gone);
}

/// Computes at once, also inside a trace, where the results are constants.
pub fn eager<R>(f: impl FnOnce() -> R) -> R {
    struct Leave(usize);
    impl Drop for Leave {
        fn drop(&mut self) {
            cut(self.0);
        }
    }
    let leave = Leave(depth());
    FRAMES.with_borrow_mut(|frames| frames.push(Frame::Eager));
    let out = f();
    drop(leave);
    out
}

/// What a value cannot be had for: an error, or something that failed before.
pub(crate) type Missing = Option<Diag>;

impl Trace {
    pub(crate) fn symbols(&self) -> &SymTable {
        &self.entry().symbols
    }

    fn entry(&self) -> &Graph {
        &self.regions[0].graph
    }

    pub(crate) fn graph(&mut self) -> &mut Graph {
        let last = self.regions.len() - 1;
        &mut self.regions[last].graph
    }

    pub(crate) fn range(&self, d: &Size) -> (i128, i128) {
        self.symbols().range(d)
    }

    pub(crate) fn simplify(&self, d: &Size) -> Size {
        d.simplify(&|a| self.symbols().atom_range(a))
    }

    /// The declared ranges of the symbols in a condition, a line each.
    pub(crate) fn ranges(&self, p: &Pred) -> Vec<String> {
        let mut lines = Vec::new();
        p.dims(&mut |d| {
            d.leaves(&mut |a| {
                if let tgc_ir::types::Atom::Sym(s) = a
                    && let Some(i) = self.symbols().get(s)
                {
                    let line = format!("`{s}` is from {} to {}", i.lo, i.hi);
                    if !lines.contains(&line) {
                        lines.push(line);
                    }
                }
            })
        });
        lines
    }

    /// The user's line, and the module it is in.
    pub(crate) fn loc(&self, at: &'static Location<'static>) -> Loc {
        let users = |l: &&'static Location<'static>| !is_library(l.file());
        let at = Some(at)
            .filter(users)
            .or_else(|| self.scopes.iter().rev().map(|s| s.at).find(users))
            .unwrap_or(at);
        let line = format!("{}:{}", short(at.file()), at.line());
        match self.scopes.last().map(|s| s.path.as_str()) {
            None | Some("") => Loc::new(line),
            Some(path) => Loc::new(format!("{line} ({path})")),
        }
    }

    /// A result of the graph under construction.
    pub(crate) fn tensor(&mut self, value: Value) -> Tensor {
        let region = self.regions.last().map_or(0, |r| r.id);
        let ty = self.graph().ty(value).cloned().unwrap_or(Type::scalar(tgc_ir::types::DType::F32));
        Tensor(Repr::Node(Node { trace: self.id, region, value, ty: Arc::new(ty) }))
    }

    /// The value that a tensor is in the graph under construction.
    pub(crate) fn value(&mut self, t: &Tensor, loc: &Loc) -> Result<Value, Missing> {
        match &t.0 {
            Repr::Node(n) if n.trace == self.id => self.import(n),
            Repr::Node(_) => Err(Some(ended())),
            Repr::Failed => Err(None),
            Repr::Held(data) => self.constant(data, loc),
            Repr::Cell(cell) => self.cell(cell, loc),
        }
    }

    fn import(&mut self, n: &Node) -> Result<Value, Missing> {
        let Some(level) = self.regions.iter().position(|r| r.id == n.region) else {
            let d = Diag::error("E-NN-020", "this tensor belongs to a branch or loop body that has ended")
                .help("return it from the body, and use what cond, scan or while_loop gives");
            return Err(Some(d));
        };
        let mut v = n.value;
        for r in &mut self.regions[level + 1..] {
            v = r.capture(v, (*n.ty).clone());
        }
        Ok(v)
    }

    fn constant(&mut self, data: &Data, loc: &Loc) -> Result<Value, Missing> {
        let key = (data.data.bytes().as_ptr() as usize, data.numel());
        let last = self.regions.len() - 1;
        let r = &self.regions[last];
        if let Some(v) = r.constants.get(&key).filter(|v| r.graph.ty(**v) == Some(&data.ty())) {
            return Ok(*v);
        }
        let op: Op = match data.numel() <= INLINE {
            true => Constant { value: data.clone(), shape: None }.into(),
            false => {
                let known = self.constants.iter().find(|n| self.weights.get(*n) == Some(data)).cloned();
                let fresh = || format!("{}.constant_{}", self.regions[0].graph.name, self.constants.len());
                let name = known.unwrap_or_else(fresh);
                self.constants.insert(name.clone());
                let ty = data.ty();
                self.weights.insert(name.clone(), data.clone());
                Weight { name, dtype: ty.dtype, shape: ty.shape }.into()
            }
        };
        let r = &mut self.regions[last];
        let v = r.graph.op(op, &[], loc).map_err(Some)?;
        // The graph or the weights hold the bytes, so that their address stays a key.
        r.constants.insert(key, v);
        Ok(v)
    }

    fn cell(&mut self, cell: &Arc<Cell>, loc: &Loc) -> Result<Value, Missing> {
        let Some((name, kind)) = self.cells.get(&(Arc::as_ptr(cell) as usize)).cloned() else {
            let d = Diag::error(
                "E-NN-021",
                "a parameter, buffer or state that is not in the traced model is used",
            )
            .note(format!("its type is {}", cell.value().ty()))
            .help(
                "make it a field of the model, derive Module for the struct that holds it, and skip no field",
            );
            return Err(Some(d));
        };
        if kind == Kind::State {
            return self.state(&name, cell);
        }
        let Some(r) = self.regions.last_mut() else { return Err(None) };
        if let Some(v) = r.weights.get(&name) {
            return Ok(*v);
        }
        let data = cell.value();
        let ty = data.ty();
        let op = Weight { name: name.clone(), dtype: ty.dtype, shape: ty.shape };
        let v = r.graph.op(op, &[], loc).map_err(Some)?;
        r.weights.insert(name.clone(), v);
        self.weights.insert(name, data);
        Ok(v)
    }

    fn state(&mut self, name: &str, cell: &Arc<Cell>) -> Result<Value, Missing> {
        if !self.states.contains_key(name) {
            let ty = cell.value().ty();
            let input = Input {
                name: name.to_string(),
                dtype: ty.dtype,
                shape: ty.shape.clone(),
                state: Some(name.to_string()),
                default: None,
            };
            let value = self.regions[0].graph.input_op(input, Loc::default());
            let now = Node { trace: self.id, region: self.regions[0].id, value, ty: Arc::new(ty.clone()) };
            self.states.insert(name.to_string(), Held { ty, now, written: false });
        }
        let now = self.states[name].now.clone();
        self.import(&now)
    }

    /// Gives a cell another value from here on.
    pub(crate) fn set(&mut self, cell: &Arc<Cell>, to: &Tensor, loc: &Loc) -> Result<(), Missing> {
        let to_value = self.value(to, loc)?;
        let name = match self.cells.get(&(Arc::as_ptr(cell) as usize)) {
            Some((name, Kind::State)) => name.clone(),
            Some((name, _)) => {
                let m = format!("`{name}` is set in a trace, which is built for states only");
                return Err(Some(Diag::error("E-NN-022", m).help("make it a State")));
            }
            None => {
                let m = "a state that is not in the traced model is set";
                return Err(Some(Diag::error("E-NN-021", m).help("make it a field of the model")));
            }
        };
        if self.regions.len() > 1 {
            let m = format!("the state `{name}` is set in a branch or loop body, which is not built");
            return Err(Some(
                Diag::error("E-NN-023", m).help("return the new value from the body, and set it after"),
            ));
        }
        self.state(&name, cell)?;
        let Repr::Node(new) = self.tensor(to_value).0 else { return Ok(()) };
        let Some(held) = self.states.get_mut(&name) else { return Ok(()) };
        if *new.ty != held.ty {
            let m = format!("the state `{name}` is {} and is set to {}", held.ty, new.ty);
            return Err(Some(
                Diag::error("E-NN-024", m).help("a state keeps its type: reshape or cast the value"),
            ));
        }
        held.now = new;
        held.written = true;
        Ok(())
    }

    /// Starts a body; `params` are its first inputs.
    pub(crate) fn enter_region(&mut self, params: &[(String, Type)]) -> Vec<Tensor> {
        let graph = Graph::region(self.symbols());
        self.regions.push(Region::new(graph));
        let mut out = Vec::new();
        for (name, ty) in params {
            let v = self.graph().input(name, ty.clone(), Loc::default());
            out.push(self.tensor(v));
        }
        out
    }

    /// Ends the body begun last.
    pub(crate) fn leave_region(&mut self) -> Option<Region> {
        if self.regions.len() > 1 { self.regions.pop() } else { None }
    }

    /// Body graphs open now.
    pub(crate) fn levels(&self) -> usize {
        self.regions.len()
    }

    fn path_of(&self, addr: usize, kind: &'static str) -> String {
        let known = self.modules.get(&(addr, kind)).cloned();
        known.unwrap_or_else(|| self.scopes.last().map(|s| s.path.clone()).unwrap_or_default())
    }
}

pub(crate) fn ended() -> Diag {
    Diag::error("E-NN-025", "a tensor of another trace, or of one that has ended, is used").help(
        "use what the closure given to trace receives and returns; values for printing come from eager calls",
    )
}

/// Files of this layer, whose lines say nothing to a user.
fn is_library(file: &str) -> bool {
    const HERE: &str = file!();
    file.starts_with(HERE.trim_end_matches("trace.rs"))
}

/// A path without the machine's folders.
fn short(file: &str) -> &str {
    if !file.starts_with('/') {
        return file;
    }
    let cut = file.rfind("/src/").or_else(|| file.rfind("/examples/")).or_else(|| file.rfind("/tests/"));
    cut.map_or_else(|| file.rsplit('/').next().unwrap_or(file), |i| &file[i + 1..])
}

/// Holds a module's path while its `forward` runs.
pub struct Entered(bool);

impl Drop for Entered {
    fn drop(&mut self) {
        if self.0 {
            with(|t| drop(t.scopes.pop()), ());
        }
    }
}

/// Says that operations from here to the end of the scope belong to the module `m`. `#[forward]` writes this call.
#[track_caller]
pub fn enter<M: Module + ?Sized>(m: &M) -> Entered {
    let (addr, kind) = (std::ptr::from_ref(m).cast::<()>() as usize, m.module_type());
    let at = Location::caller();
    Entered(with(
        |t| {
            let path = t.path_of(addr, kind);
            t.scopes.push(Scope { path, at });
            true
        },
        false,
    ))
}

/// An input of an entry.
#[derive(Clone, Debug)]
pub struct Spec {
    name: String,
    dtype: tgc_ir::types::DType,
    dims: Vec<DimSpec>,
}

/// An input: its name, element type and dims, where names are symbolic: `spec("x", F32, ("batch", 784))`.
pub fn spec(name: &str, dtype: tgc_ir::types::DType, dims: impl super::dim::IntoSpecs) -> Spec {
    Spec { name: name.to_string(), dtype, dims: dims.into_specs() }
}

/// What is captured of one entry.
pub(crate) struct Captured {
    pub(crate) graph: Graph,
    pub(crate) weights: IndexMap<String, Data>,
    pub(crate) states: IndexMap<String, Type>,
}

/// Starts a trace, runs `f` on its inputs and ends it. `f` gives named results.
pub(crate) fn capture<M: Module + ?Sized>(
    model: &M,
    entry: &str,
    specs: &[Spec],
    training: bool,
    f: impl FnOnce(Vec<Tensor>) -> Vec<(String, Tensor)>,
) -> Result<Captured, Errors> {
    let mut t = Trace {
        id: fresh_id(),
        dims: Vec::new(),
        errors: Vec::new(),
        regions: vec![Region::new(Graph::new(entry))],
        scopes: Vec::new(),
        modules: BTreeMap::new(),
        cells: BTreeMap::new(),
        weights: IndexMap::new(),
        constants: IndexSet::new(),
        states: IndexMap::new(),
        training,
    };
    super::module::walk(model, &mut |v| match v {
        super::module::Found::Module { path, address, kind } => {
            t.modules.entry((address, kind)).or_insert(path.to_string());
        }
        super::module::Found::Cell { path, cell, kind, .. } => {
            t.cells.entry(Arc::as_ptr(cell) as usize).or_insert((path.to_string(), kind));
        }
        _ => {}
    });
    let inputs = declare(&mut t, specs).map_err(Errors::new)?;
    let depth = depth();
    FRAMES.with_borrow_mut(|frames| frames.push(Frame::Trace(Box::new(t))));
    let result = catch_unwind(AssertUnwindSafe(|| f(inputs)));
    let frame = FRAMES.with_borrow_mut(|frames| {
        frames.truncate(depth + 1);
        frames.pop()
    });
    let Some(Frame::Trace(t)) = frame else {
        return Err(Diag::error("E-BUG", "the trace is gone").into());
    };
    match result {
        Ok(outputs) => finish(*t, outputs),
        Err(payload) if payload.is::<TraceEnd>() => Err(Errors::new(t.errors)),
        Err(payload) => resume_unwind(payload),
    }
}

fn declare(t: &mut Trace, specs: &[Spec]) -> Result<Vec<Tensor>, Vec<Diag>> {
    let mut bad = Vec::new();
    for (i, s) in specs.iter().enumerate() {
        if specs[..i].iter().any(|o| o.name == s.name) {
            bad.push(
                Diag::error("E-NN-030", format!("two inputs are called `{}`", s.name))
                    .help("rename one of them"),
            );
        }
        for d in &s.dims {
            let Some(name) = &d.name else {
                if d.lo < 0 {
                    let m = format!("input `{}` has a size that is negative or too large", s.name);
                    bad.push(
                        Diag::error("E-NN-031", m)
                            .help("sizes are 0 or more; for any size give a name: \"batch\""),
                    );
                }
                continue;
            };
            let word = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !word || name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
                let m = format!("input `{}`: `{name}` is no name for a dim", s.name);
                bad.push(Diag::error("E-NN-032", m).help("letters, digits and _, such as batch or seq_len"));
                continue;
            }
            if d.lo > d.hi || d.lo < 0 {
                let m = format!("dim `{name}`: the range {}..={} holds no size", d.lo, d.hi);
                bad.push(Diag::error("E-NN-033", m).help("such as 1..=64"));
                continue;
            }
            let info = SymInfo { lo: d.lo, hi: d.hi, named: true };
            let symbols = &mut t.regions[0].graph.symbols;
            let plain = SymInfo { lo: 1, ..SymInfo::default() };
            match symbols.get(name) {
                Some(old) if *old != info && info != plain && *old != plain => {
                    let m = format!(
                        "dim `{name}` has the range {}..={} in one place and {}..={} in another",
                        old.lo, old.hi, info.lo, info.hi
                    );
                    bad.push(
                        Diag::error("E-NN-034", m).help("one name is one dim: give one range, or two names"),
                    );
                }
                Some(_) if info == plain => {}
                _ => symbols.insert(name, info),
            }
        }
    }
    if !bad.is_empty() {
        return Err(bad);
    }
    let ty = |s: &Spec| {
        let size = |d: &DimSpec| d.name.as_deref().map_or(Size::from(d.lo), Size::sym);
        Type::new(s.dtype, s.dims.iter().map(size).collect())
    };
    let mut out = Vec::new();
    for s in specs {
        let v = t.graph().input(&s.name, ty(s), Loc::new(format!("input `{}`", s.name)));
        out.push(t.tensor(v));
    }
    Ok(out)
}

fn finish(mut t: Trace, outputs: Vec<(String, Tensor)>) -> Result<Captured, Errors> {
    if !t.errors.is_empty() {
        return Err(Errors::new(t.errors));
    }
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for (name, tensor) in outputs {
        let value = match t.value(&tensor, &Loc::default()) {
            Ok(v) => v,
            Err(Some(d)) => return Err(d.into()),
            Err(None) => continue,
        };
        let n = taken.entry(name.clone()).or_insert(0);
        *n += 1;
        let name = if *n > 1 { format!("{name}_{}", *n - 1) } else { name };
        t.regions[0].graph.output(&name, value);
    }
    for (name, held) in &t.states {
        if held.written {
            t.regions[0].graph.output_state(name, name, held.now.value);
        }
    }
    let states = t.states.into_iter().map(|(n, h)| (n, h.ty)).collect();
    Ok(Captured { graph: t.regions.swap_remove(0).graph, weights: t.weights, states })
}

/// Adds an op to the trace under way; the results, or why there are none. A condition that would make a named dim equal
/// to another one, or to a number, is an error.
pub(crate) fn add(
    op: Op,
    operands: &[&Tensor],
    regions: Vec<Graph>,
    at: &'static Location<'static>,
    results: usize,
) -> Option<Result<Vec<Tensor>, Missing>> {
    with(
        |t| {
            let loc = t.loc(at);
            Some(t.add(op, operands, regions, loc, results))
        },
        None,
    )
}

impl Trace {
    fn add(
        &mut self,
        op: Op,
        operands: &[&Tensor],
        regions: Vec<Graph>,
        loc: Loc,
        results: usize,
    ) -> Result<Vec<Tensor>, Missing> {
        let mut values = Vec::with_capacity(operands.len());
        let mut failed = None;
        for o in operands {
            match self.value(o, &loc) {
                Ok(v) => values.push(v),
                Err(Some(d)) => return Err(Some(d)),
                Err(None) => failed = Some(()),
            }
        }
        if failed.is_some() {
            return Err(None);
        }
        let before = self.graph().guards().len();
        let node = self.graph().add(op, &values, regions, loc).map_err(Some)?;
        let pins = self.graph().guards()[before..].to_vec();
        if let Some(d) = pins.iter().find_map(|g| self.pinned(&g.pred, &g.why)) {
            return Err(Some(d));
        }
        Ok((0..results).map(|i| self.tensor(Value { node, result: i as u32 })).collect())
    }

    /// Adds a condition that is checked when the program runs; the error if it would pin a named dim.
    pub(crate) fn guard(&mut self, pred: &Pred, why: &str, at: &'static Location<'static>) -> Option<Diag> {
        let pinned = self.pinned(pred, why);
        if pinned.is_none() {
            let guard = Guard { pred: pred.clone(), why: why.to_string(), at: self.loc(at) };
            self.graph().guard(guard);
        }
        pinned
    }

    fn pinned(&self, p: &Pred, why: &str) -> Option<Diag> {
        let (a, b) = match p {
            Pred::Eq(a, b) | Pred::Broadcastable(a, b) => (a, b),
            _ => return None,
        };
        let symbols = self.symbols();
        let named = |d: &Size| symbols.as_named(d).is_some();
        let plain = |d: &Size| named(d) || d.as_const().is_some();
        if !(plain(a) && plain(b) && (named(a) || named(b))) {
            return None;
        }
        let m = format!("{why}: this would make the dims `{a}` and `{b}` equal");
        let d = Diag::error("E-NN-016", m).help(
            "a named dim stays dynamic; if the two are always equal, give them one name in the specs, else change the shapes",
        );
        Some(self.ranges(p).into_iter().fold(d, Diag::note))
    }
}

/// The dims of a trace's tensor, as users hold them.
pub(crate) fn dims_of(ty: &Type) -> Vec<Dim> {
    ty.shape.iter().map(Dim::of).collect()
}
