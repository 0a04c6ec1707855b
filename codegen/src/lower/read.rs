//! Reading a value at given indices inside a stage: inlines maps, views and gathers down to loads. Keeps the stage under
//! construction and the kernel's buffers. No class that reduces is handled here.

use super::plan::Plan;
use super::{Cx, unbuilt};
use crate::kernel::{Buf, Item, Kernel, Kind, Load, Local, LocalAxis, Mode, Stage, Store};
use std::collections::BTreeMap;
use tgc_ir::class::{Class, Combine, Index, View, broadcast_index};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{NodeId, Value};
use tgc_ir::ops::Op;
use tgc_ir::scalar::{Bin, ENode, Expr, Scalar, Un};
use tgc_ir::types::{Atom, DType, Dim, Pred};

/// A stage under construction.
pub(crate) struct Building {
    pub(crate) stage: Stage,
    /// Ranges of the labels in scope: label -> extent.
    pub(crate) extents: BTreeMap<u32, Dim>,
    /// Nodes of what has been computed: a value read twice at one place is expanded once, or chains of shared values
    /// would take exponential time.
    done: BTreeMap<(Value, Vec<Dim>, Pred), u32>,
}

pub(crate) struct Reader<'a> {
    pub(crate) cx: &'a Cx<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) kernel: &'a mut Kernel,
    locals: BTreeMap<Value, u32>,
    sites: Vec<NodeId>,
    next_label: u32,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cx: &'a Cx<'a>, plan: &'a Plan, kernel: &'a mut Kernel) -> Reader<'a> {
        let next_label = kernel.grid.len() as u32;
        Reader { cx, plan, kernel, locals: BTreeMap::new(), sites: Vec::new(), next_label }
    }

    /// Nodes of the trap sites.
    pub(crate) fn sites(&self) -> Vec<NodeId> {
        self.sites.clone()
    }

    /// A label not used yet.
    pub(crate) fn fresh(&mut self) -> u32 {
        self.next_label += 1;
        self.next_label - 1
    }

    /// Starts a stage over the axes of `v`: its labels in axis order, the stage iterating over them.
    pub(crate) fn start(&mut self, name: &str, v: Value) -> (Building, Vec<Dim>) {
        let mut b = Building {
            stage: Stage {
                name: name.to_string(),
                when: Pred::True,
                over: Vec::new(),
                inner: Vec::new(),
                red: Vec::new(),
                kind: Kind::Map,
                loads: Vec::new(),
                expr: Expr::default(),
                post: None,
                stores: Vec::new(),
            },
            extents: self.kernel.grid.iter().enumerate().map(|(i, d)| (i as u32, d.clone())).collect(),
            done: BTreeMap::new(),
        };
        let labels = self.labels(&mut b, v);
        (b, labels)
    }

    /// Labels for the axes of `v`, added to the stage's iteration.
    pub(crate) fn labels(&mut self, b: &mut Building, v: Value) -> Vec<Dim> {
        let ty = self.cx.ty(v);
        let mut labels = Vec::new();
        for (axis, extent) in self.cx.axes(v).into_iter().zip(&ty.shape) {
            labels.push(match axis {
                Some(g) => {
                    b.stage.over.push(g as u32);
                    Dim::label(g as u32)
                }
                None if extent.is(1) => Dim::from(0),
                None => {
                    let l = self.fresh();
                    b.stage.inner.push((l, extent.clone()));
                    b.extents.insert(l, extent.clone());
                    Dim::label(l)
                }
            });
        }
        b.stage.over.sort_unstable();
        labels
    }

    /// A reduction label.
    pub(crate) fn reduction(&mut self, b: &mut Building, extent: &Dim) -> Dim {
        let l = self.fresh();
        b.stage.red.push((l, extent.clone()));
        b.extents.insert(l, extent.clone());
        Dim::label(l)
    }

    /// Ends a stage whose results are those of node `id`: stores to locals (where others read them) and outputs.
    pub(crate) fn end(&mut self, mut b: Building, id: NodeId, labels: &[Dim]) {
        let results = self.cx.region.node(id).map_or(0, |n| n.results.len());
        for r in 0..results as u32 {
            let v = Value { node: id, result: r };
            for to in self.targets(v) {
                b.stage.stores.push(Store {
                    to,
                    index: labels.to_vec(),
                    value: r,
                    op: Combine::Set,
                    site: 0,
                });
            }
        }
        self.kernel.body.push(Item::Stage(b.stage));
    }

    /// Buffers that hold value `v`: its local if something reads it, and the outputs it is.
    pub(crate) fn targets(&mut self, v: Value) -> Vec<Buf> {
        let mut to = Vec::new();
        if !self.cx.region.users(v).is_empty() {
            to.push(Buf::Local(self.local(v)));
        }
        let inputs = self.cx.region.inputs().len();
        for (i, o) in self.cx.region.outputs().iter().enumerate() {
            if o.value == v {
                to.push(Buf::Arg((inputs + i) as u32));
            }
        }
        to
    }

    /// The local buffer of `v`, made on first use.
    pub(crate) fn local(&mut self, v: Value) -> u32 {
        if let Some(&l) = self.locals.get(&v) {
            return l;
        }
        let ty = self.cx.ty(v);
        let axes = self.cx.axes(v);
        let l = self.new_local(ty.dtype, &axes, &ty.shape);
        self.locals.insert(v, l);
        l
    }

    /// A new local buffer with these axes.
    pub(crate) fn new_local(&mut self, dtype: DType, axes: &[Option<usize>], shape: &[Dim]) -> u32 {
        let axis = |(a, d): (&Option<usize>, &Dim)| match a {
            Some(g) => LocalAxis::Tile { grid: *g as u32, lo: 0, hi: 0 },
            None => LocalAxis::Full(d.clone()),
        };
        let l = self.kernel.locals.len() as u32;
        let axes = axes.iter().zip(shape).map(axis).collect();
        self.kernel.locals.push(Local { name: format!("t{l}"), dtype, axes });
        l
    }

    /// A trap site of node `id`, 1-based.
    pub(crate) fn site(&mut self, id: NodeId) -> u32 {
        let op = self.cx.region.op_of(id).map_or("?", |o| o.name());
        self.sites.push(id);
        self.kernel.sites.push(format!("{op}: index out of range"));
        self.sites.len() as u32
    }

    /// Simplifies an index with the ranges of the labels in scope.
    pub(crate) fn simplify(&self, b: &Building, d: &Dim) -> Dim {
        d.simplify(&|a| match a {
            Atom::Label(l) => match b.extents.get(l) {
                Some(e) => (0, self.cx.symbols.range(e).1 - 1),
                None => (-Dim::FAR, Dim::FAR),
            },
            a => self.cx.symbols.atom_range(a),
        })
    }

    /// Node of the stage's expression that is `v` at `index`, under condition `when` (elsewhere any value will do).
    pub(crate) fn read(
        &mut self,
        b: &mut Building,
        v: Value,
        index: &[Dim],
        when: &Pred,
    ) -> Result<u32, Diag> {
        let region = self.cx.region;
        if let Some(i) = region.inputs().iter().position(|n| *n == v.node) {
            return Ok(self.load(b, Buf::Arg(i as u32), index, when));
        }
        if self.plan.is_stored(v.node) {
            let l = self.local(v);
            return Ok(self.load(b, Buf::Local(l), index, when));
        }
        self.compute(b, v, index, when)
    }

    /// As [`Reader::read`], but computes a value that has a buffer of its own too.
    pub(crate) fn compute(
        &mut self,
        b: &mut Building,
        v: Value,
        index: &[Dim],
        when: &Pred,
    ) -> Result<u32, Diag> {
        let key = (v, index.to_vec(), when.clone());
        if let Some(&n) = b.done.get(&key) {
            return Ok(n);
        }
        let n = self.expand(b, v, index, when)?;
        b.done.insert(key, n);
        Ok(n)
    }

    fn expand(&mut self, b: &mut Building, v: Value, index: &[Dim], when: &Pred) -> Result<u32, Diag> {
        let region = self.cx.region;
        if region.inputs().contains(&v.node) {
            return self.read(b, v, index, when);
        }
        if let Some(Op::Constant(c)) = region.op_of(v.node) {
            let splat = c.shape.is_some();
            let shape = if splat { Vec::new() } else { c.value.shape.clone() };
            return Ok(constant(&mut b.stage.expr, &c.value.scalars().collect::<Vec<_>>(), &shape, index));
        }
        match self.cx.classes.get(&v.node) {
            Some(Class::Map(m)) => {
                let out = self.cx.ty(v).shape;
                let mut args = Vec::new();
                for o in region.operands(v.node) {
                    let map = broadcast_index(&self.cx.ty(o).shape, &out);
                    let at: Vec<Dim> = map.iter().map(|d| at_labels(d, index)).collect();
                    args.push(self.read(b, o, &at, when)?);
                }
                let expr = relabel(&m.expr, index);
                Ok(b.stage.expr.inline(&expr, &args)[v.result as usize])
            }
            Some(Class::View(view)) => self.read_view(b, v, view, index, when),
            Some(Class::Index(ix)) if ix.scatter.is_none() => self.read_gather(b, v, ix, index, when),
            _ => Err(unbuilt(region, v.node, "an inlined read of")),
        }
    }

    fn load(&mut self, b: &mut Building, from: Buf, index: &[Dim], when: &Pred) -> u32 {
        let index = self.place(b, from, index);
        let dtype = self.kernel.dtype(from);
        let zero = Scalar::from_int(dtype, 0);
        let mode = if *when == Pred::True { Mode::Proved } else { Mode::Fill(when.clone(), zero) };
        push_load(&mut b.stage, Load { from, index, mode }, dtype)
    }

    /// Index expressions for a buffer, simplified.
    fn place(&self, b: &Building, from: Buf, index: &[Dim]) -> Vec<Dim> {
        let mut index: Vec<Dim> = index.iter().map(|d| self.simplify(b, d)).collect();
        if let Buf::Local(l) = from {
            // a grid axis of extent 1 may be read at the number 0, which is its label's only value
            for (d, axis) in index.iter_mut().zip(&self.kernel.locals[l as usize].axes) {
                if let LocalAxis::Tile { grid, .. } = axis {
                    *d = Dim::label(*grid);
                }
            }
        }
        index
    }

    fn read_view(
        &mut self,
        b: &mut Building,
        v: Value,
        view: &View,
        index: &[Dim],
        when: &Pred,
    ) -> Result<u32, Diag> {
        let operands = self.cx.region.operands(v.node);
        let out = self.cx.ty(v);
        let mut chosen: Vec<(Pred, u32)> = Vec::new();
        for p in &view.pieces {
            let mut tests = Vec::new();
            for (k, x) in index.iter().enumerate() {
                if !p.lo[k].is(0) {
                    tests.push(Pred::Le(p.lo[k].clone(), x.clone()));
                }
                if p.hi[k] != out.shape[k] {
                    tests.push(Pred::Le(x.clone() + Dim::from(1), p.hi[k].clone()));
                }
            }
            let inside = Pred::all(tests);
            let both = Pred::all([when.clone(), inside.clone()]);
            let at: Vec<Dim> = p.index.iter().map(|d| at_labels(d, index)).collect();
            let node = self.read(b, operands[p.operand], &at, &both)?;
            chosen.push((inside, node));
        }
        let e = &mut b.stage.expr;
        let mut rest = match view.fill {
            Some(f) => e.constant(f),
            None => match chosen.pop() {
                Some((_, n)) => n,
                None => e.constant(Scalar::from_int(out.dtype, 0)),
            },
        };
        for (inside, node) in chosen.into_iter().rev() {
            rest = if inside == Pred::True {
                node
            } else {
                let c = condition(&mut b.stage.expr, &inside);
                b.stage.expr.select(c, node, rest)
            };
        }
        Ok(rest)
    }

    fn read_gather(
        &mut self,
        b: &mut Building,
        v: Value,
        ix: &Index,
        index: &[Dim],
        when: &Pred,
    ) -> Result<u32, Diag> {
        let operands = self.cx.region.operands(v.node);
        let vals = self.index_values(b, &operands, ix, index, when)?;
        let at: Vec<Dim> = ix.at.iter().map(|d| at_vals(d, index, &vals)).collect();
        let from = match self.cx.region.inputs().iter().position(|n| *n == operands[0].node) {
            Some(i) => Buf::Arg(i as u32),
            None => Buf::Local(self.local(operands[0])),
        };
        let site = self.site(v.node);
        let at = self.place(b, from, &at);
        let dtype = self.kernel.dtype(from);
        Ok(push_load(&mut b.stage, Load { from, index: at, mode: Mode::Trap(site, when.clone()) }, dtype))
    }

    /// Nodes of the index operands' values, negative ones counted from the end.
    pub(crate) fn index_values(
        &mut self,
        b: &mut Building,
        operands: &[Value],
        ix: &Index,
        index: &[Dim],
        when: &Pred,
    ) -> Result<Vec<u32>, Diag> {
        let mut vals = Vec::new();
        for (operand, at, bound) in &ix.reads {
            let at: Vec<Dim> = at.iter().map(|d| at_labels(d, index)).collect();
            let raw = self.read(b, operands[*operand], &at, when)?;
            let e = &mut b.stage.expr;
            let raw = e.cast(DType::I64, raw);
            let zero = e.constant(Scalar::from_int(DType::I64, 0));
            let negative = e.bin(Bin::Lt, raw, zero);
            let bound = e.dim(bound.clone());
            let wrapped = e.bin(Bin::Add, raw, bound);
            vals.push(e.select(negative, wrapped, raw));
        }
        Ok(vals)
    }
}

