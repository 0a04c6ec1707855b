//! Programs: the steps and buffers of each entry, and the kernels they launch, shared by structure.

use super::formula;
use crate::kernel::{self, Kernel, Packed, reuse};
use crate::lower::math::lower_kernel;
use crate::lower::{self, lower_region, unbuilt};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::module::{Entry, Module};
use tgc_ir::ops::{Input, Op};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, SymTable, Type};
use tgc_runtime as rt;

/// A module lowered to kernels and programs, not yet compiled.
pub struct Lowered {
    /// Kernels in order of first use. Names are unique; equal structure is shared.
    pub kernels: Vec<Kernel>,
    pub(crate) manifest: rt::Manifest,
    pub(crate) weights: Vec<Stored>,
}

/// A weight and how it lies in the file.
pub(crate) struct Stored {
    tensor: Tensor,
    packed: Option<Packed>,
}

impl Stored {
    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> Cow<'_, [u8]> {
        let bytes = self.tensor.data.bytes();
        match &self.packed {
            None => Cow::Borrowed(bytes),
            Some(p) => Cow::Owned(p.pack(bytes, &dims_of(&self.tensor), self.tensor.dtype.size())),
        }
    }
}

fn dims_of(t: &Tensor) -> Vec<u64> {
    t.shape.iter().map(|&d| d as u64).collect()
}

