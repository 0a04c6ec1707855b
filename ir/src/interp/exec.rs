//! Execution of graphs: nodes in order, values freed after their last use, structure ops and regions. Arithmetic is the
//! class evaluators' work.

use super::bind::{Bindings, check_guards, check_range, leaf};
use super::classes::{self, Job, copy_row};
use super::index::dim_error;
use super::value::Val;
use crate::class::Class;
use crate::diag::Diag;
use crate::graph::{Graph, Guard, NodeId, Value};
use crate::ops::{BindDim, Constant, Lowering, Op, Repeat, Template, Weight};
use crate::tensor::Tensor;
use crate::types::{DType, SymTable, Type};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Iterations after which a loop is given up.
const MAX_ITERATIONS: i64 = 10_000_000;

/// What a whole run shares.
pub(crate) struct Exec<'a> {
    /// Weights by name.
    pub(crate) weights: &'a dyn Fn(&str) -> Option<Tensor>,
    /// Bytes that live values may take together.
    pub(crate) budget: u64,
    /// Carry error bounds.
    pub(crate) bounded: bool,
    /// Guards of the entry, checked again when a symbol is bound on the way.
    pub(crate) guards: Vec<Guard>,
    live: Cell<u64>,
    /// Set when the error could change a size or a branch: nothing after it has a bound.
    unsure: Cell<bool>,
}

/// One node as the executor sees it.
pub(crate) struct Step<'a> {
    pub(crate) op: &'a Op,
    pub(crate) regions: &'a [Graph],
    pub(crate) symbols: &'a SymTable,
    pub(crate) ins: &'a [Type],
    pub(crate) outs: &'a [Type],
}