/// Adds a load unless an equal one is there; gives its node.
pub(crate) fn push_load(stage: &mut Stage, load: Load, dtype: DType) -> u32 {
    let at = stage.loads.iter().position(|l| *l == load).unwrap_or_else(|| {
        stage.loads.push(load);
        stage.loads.len() - 1
    });
    stage.expr.arg(at as u32, dtype)
}

/// `d` with label `#i` replaced by `index[i]`.
pub(crate) fn at_labels(d: &Dim, index: &[Dim]) -> Dim {
    d.subst(&|a| match a {
        Atom::Label(i) => index.get(*i as usize).cloned(),
        _ => None,
    })
}

/// As [`at_labels`], and `$k` replaced by the node `vals[k]`.
pub(crate) fn at_vals(d: &Dim, index: &[Dim], vals: &[u32]) -> Dim {
    d.subst(&|a| match a {
        Atom::Label(i) => index.get(*i as usize).cloned(),
        Atom::Val(k) => vals.get(*k as usize).map(|&n| Dim::val(n)),
        _ => None,
    })
}

fn relabel(e: &Expr, index: &[Dim]) -> Expr {
    let mut e = e.clone();
    for (n, _) in &mut e.nodes {
        if let ENode::Dim(d) = n {
            *d = at_labels(d, index);
        }
    }
    e
}