/// Lowers every entry. All faults found are reported.
pub fn lower_module(module: &Module) -> Result<Lowered, Vec<Diag>> {
    let mut b = Builder::new(module);
    let mut faults = Vec::new();
    for (name, _) in &module.states {
        faults.push(
            Diag::error("E-CG-020", format!("code for states is not built yet (state `{name}`)"))
                .help("the reference interpreter runs it; make the state an input and an output for now"),
        );
    }
    for (name, entry) in &module.entries {
        match b.entry(name, entry) {
            Ok(e) => b.manifest.entries.push(e),
            Err(mut d) => faults.append(&mut d),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(Lowered { kernels: b.kernels.clone(), manifest: b.manifest, weights: b.weights })
}

/// What the manifest says of a kernel that does `flops` operations on `bytes` of buffers.
pub(crate) fn decl(k: &Kernel, flops: &Dim, bytes: &Dim) -> rt::KernelDecl {
    // a count beyond all integers is as good as the greatest one
    let count = |d: &Dim| formula::expr(d, &|name| k.slot(name)).unwrap_or(rt::Expr::Const(i64::MAX));
    let role = |r| match r {
        kernel::Role::In => rt::Role::In,
        kernel::Role::Out => rt::Role::Out,
        kernel::Role::InOut => rt::Role::InOut,
        kernel::Role::Const => rt::Role::Const,
    };
    let mut text_hash = [0; 16];
    text_hash.copy_from_slice(&blake3::hash(kernel::text::print(k).as_bytes()).as_bytes()[..16]);
    rt::KernelDecl {
        name: k.name.clone(),
        args: k
            .args
            .iter()
            .map(|a| rt::ArgDecl {
                name: a.name.clone(),
                dtype: dtype(a.dtype).unwrap_or(rt::DType::Bool),
                role: role(a.role),
            })
            .collect(),
        dims: k.params.len() as u32,
        flops: count(flops),
        bytes: count(bytes),
        text_hash,
    }
}

/// The runtime's element type; None for storage-only types.
pub(crate) fn dtype(d: DType) -> Option<rt::DType> {
    Some(match d {
        DType::F64 => rt::DType::F64,
        DType::F32 => rt::DType::F32,
        DType::F16 => rt::DType::F16,
        DType::BF16 => rt::DType::BF16,
        DType::I64 => rt::DType::I64,
        DType::I32 => rt::DType::I32,
        DType::I16 => rt::DType::I16,
        DType::I8 => rt::DType::I8,
        DType::U64 => rt::DType::U64,
        DType::U32 => rt::DType::U32,
        DType::U16 => rt::DType::U16,
        DType::U8 => rt::DType::U8,
        DType::Bool => rt::DType::Bool,
        _ => return None,
    })
}

struct Builder<'m> {
    module: &'m Module,
    manifest: rt::Manifest,
    kernels: Vec<Kernel>,
    /// Text of a kernel without its name -> its index.
    by_text: BTreeMap<String, u32>,
    names: BTreeSet<String>,
    weights: Vec<Stored>,
    /// Name and form -> index.
    weight_index: BTreeMap<(String, Option<Packed>), u32>,
}

/// A program under construction.
#[derive(Default)]
struct Steps {
    buffers: Vec<rt::Buffer>,
    steps: Vec<rt::Step>,
    of: BTreeMap<Value, u32>,
    /// Buffer of each weight of the file.
    weights: BTreeMap<u32, u32>,
    /// Weight of the file of each constant in each form.
    constants: BTreeMap<(Value, Option<Packed>), u32>,
    /// Regions lowered ahead.
    lowered: BTreeMap<NodeId, Result<lower::Lowered, Diag>>,
    /// Packed form of each weight that some kernel wants packed.
    forms: BTreeMap<Source, (Packed, Vec<Dim>)>,
}

/// A weight by its name, or a constant.
type Source = Result<String, Value>;

fn source(g: &Graph, v: Value) -> Source {
    match g.op_of(v.node) {
        Some(Op::Weight(w)) => Ok(w.name.clone()),
        _ => Err(v),
    }
}

/// True for an argument that a contraction reads: its schedule counts on how it lies.
fn is_summed(k: &Kernel, arg: u32) -> bool {
    k.stages().iter().any(|s| {
        matches!(s.kind, kernel::Kind::Contract { .. })
            && s.loads.iter().any(|l| l.from == kernel::Buf::Arg(arg))
    })
}

fn weights_among(g: &Graph, operands: &[Value]) -> Vec<bool> {
    operands.iter().map(|v| matches!(g.op_of(v.node), Some(Op::Weight(_) | Op::Constant(_)))).collect()
}

impl<'m> Builder<'m> {
    fn new(module: &'m Module) -> Builder<'m> {
        Builder {
            module,
            manifest: rt::Manifest::default(),
            kernels: Vec::new(),
            by_text: BTreeMap::new(),
            names: BTreeSet::new(),
            weights: Vec::new(),
            weight_index: BTreeMap::new(),
        }
    }

    fn entry(&mut self, name: &str, entry: &Entry) -> Result<rt::Entry, Vec<Diag>> {
        let g = &entry.body;
        let symbols = g.symbols.clone();
        let slot = |s: &str| symbols.slot(s);
        let one = |d: Diag| vec![d];
        let mut out = rt::Entry { name: name.to_string(), ..rt::Entry::default() };
        for (s, i) in symbols.iter() {
            out.symbols.push(rt::Symbol { name: s.to_string(), lo: i.lo, hi: i.hi, named: i.named });
        }
        for &id in g.inputs() {
            let Some(Op::Input(i)) = g.op_of(id) else { continue };
            out.inputs.push(self.input(g, id, i, &slot).map_err(one)?);
        }
        for o in g.outputs() {
            let ty = g.ty(o.value).cloned().unwrap_or_else(|| Type::scalar(DType::Bool));
            out.outputs.push(port(&o.name, &ty, None, &slot, &g.loc(o.value.node)).map_err(one)?);
        }
        let mut faults = unbound(g, &symbols);
        for guard in g.all_guards() {
            let place =
                if guard.at.place.is_empty() { String::new() } else { format!(" ({})", guard.at.place) };
            out.guards.push(rt::Guard {
                pred: formula::pred(&guard.pred, &slot).map_err(one)?,
                message: format!("{}{place}", guard.why),
            });
        }
        for v in &entry.variants {
            let body = match &v.body {
                Ok(g) => Ok(self.program(g, &symbols).unwrap_or_else(|d| set_aside(&mut faults, d))),
                Err(why) => Err(why.clone()),
            };
            out.variants.push(rt::Variant { when: Some(formula::pred(&v.when, &slot).map_err(one)?), body });
        }
        let body = self.program(g, &symbols).unwrap_or_else(|d| set_aside(&mut faults, d));
        out.variants.push(rt::Variant { when: None, body: Ok(body) });
        if faults.is_empty() { Ok(out) } else { Err(faults) }
    }

    fn input(
        &mut self,
        g: &Graph,
        id: NodeId,
        i: &Input,
        slot: &dyn Fn(&str) -> Option<usize>,
    ) -> Result<rt::Port, Diag> {
        let default = match &i.default {
            Some(w) => Some(self.weight(w, None)?),
            None => None,
        };
        port(&i.name, &Type::new(i.dtype, i.shape.clone()), default, slot, &g.loc(id))
    }

    fn weight(&mut self, name: &str, packed: Option<&Packed>) -> Result<u32, Diag> {
        if let Some(&w) = self.weight_index.get(&(name.to_string(), packed.cloned())) {
            return Ok(w);
        }
        let Some(t) = self.module.weights.get(name) else {
            return Err(Diag::error("E-CG-021", format!("the weight `{name}` is not in the module")));
        };
        self.add_weight(name, t.clone(), packed)
    }

    fn add_weight(&mut self, name: &str, t: Tensor, packed: Option<&Packed>) -> Result<u32, Diag> {
        let Some(d) = dtype(t.dtype) else {
            return Err(Diag::error(
                "E-CG-004",
                format!("weight `{name}`: code for type {} is not built yet", t.dtype),
            ));
        };
        let w = self.weights.len() as u32;
        self.manifest.weights.push(rt::WeightDecl {
            name: name.to_string(),
            dtype: d,
            dims: match packed {
                None => dims_of(&t),
                Some(p) => vec![p.len(&dims_of(&t))],
            },
            offset: 0,
            blocks: Vec::new(),
        });
        self.weights.push(Stored { tensor: t, packed: packed.cloned() });
        self.weight_index.insert((name.to_string(), packed.cloned()), w);
        Ok(w)
    }

    /// The steps of one graph; every fault found.
    fn program(&mut self, g: &Graph, symbols: &SymTable) -> Result<rt::Program, Vec<Diag>> {
        let mut s = Steps::default();
        let mut faults = Vec::new();
        let mut failed = BTreeSet::new();
        self.lower_regions(&mut s, g, symbols);
        for id in g.topo() {
            if g.operands(id).iter().any(|v| failed.contains(&v.node)) {
                // its operand's fault is the one to report
                failed.insert(id);
            } else if let Err(d) = self.node(&mut s, g, id, symbols) {
                faults.push(d.at(&g.loc(id)));
                failed.insert(id);
            }
        }
        if faults.is_empty()
            && let Err(d) = self.copies(&mut s, g)
        {
            faults.push(d);
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        lifetimes(&mut s);
        Ok(rt::Program {
            buffers: s.buffers,
            segments: vec![rt::Segment { binds: Vec::new(), steps: s.steps }],
        })
    }

    /// Lowers every region and notes in which form weights are wanted.
    fn lower_regions(&mut self, s: &mut Steps, g: &Graph, symbols: &SymTable) {
        for id in g.topo() {
            let Some(Op::Fused(_)) = g.op_of(id) else { continue };
            let Some(region) = g.node(id).and_then(|n| n.regions.first()) else { continue };
            let operands = g.operands(id);
            let low = lower_region(region, symbols, &weights_among(g, &operands));
            if let Ok(low) = &low {
                for (v, arg) in operands.iter().zip(&low.kernel.args) {
                    if let Some(p) = &arg.packed {
                        s.forms.entry(source(g, *v)).or_insert_with(|| (p.clone(), arg.dims.clone()));
                    }
                }
            }
            s.lowered.insert(id, low);
        }
    }

    fn node(&mut self, s: &mut Steps, g: &Graph, id: NodeId, symbols: &SymTable) -> Result<(), Diag> {
        let Some(node) = g.node(id) else { return Ok(()) };
        let v = Value { node: id, result: 0 };
        match &node.op {
            Op::Input(i) => {
                if i.state.is_some() {
                    return Err(unbuilt(g, id, "code for the state of"));
                }
                let at = g.inputs().iter().position(|n| *n == id).unwrap_or(0) as u32;
                s.add(g, v, rt::BufferKind::Input(at), symbols)
            }
            // Put in the file where something reads them, in the form it wants.
            Op::Weight(_) => Ok(()),
            Op::Constant(c) if c.shape.is_none() => Ok(()),
            Op::Constant(_) | Op::ConstDims(_) => {
                let mut region = Graph::region(symbols);
                let made = region.add(node.op.clone(), &[], Vec::new(), node.loc.clone())?;
                region.output("y", Value { node: made, result: 0 });
                self.launch(s, g, id, &region, symbols)
            }
            Op::Fused(_) => match node.regions.first() {
                Some(region) => self.launch(s, g, id, region, symbols),
                None => Err(Diag::error("E-CG-022", "a fused node has no region")),
            },
            _ => Err(unbuilt(g, id, "code for")),
        }
    }

    fn launch(
        &mut self,
        s: &mut Steps,
        g: &Graph,
        id: NodeId,
        region: &Graph,
        symbols: &SymTable,
    ) -> Result<(), Diag> {
        let operands = g.operands(id);
        let mut low = match s.lowered.remove(&id) {
            Some(low) => low?,
            None => lower_region(region, symbols, &weights_among(g, &operands))?,
        };
        // what has no code is said here, with its node, and not only when the kernel is compiled
        lower_kernel(&mut low.kernel.clone()).map_err(|d| Diag { at: g.loc(id), ..d })?;
        for (i, v) in operands.iter().enumerate() {
            // What reads a weight here and there reads the one form that is stored, if it has the same axes there.
            let summed = is_summed(&low.kernel, i as u32);
            let arg = &mut low.kernel.args[i];
            if arg.packed.is_none() && !summed && arg.role == kernel::Role::Const {
                let form = s.forms.get(&source(g, *v)).filter(|f| f.1 == arg.dims);
                arg.packed = form.map(|f| f.0.clone());
            }
        }
        let mut args = Vec::new();
        for (v, arg) in operands.iter().zip(&low.kernel.args) {
            args.push(self.buffer(s, g, *v, arg.packed.as_ref())?);
        }
        if let Some(input) = reuse::copied(&low.kernel) {
            // nothing to run: the result is the operand's bytes
            s.of.insert(Value { node: id, result: 0 }, args[input as usize]);
            return Ok(());
        }
        for r in 0..region.outputs().len() as u32 {
            let v = Value { node: id, result: r };
            let output = g.outputs().iter().position(|o| o.value == v);
            let kind = output.map_or(rt::BufferKind::Temp, |o| rt::BufferKind::Output(o as u32));
            s.add(g, v, kind, symbols)?;
            args.push(s.of[&v]);
        }
        let sites = low.sites.iter().zip(&low.kernel.sites).map(|(n, text)| site(region, *n, text)).collect();
        let kernel = self.share(low.kernel);
        let dims =
            low.dims.iter().map(|d| formula::expr(d, &|s| symbols.slot(s))).collect::<Result<_, _>>()?;
        s.steps.push(rt::Step::Launch { kernel, args, dims, sites, label: low.label });
        Ok(())
    }

    /// The buffer of a value, a weight's in the form given.
    fn buffer(&mut self, s: &mut Steps, g: &Graph, v: Value, packed: Option<&Packed>) -> Result<u32, Diag> {
        if let Some(&b) = s.of.get(&v) {
            return Ok(b);
        }
        let w = match g.op_of(v.node) {
            Some(Op::Weight(w)) => self.weight(&w.name, packed)?,
            Some(Op::Constant(c)) if c.shape.is_none() => {
                let key = (v, packed.cloned());
                match s.constants.get(&key) {
                    Some(&w) => w,
                    None => {
                        let name = format!("constant.{}", self.weights.len());
                        let w = self.add_weight(&name, c.value.clone(), packed)?;
                        s.constants.insert(key, w);
                        w
                    }
                }
            }
            _ => return Err(Diag::error("E-CG-023", "a launch reads a value without a buffer")),
        };
        if let Some(&b) = s.weights.get(&w) {
            return Ok(b);
        }
        let bytes: u64 = self.manifest.weights[w as usize].dims.iter().product();
        let dtype = self.manifest.weights[w as usize].dtype;
        let size = rt::Expr::Const((bytes * dtype.size() as u64) as i64);
        let b = s.buffers.len() as u32;
        let name = format!("{}.{b}", g.op_of(v.node).map_or("?", |o| o.name()));
        s.buffers.push(rt::Buffer {
            name,
            dtype,
            kind: rt::BufferKind::Weight(w),
            size,
            align: 64,
            alias: None,
            first: 0,
            last: 0,
        });
        s.weights.insert(w, b);
        Ok(b)
    }

    /// Outputs that are inputs, weights, or the same value as another output are copied.
    fn copies(&mut self, s: &mut Steps, g: &Graph) -> Result<(), Diag> {
        for (i, o) in g.outputs().iter().enumerate() {
            let src = self
                .buffer(s, g, o.value, None)
                .map_err(|d| d.note(format!("it is the output `{}`", o.name)))?;
            let from = &mut s.buffers[src as usize];
            if from.kind == rt::BufferKind::Temp {
                // the source of what only has another shape: it may as well be made where it ends
                from.kind = rt::BufferKind::Output(i as u32);
            }
            if from.kind == rt::BufferKind::Output(i as u32) {
                continue;
            }
            let kind = rt::BufferKind::Output(i as u32);
            let copy = rt::Buffer { name: format!("copy.{i}"), kind, ..from.clone() };
            let bytes = copy.size.clone();
            s.steps.push(rt::Step::Copy { src, dst: s.buffers.len() as u32, bytes });
            s.buffers.push(copy);
        }
        Ok(())
    }

    /// Index of a kernel of equal structure, added if there is none.
    fn share(&mut self, mut k: Kernel) -> u32 {
        let name = std::mem::take(&mut k.name);
        let text = kernel::text::print(&k);
        if let Some(&i) = self.by_text.get(&text) {
            return i;
        }
        let unique = (0..).map(|i| if i == 0 { name.clone() } else { format!("{name}_{i}") });
        k.name = unique.into_iter().find(|n| !self.names.contains(n)).unwrap_or(name);
        self.names.insert(k.name.clone());
        let i = self.kernels.len() as u32;
        self.kernels.push(k);
        self.by_text.insert(text, i);
        i
    }
}

impl Steps {
    fn add(&mut self, g: &Graph, v: Value, kind: rt::BufferKind, symbols: &SymTable) -> Result<(), Diag> {
        let ty = g.ty(v).ok_or_else(|| Diag::error("E-CG-003", "a value has no type"))?;
        let Some(d) = dtype(ty.dtype) else {
            return Err(Diag::error(
                "E-CG-004",
                format!("code for values of type {} is not built yet", ty.dtype),
            ));
        };
        let bytes = ty.numel() * Dim::from(d.size());
        let size = formula::expr(&bytes, &|s| symbols.slot(s))?;
        self.of.insert(v, self.buffers.len() as u32);
        let name = format!("{}.{}", g.op_of(v.node).map_or("?", |o| o.name()), self.buffers.len());
        self.buffers.push(rt::Buffer {
            name,
            dtype: d,
            kind,
            size,
            align: 64,
            alias: None,
            first: 0,
            last: 0,
        });
        Ok(())
    }
}

fn port(
    name: &str,
    ty: &Type,
    default: Option<u32>,
    slot: &dyn Fn(&str) -> Option<usize>,
    loc: &Loc,
) -> Result<rt::Port, Diag> {
    let Some(d) = dtype(ty.dtype) else {
        return Err(Diag::error(
            "E-CG-004",
            format!("`{name}`: code for values of type {} is not built yet", ty.dtype),
        )
        .at(loc));
    };
    let dims = ty.shape.iter().map(|d| formula::expr(d, slot)).collect::<Result<_, _>>()?;
    Ok(rt::Port { name: name.to_string(), dtype: d, dims, default })
}

/// Keeps what is wrong with a program, so that everything wrong with the entry is said at once.
fn set_aside(faults: &mut Vec<Diag>, found: Vec<Diag>) -> rt::Program {
    faults.extend(found);
    rt::Program { buffers: Vec::new(), segments: Vec::new() }
}

/// Every symbol in use must be some input's plain dim: code for sizes that data decides is not built yet.
fn unbound(g: &Graph, symbols: &SymTable) -> Vec<Diag> {
    let bound: BTreeSet<&str> = g
        .inputs()
        .iter()
        .filter_map(|i| g.node(*i))
        .flat_map(|n| &n.results[0].ty.shape)
        .filter_map(|d| d.as_sym().map(|s| &**s))
        .collect();
    let mut binders: BTreeMap<String, Loc> = BTreeMap::new();
    for id in g.topo() {
        if let Some(Op::BindDim(b)) = g.op_of(id) {
            let made = g.operands(id).first().map(|v| g.loc(v.node));
            binders.insert(b.symbol.clone(), made.unwrap_or_default());
        }
    }
    let open = symbols.iter().filter(|(s, _)| !bound.contains(&***s));
    let fault = |(s, _): (&std::sync::Arc<str>, _)| {
        let (what, at) = match binders.get(&**s) {
            Some(at) => (format!("the size `{s}` depends on data"), at.clone()),
            None => (format!("the size `{s}` is no input's dim of its own"), Loc::default()),
        };
        Diag::error("E-CG-024", what)
            .at(&at)
            .note("code for sizes that are known only while the model runs is not built yet")
            .help("the reference interpreter runs it; give the size as an input's dim")
    };
    open.map(fault).collect()
}

fn lifetimes(s: &mut Steps) {
    let mut seen: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for (at, step) in s.steps.iter().enumerate() {
        let touched: Vec<u32> = match step {
            rt::Step::Launch { args, .. } | rt::Step::Opaque { args, .. } => args.clone(),
            rt::Step::Copy { src, dst, .. } => vec![*src, *dst],
            rt::Step::If { .. } | rt::Step::Loop { .. } => Vec::new(),
        };
        for b in touched {
            let e = seen.entry(b).or_insert((at as u32, at as u32));
            e.1 = at as u32;
        }
    }
    for (i, b) in s.buffers.iter_mut().enumerate() {
        (b.first, b.last) = seen.get(&(i as u32)).copied().unwrap_or((0, 0));
    }
}

fn site(region: &Graph, id: NodeId, text: &str) -> rt::Site {
    let place = region.loc(id).place.to_string();
    // an importer's words hold both: node `Gather_3` (Gather)
    let named =
        place.strip_prefix("node `").and_then(|p| p.strip_suffix(')')).and_then(|p| p.rsplit_once("` ("));
    let own = region.op_of(id).map_or("?", |o| o.name());
    let (node, op) = named.unwrap_or((&place, own));
    rt::Site { node: node.into(), op: op.into(), source: String::new(), message: text.into() }
}