impl<'a> Exec<'a> {
    /// A run.
    pub(crate) fn new(weights: &'a dyn Fn(&str) -> Option<Tensor>, budget: u64, bounded: bool) -> Exec<'a> {
        let (live, unsure) = (Cell::new(0), Cell::new(false));
        Exec { weights, budget, bounded, guards: Vec::new(), live, unsure }
    }

    /// Shapes with sizes, within the memory budget.
    fn concrete(&self, types: &[Type], b: &Bindings) -> Result<Vec<(DType, Vec<usize>)>, Diag> {
        let mut out = Vec::with_capacity(types.len());
        for t in types {
            let mut shape = Vec::with_capacity(t.rank());
            let mut bytes: u64 = if self.bounded { 16 } else { 8 };
            for d in &t.shape {
                let v = d.eval(&leaf(b)).map_err(|e| dim_error(&e))?;
                let size = usize::try_from(v).map_err(|_| {
                    Diag::error("E-RUN-019", format!("a size `{d}` comes to {v}"))
                        .help("sizes must not be negative")
                })?;
                bytes = bytes.saturating_mul(size as u64);
                shape.push(size);
            }
            if bytes.saturating_add(self.live.get()) > self.budget {
                let msg = format!(
                    "a tensor {}{shape:?} would take {bytes} bytes with {} in use; the interpreter may take {}",
                    t.dtype,
                    self.live.get(),
                    self.budget
                );
                return Err(Diag::error("E-RUN-018", msg).help("use smaller sizes"));
            }
            out.push((t.dtype, shape));
        }
        Ok(out)
    }

    /// Runs a graph or region.
    pub(crate) fn graph(&self, g: &Graph, ins: &[Rc<Val>], b: &mut Bindings) -> Result<Vec<Rc<Val>>, Diag> {
        let mut env: BTreeMap<Value, Rc<Val>> = BTreeMap::new();
        let result = self.nodes(g, ins, b, &mut env);
        for (v, val) in &env {
            self.forget(g, *v, val);
        }
        result
    }

    fn forget(&self, g: &Graph, v: Value, val: &Val) {
        if !g.inputs().contains(&v.node) {
            self.live.set(self.live.get().saturating_sub(val.bytes()));
        }
    }

    fn nodes(
        &self,
        g: &Graph,
        ins: &[Rc<Val>],
        b: &mut Bindings,
        env: &mut BTreeMap<Value, Rc<Val>>,
    ) -> Result<Vec<Rc<Val>>, Diag> {
        let order = g.topo();
        let mut uses: BTreeMap<Value, usize> = BTreeMap::new();
        let reads = order.iter().flat_map(|&id| g.operands(id)).chain(g.outputs().iter().map(|o| o.value));
        reads.for_each(|v| *uses.entry(v).or_default() += 1);
        for (i, &id) in g.inputs().iter().enumerate() {
            let val = ins.get(i).ok_or_else(|| classes::fault(format!("region input {i} has no value")))?;
            env.insert(Value { node: id, result: 0 }, val.clone());
        }
        for id in order {
            if g.inputs().contains(&id) {
                continue;
            }
            let operands = g.operands(id);
            let vals = self.one(g, id, &operands, env, b)?;
            for (r, mut v) in vals.into_iter().enumerate() {
                if self.bounded && self.unsure.get() {
                    Rc::make_mut(&mut v).unbounded();
                }
                let key = Value { node: id, result: r as u32 };
                if uses.contains_key(&key) {
                    self.live.set(self.live.get().saturating_add(v.bytes()));
                    env.insert(key, v);
                }
            }
            for v in operands {
                if let Some(n) = uses.get_mut(&v) {
                    *n -= 1;
                    if *n == 0
                        && let Some(val) = env.remove(&v)
                    {
                        self.forget(g, v, &val);
                    }
                }
            }
        }
        let missing = || classes::fault("an output has no value (a cycle?)");
        g.outputs().iter().map(|o| env.get(&o.value).cloned().ok_or_else(missing)).collect()
    }

    fn one(
        &self,
        g: &Graph,
        id: NodeId,
        operands: &[Value],
        env: &BTreeMap<Value, Rc<Val>>,
        b: &mut Bindings,
    ) -> Result<Vec<Rc<Val>>, Diag> {
        let Some(node) = g.node(id) else { return Err(classes::fault("a node is missing")) };
        let missing = || classes::fault(format!("`{}` reads a value that does not exist", node.op.name()));
        let ins: Vec<Rc<Val>> =
            operands.iter().map(|v| env.get(v).cloned().ok_or_else(missing)).collect::<Result<_, _>>()?;
        let in_types: Vec<Type> =
            operands.iter().map(|v| g.ty(*v).cloned().ok_or_else(missing)).collect::<Result<_, _>>()?;
        let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
        let step =
            Step { op: &node.op, regions: &node.regions, symbols: &g.symbols, ins: &in_types, outs: &outs };
        self.step(&step, &ins, b).map_err(|d| {
            let d = d.at(&node.loc);
            if d.message.starts_with('`') {
                d
            } else {
                Diag { message: format!("`{}`: {}", node.op.name(), d.message), ..d }
            }
        })
    }

    /// Evaluates one node.
    pub(crate) fn step(&self, s: &Step<'_>, ins: &[Rc<Val>], b: &mut Bindings) -> Result<Vec<Rc<Val>>, Diag> {
        let one = |v: Val| vec![Rc::new(v)];
        match s.op {
            Op::Constant(c) => Ok(one(self.constant(c, s, b)?)),
            Op::Weight(w) => Ok(one(self.weight(w, s, b)?)),
            Op::BindDim(d) => self.bind_dim(d, s, ins, b),
            Op::Fused(_) => self.region(s, 0, ins, b),
            Op::Cond(_) => {
                let (c, captured) =
                    ins.split_first().ok_or_else(|| classes::fault("a condition is missing"))?;
                self.unsure.set(self.unsure.get() || c.error(0) > 0.0);
                self.region(s, if c.int() == Some(0) { 1 } else { 0 }, captured, b)
            }
            Op::Repeat(r) => self.repeat(r, s, ins, b),
            _ => match s.op.lower(s.ins, s.outs, s.symbols)? {
                Lowering::Class(class) => self.class(&class, s, ins, b),
                Lowering::Template(Template::Whole(c), _) => self.class(&Class::Opaque(c), s, ins, b),
                Lowering::Decompose(g) | Lowering::Template(_, g) => {
                    let vals = self.graph(&g, ins, b)?;
                    self.same_shapes(s, &vals, b)?;
                    Ok(vals)
                }
                Lowering::Structure => Err(classes::fault("this op cannot be run by itself")),
            },
        }
    }

    fn class(
        &self,
        class: &Class,
        s: &Step<'_>,
        ins: &[Rc<Val>],
        b: &Bindings,
    ) -> Result<Vec<Rc<Val>>, Diag> {
        let outs = self.concrete(s.outs, b)?;
        let refs: Vec<&Val> = ins.iter().map(|v| &**v).collect();
        let job = Job { ins: &refs, outs: &outs, leaf: &leaf(b), bounded: self.bounded };
        Ok(classes::eval(class, &job)?.into_iter().map(Rc::new).collect())
    }

    fn same_shapes(&self, s: &Step<'_>, vals: &[Rc<Val>], b: &Bindings) -> Result<(), Diag> {
        let want = self.concrete(s.outs, b)?;
        let fits = |(v, w): (&Rc<Val>, &(DType, Vec<usize>))| v.dtype == w.0 && v.shape == w.1;
        if vals.len() != want.len() || !vals.iter().zip(&want).all(fits) {
            let have: Vec<_> = vals.iter().map(|v| format!("{}{:?}", v.dtype, v.shape)).collect();
            return Err(classes::fault(format!("results {have:?} where {want:?} are declared")));
        }
        Ok(())
    }

    fn region(
        &self,
        s: &Step<'_>,
        i: usize,
        ins: &[Rc<Val>],
        b: &mut Bindings,
    ) -> Result<Vec<Rc<Val>>, Diag> {
        let g = s.regions.get(i).ok_or_else(|| classes::fault(format!("region {i} is missing")))?;
        let vals = self.graph(g, ins, b)?;
        self.same_shapes(s, &vals, b)?;
        Ok(vals)
    }

    fn constant(&self, c: &Constant, s: &Step<'_>, b: &Bindings) -> Result<Val, Diag> {
        let shapes = self.concrete(s.outs, b)?;
        let value = Val::from_tensor(&c.value)?;
        match (&c.shape, shapes.first()) {
            (Some(_), Some((dtype, shape))) => {
                let mut out = Val::zeros(*dtype, shape)?;
                let n = out.numel();
                copy_row(&mut out, (0, 1), &value, (0, 0), n);
                Ok(out)
            }
            _ => Ok(value),
        }
    }

    fn weight(&self, w: &Weight, s: &Step<'_>, b: &Bindings) -> Result<Val, Diag> {
        self.concrete(s.outs, b)?;
        let missing = || {
            Diag::error("E-RUN-020", format!("weight \"{}\" is not in the store", w.name))
                .help("load the module together with its weights")
        };
        let t = (self.weights)(&w.name).ok_or_else(missing)?;
        let want = Type::new(w.dtype, w.shape.clone());
        if t.ty() != want {
            let msg = format!("weight \"{}\" is {} in the store, {want} in the graph", w.name, t.ty());
            return Err(Diag::error("E-RUN-020", msg).help("load the weights that belong to this module"));
        }
        Val::from_tensor(&t)
    }

    fn bind_dim(
        &self,
        d: &BindDim,
        s: &Step<'_>,
        ins: &[Rc<Val>],
        b: &mut Bindings,
    ) -> Result<Vec<Rc<Val>>, Diag> {
        let x = ins.first().ok_or_else(|| classes::fault("the size is missing"))?;
        let v = x.int().ok_or_else(|| classes::fault("the size is not one integer"))?;
        check_range(s.symbols, &d.symbol, v, "computed on the way")?;
        self.unsure.set(self.unsure.get() || x.error(0) > 0.0);
        b.insert(d.symbol.as_str().into(), v);
        check_guards(&self.guards, b, Some(&d.symbol))?;
        Ok(vec![x.clone()])
    }

    fn repeat(
        &self,
        r: &Repeat,
        s: &Step<'_>,
        ins: &[Rc<Val>],
        b: &mut Bindings,
    ) -> Result<Vec<Rc<Val>>, Diag> {
        let carried = usize::try_from(r.carried).unwrap_or(usize::MAX);
        let (Some([trips, go]), Some(body)) = (ins.get(..2), s.regions.first()) else {
            return Err(classes::fault("a loop without a count, a condition or a body"));
        };
        if carried > ins.len() - 2 {
            return Err(classes::fault("a loop carries more values than it has"));
        }
        let mut sure = trips.error(0) == 0.0 && go.error(0) == 0.0;
        let (limit, mut go) = (trips.int().unwrap_or(0), go.clone());
        let mut state: Vec<Rc<Val>> = ins[2..2 + carried].to_vec();
        let mut scans: Vec<Vec<Rc<Val>>> = vec![Vec::new(); s.outs.len().saturating_sub(carried)];
        let mut i = 0;
        while i < limit && go.int() != Some(0) {
            if i >= MAX_ITERATIONS {
                let msg = format!("the loop has not ended after {MAX_ITERATIONS} iterations");
                return Err(Diag::error("E-RUN-021", msg)
                    .help("give a smaller trip count, or a condition that ends it"));
            }
            let mut args =
                vec![Rc::new(Val::from_tensor(&Tensor::from_ints(DType::I64, &[], &[i]))?), go.clone()];
            args.extend(state.iter().cloned());
            args.extend(ins[2 + carried..].iter().cloned());
            let mut outs = self.graph(body, &args, b)?.into_iter();
            go = outs.next().ok_or_else(|| classes::fault("a loop body gives no condition"))?;
            sure &= go.error(0) == 0.0;
            state = outs.by_ref().take(carried).collect();
            for (list, v) in scans.iter_mut().zip(outs) {
                list.push(v);
            }
            i += 1;
        }
        self.unsure.set(self.unsure.get() || !sure);
        let want = self.concrete(s.outs, b)?;
        let mut out = state;
        for (list, (dtype, shape)) in scans.iter().zip(&want[carried.min(want.len())..]) {
            out.push(Rc::new(stack(list, *dtype, shape, i)?));
        }
        self.same_shapes(s, &out, b)?;
        Ok(out)
    }
}

/// The values of all iterations on a new axis 0.
fn stack(list: &[Rc<Val>], dtype: DType, shape: &[usize], iterations: i64) -> Result<Val, Diag> {
    let n = shape.first().copied().unwrap_or(0);
    if n as i64 != iterations {
        let msg = format!("the loop ran {iterations} times; its stacked results are declared for {n}");
        return Err(
            Diag::error("E-RUN-022", msg).help("give a trip count and a condition that agree with `trip`")
        );
    }
    let mut out = Val::zeros(dtype, shape)?;
    if list.iter().any(|v| v.err.is_some()) {
        out.err = Some(vec![0.0; out.numel()]);
    }
    let row: usize = shape.iter().skip(1).product();
    for (k, v) in list.iter().enumerate() {
        if v.dtype != dtype || v.shape[..] != shape[1..] {
            return Err(classes::fault("a loop's results differ between iterations"));
        }
        copy_row(&mut out, (k * row, 1), v, (0, 1), row);
    }
    Ok(out)
}