/// A bool node that is true where `p` holds.
pub(crate) fn condition(e: &mut Expr, p: &Pred) -> u32 {
    let list = |e: &mut Expr, v: &[Pred], op: Bin, empty: bool| {
        let mut acc = e.constant(Scalar::bool(empty));
        for (i, p) in v.iter().enumerate() {
            let c = condition(e, p);
            acc = if i == 0 { c } else { e.bin(op, acc, c) };
        }
        acc
    };
    let compare = |e: &mut Expr, op: Bin, a: &Dim, b: &Dim| {
        let (a, b) = (e.dim(a.clone()), e.dim(b.clone()));
        e.bin(op, a, b)
    };
    match p {
        Pred::True => e.constant(Scalar::bool(true)),
        Pred::Eq(a, b) => compare(e, Bin::Eq, a, b),
        Pred::Le(a, b) => compare(e, Bin::Le, a, b),
        Pred::Broadcastable(a, b) => {
            let one = Dim::from(1);
            let any =
                [Pred::Eq(a.clone(), b.clone()), Pred::Eq(a.clone(), one.clone()), Pred::Eq(b.clone(), one)];
            list(e, &any, Bin::Or, false)
        }
        Pred::And(v) => list(e, v, Bin::And, true),
        Pred::Or(v) => list(e, v, Bin::Or, false),
        Pred::Not(p) => {
            let c = condition(e, p);
            e.un(Un::Not, c)
        }
    }
}

/// A small constant at an index: a chain of selections over the linear position.
fn constant(e: &mut Expr, elems: &[Scalar], shape: &[usize], index: &[Dim]) -> u32 {
    let mut lin = Dim::from(0);
    for (x, &d) in index.iter().zip(shape) {
        lin = lin * Dim::from(d) + x.clone();
    }
    let Some((last, others)) = elems.split_last() else {
        return e.constant(Scalar::bool(false));
    };
    let mut node = e.constant(*last);
    if shape.is_empty() {
        return node;
    }
    let at = e.dim(lin);
    for (i, s) in others.iter().enumerate().rev() {
        if s == last && others[i..].iter().all(|o| o == last) {
            continue;
        }
        let (here, v) = (e.constant(Scalar::from_int(DType::I64, i as i128)), e.constant(*s));
        let hit = e.bin(Bin::Eq, at, here);
        node = e.select(hit, v, node);
    }
    node
}
