//! Decides whether a region is one kernel, and over which grid of parallel tiles: the one place that fusion, verifier
//! and code generation ask. No rewriting and no schedule lives here.
//!
//! Axes of inner values that are read at identity are united. An axis read by a summed or window label, or through any
//! other index map, is *full*: every tile holds all of it. The grid is what remains of the axes that every output and
//! every reducing node spans. Region inputs and constants are read freely.
//!
//! An axis of extent 1 may be in the grid although its reader's index expression is the number 0: both say the same.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::class::{Class, Contract, Cumulate, Index, Reduce};
use crate::diag::Diag;
use crate::graph::{Graph, NodeId, Value};
use crate::ops::{Lowering, Op};
use crate::types::{Atom, Dim, Type};
use std::collections::{BTreeMap, BTreeSet};

/// How a region is cut into tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Tiling {
    /// Extents of the grid axes, in the order of the first output's axes.
    pub grid: Vec<Dim>,
    /// For each value computed in the region: the grid axis of each of its axes, None for full ones.
    pub axes: BTreeMap<Value, Vec<Option<usize>>>,
}

/// The tiling of a region; None when it is not one kernel (or holds composites or region ops, which never are).
pub fn tiling(region: &Graph) -> Result<Option<Tiling>, Diag> {
    let nodes: Vec<NodeId> = region.topo().into_iter().filter(|&id| is_compute(region, id)).collect();
    let mut axes = Axes::default();
    for &id in &nodes {
        let Some(class) = class_of(region, id)? else { return Ok(None) };
        let alone = match &class {
            Class::Opaque(_) | Class::Cumulate(_) => true,
            Class::Index(ix) => ix.scatter.is_some(),
            Class::Map(_) | Class::Reduce(_) | Class::Contract(_) | Class::View(_) | Class::Window(_) => false,
        };
        if alone && nodes.len() > 1 {
            return Ok(None);
        }
        axes.node(region, id, &class);
    }
    axes.forbid_diagonals();
    Ok(axes.grid(region, nodes.len() == 1))
}

fn is_compute(region: &Graph, id: NodeId) -> bool {
    region.op_of(id).is_some_and(|op| !matches!(op, Op::Input(_) | Op::Constant(_)))
}

fn class_of(region: &Graph, id: NodeId) -> Result<Option<Class>, Diag> {
    let Some(node) = region.node(id) else { return Ok(None) };
    let ins: Vec<Type> = region.operands(id).iter().filter_map(|v| region.ty(*v).cloned()).collect();
    let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
    match node.op.lower(&ins, &outs, &region.symbols).map_err(|d| d.at(&node.loc))? {
        Lowering::Class(c) => Ok(Some(c)),
        Lowering::Decompose(_) | Lowering::Template(..) | Lowering::Structure => Ok(None),
    }
}

fn as_label(e: &Dim) -> Option<u32> {
    if let Some(Atom::Label(l)) = e.as_atom() { Some(*l) } else { None }
}

/// Union-find over the axes of inner values.
#[derive(Default)]
struct Axes {
    /// First axis number of each inner value, and its rank.
    base: BTreeMap<Value, (usize, usize)>,
    parent: Vec<usize>,
    extent: Vec<Dim>,
    full: Vec<bool>,
    /// One result of each reducing node.
    reducing: Vec<Value>,
}

impl Axes {
    fn node(&mut self, g: &Graph, id: NodeId, class: &Class) {
        let Some(node) = g.node(id) else { return };
        let out = Value { node: id, result: 0 };
        for (r, fact) in node.results.iter().enumerate() {
            self.value(Value { node: id, result: r as u32 }, &fact.ty.shape);
        }
        if !matches!(class, Class::Opaque(_)) {
            for r in 1..node.results.len() {
                self.unite_all(out, Value { node: id, result: r as u32 });
            }
        }
        let operands = g.operands(id);
        let same = |l: u32| Some(l as usize);
        match class {
            Class::Map(_) => self.map(g, &operands, out),
            Class::View(v) => {
                for p in &v.pieces {
                    self.read(operands.get(p.operand), &p.index, &same, out);
                }
            }
            Class::Reduce(r) => self.reduce(r, &operands, out),
            Class::Contract(c) => self.contract(c, &operands, out),
            Class::Window(w) => {
                let rank = self.rank(out) as u32;
                let label = |l: u32| (l < rank).then_some(l as usize);
                self.read(operands.first(), &w.access.index, &label, out);
                self.reducing.push(out);
            }
            Class::Index(ix) => self.index(g, ix, &operands, out),
            Class::Cumulate(c) => self.cumulate(c, out),
            Class::Opaque(_) => self.all_full(g, id),
        }
    }

    fn map(&mut self, g: &Graph, operands: &[Value], out: Value) {
        let to = g.ty(out).map(|t| t.shape.clone()).unwrap_or_default();
        for v in operands {
            let Some(from) = g.ty(*v).map(|t| &t.shape) else { continue };
            let skip = to.len().saturating_sub(from.len());
            let mut index = crate::class::broadcast_index(from, &to);
            for (i, e) in index.iter_mut().enumerate() {
                if from[i].is(1) && to[i + skip].is(1) {
                    *e = Dim::label((i + skip) as u32);
                }
            }
            self.read(Some(v), &index, &|l| Some(l as usize), out);
        }
    }

    fn reduce(&mut self, r: &Reduce, operands: &[Value], out: Value) {
        for v in operands {
            let Some(&(at, rank)) = self.base.get(v) else { continue };
            let mut j = 0;
            for i in 0..rank {
                if r.axes.contains(&i) {
                    self.make_full(at + i);
                    j += usize::from(r.keepdims);
                } else {
                    self.unite(at + i, out, j);
                    j += 1;
                }
            }
        }
        self.reducing.push(out);
    }

    fn contract(&mut self, c: &Contract, operands: &[Value], out: Value) {
        let label = |l: u32| c.out.iter().position(|o| *o == l);
        for (i, a) in c.operands.iter().enumerate() {
            self.read(operands.get(i), &a.index, &label, out);
        }
        self.reducing.push(out);
    }

    fn index(&mut self, g: &Graph, ix: &Index, operands: &[Value], out: Value) {
        let same = |l: u32| Some(l as usize);
        if ix.scatter.is_none() {
            for (operand, index, _) in &ix.reads {
                self.read(operands.get(1 + *operand), index, &same, out);
            }
            return self.read(operands.first(), &ix.at, &same, out);
        }
        // An output axis can be cut where an update at label l writes index l and nothing else does.
        let updates = operands.last().and_then(|v| g.ty(*v)).map(|t| t.shape.clone()).unwrap_or_default();
        let mut seen: BTreeSet<u32> = BTreeSet::new();
        let Some(&(at, rank)) = self.base.get(&out) else { return };
        for j in 0..rank {
            let label = ix.at.get(j).and_then(as_label);
            let whole =
                label.is_some_and(|l| seen.insert(l) && updates.get(l as usize) == Some(&self.extent[at + j]));
            if !whole {
                self.make_full(at + j);
            }
        }
        self.reducing.push(out);
    }

    fn cumulate(&mut self, c: &Cumulate, out: Value) {
        if let Some(&(at, rank)) = self.base.get(&out)
            && c.axis < rank
        {
            self.make_full(at + c.axis);
        }
        self.reducing.push(out);
    }

    fn all_full(&mut self, g: &Graph, id: NodeId) {
        for r in 0..g.node(id).map_or(0, |n| n.results.len()) {
            if let Some(&(at, rank)) = self.base.get(&Value { node: id, result: r as u32 }) {
                (at..at + rank).for_each(|a| self.make_full(a));
            }
        }
    }

    fn value(&mut self, v: Value, shape: &[Dim]) {
        self.base.insert(v, (self.parent.len(), shape.len()));
        for d in shape {
            self.parent.push(self.parent.len());
            self.extent.push(d.clone());
            self.full.push(false);
        }
    }

    fn rank(&self, v: Value) -> usize {
        self.base.get(&v).map_or(0, |b| b.1)
    }

    /// A read of an inner value at `index`; `axis` gives the reader's output axis of a label, if it has one.
    fn read(&mut self, v: Option<&Value>, index: &[Dim], axis: &dyn Fn(u32) -> Option<usize>, out: Value) {
        let Some(&(at, rank)) = v.and_then(|v| self.base.get(v)) else { return };
        for (i, e) in index.iter().enumerate().take(rank) {
            match as_label(e).and_then(axis) {
                Some(j) => self.unite(at + i, out, j),
                None => self.make_full(at + i),
            }
        }
    }

    fn unite_all(&mut self, a: Value, b: Value) {
        let (Some(&(at, rank)), Some(&(_, other))) = (self.base.get(&a), self.base.get(&b)) else { return };
        for i in 0..rank.min(other) {
            self.unite(at + i, b, i);
        }
    }

    /// Unites an axis with axis `j` of `out`; different extents make it full.
    fn unite(&mut self, axis: usize, out: Value, j: usize) {
        let to = match self.base.get(&out) {
            Some(&(at, rank)) if j < rank => at + j,
            _ => return self.make_full(axis),
        };
        if self.extent[axis] != self.extent[to] {
            return self.make_full(axis);
        }
        let (a, b) = (self.root(axis), self.root(to));
        let full = self.full[a] || self.full[b];
        self.parent[a.max(b)] = a.min(b);
        self.full[a.min(b)] = full;
    }

    fn root(&self, mut a: usize) -> usize {
        while self.parent[a] != a {
            a = self.parent[a];
        }
        a
    }

    fn make_full(&mut self, axis: usize) {
        let r = self.root(axis);
        self.full[r] = true;
    }

    /// Two axes of one value in one class would compute only its diagonal.
    fn forbid_diagonals(&mut self) {
        let all: Vec<(usize, usize)> = self.base.values().copied().collect();
        for (at, rank) in all {
            let mut seen = BTreeSet::new();
            for a in at..at + rank {
                if !seen.insert(self.root(a)) {
                    self.make_full(a);
                }
            }
        }
    }

    /// Classes a value spans that are not full, in order of its axes.
    fn spans(&self, v: Value) -> Option<Vec<usize>> {
        let &(at, rank) = self.base.get(&v)?;
        Some((at..at + rank).map(|a| self.root(a)).filter(|r| !self.full[*r]).collect())
    }

    fn grid(&self, region: &Graph, single: bool) -> Option<Tiling> {
        let outputs: Vec<Value> = region.outputs().iter().map(|o| o.value).collect();
        let mut grid = self.spans(*outputs.first()?)?;
        let mut has_axes = false;
        for v in outputs.iter().chain(&self.reducing) {
            let spans = self.spans(*v)?;
            grid.retain(|r| spans.contains(r));
            has_axes |= self.rank(*v) > 0;
        }
        if grid.is_empty() && has_axes && !single {
            return None;
        }
        let place = |a: usize| grid.iter().position(|g| *g == self.root(a));
        let axes = self.base.iter().map(|(v, &(at, rank))| (*v, (at..at + rank).map(place).collect())).collect();
        Some(Tiling { grid: grid.iter().map(|&r| self.extent[r].clone()).collect(), axes })
    }
}
