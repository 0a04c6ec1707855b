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
            Class::Map(_) | Class::Reduce(_) | Class::Contract(_) | Class::View(_) | Class::Window(_) => {
                false
            }
        };
        if alone && nodes.len() > 1 {
            return Ok(None);
        }
        axes.node(region, id, &class);
    }
    axes.forbid_diagonals();
    Ok(axes.grid(region, nodes.len() == 1))
}

/// Inputs and constants are read freely; dims as data are computed only where they are a result.
fn is_compute(region: &Graph, id: NodeId) -> bool {
    let is_dims =
        |op: &Op| matches!(op, Op::ConstDims(_)) && !region.is_output(Value { node: id, result: 0 });
    region.op_of(id).is_some_and(|op| !matches!(op, Op::Input(_) | Op::Constant(_)) && !is_dims(op))
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
            let whole = label
                .is_some_and(|l| seen.insert(l) && updates.get(l as usize) == Some(&self.extent[at + j]));
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
        let axes =
            self.base.iter().map(|(v, &(at, rank))| (*v, (at..at + rank).map(place).collect())).collect();
        Some(Tiling { grid: grid.iter().map(|&r| self.extent[r].clone()).collect(), axes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Grid extents in words, or "none".
    fn grid(text: &str) -> String {
        let g = crate::text::parse_graph(text).unwrap_or_else(|e| panic!("{}", e[0].render(Some(text))));
        match tiling(&g).unwrap() {
            None => "none".to_string(),
            Some(t) => t.grid.iter().map(Dim::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn softmax_is_cut_by_rows() {
        let text = "graph @f(%x: f32[b, h, n]) -> f32[b, h, n] {
            %m = reduce_max %x {axes = [2], keepdims = true} : f32[b, h, 1]
            %d = sub %x, %m : f32[b, h, n]
            %e = exp %d : f32[b, h, n]
            %s = reduce_sum %e {axes = [2], keepdims = true} : f32[b, h, 1]
            %y = div %e, %s : f32[b, h, n]
            return %y
        }";
        assert_eq!(grid(text), "b h");
        assert_eq!(grid(&text.replace("[b, h, ", "[1, 1, ")), "1 1");
    }

    #[test]
    fn layer_norm_with_two_outputs_is_cut_by_rows() {
        let text = "graph @f(%x: f32[r, 8], %w: f32[8]) -> (f32[r, 8] \"y\", f32[r, 1] \"m\") {
            %s = reduce_sum %x {axes = [1], keepdims = true} : f32[r, 1]
            %k = constant 0.125 : f32[]
            %m = mul %s, %k : f32[r, 1]
            %d = sub %x, %m : f32[r, 8]
            %q = mul %d, %d : f32[r, 8]
            %v = reduce_sum %q {axes = [1], keepdims = true} : f32[r, 1]
            %u = sqrt %v : f32[r, 1]
            %n = div %d, %u : f32[r, 8]
            %y = mul %n, %w : f32[r, 8]
            return %y, %m
        }";
        assert_eq!(grid(text), "r");
    }

    #[test]
    fn an_epilogue_keeps_the_grid_of_the_contraction() {
        let text = "graph @f(%x: f32[m, 512], %w: f32[512, 10], %b: f32[10]) -> f32[m, 10] {
            %c = matmul %x, %w : f32[m, 10]
            %s = add %c, %b : f32[m, 10]
            %y = relu %s : f32[m, 10]
            return %y
        }";
        assert_eq!(grid(text), "m 10");
    }

    #[test]
    fn convolution_then_maximum_keeps_positions_whole() {
        let text = "graph @f(%x: f32[b, 4, 12], %w: f32[8, 4, 5]) -> f32[b, 8] {
            %c = conv %x, %w {strides = [1], pads = [0, 0], dilations = [1]} : f32[b, 8, 8]
            %e = erf %c : f32[b, 8, 8]
            %g = mul %c, %e : f32[b, 8, 8]
            %y = reduce_max %g {axes = [2]} : f32[b, 8]
            return %y
        }";
        let g = crate::text::parse_graph(text).unwrap();
        let t = tiling(&g).unwrap().unwrap();
        assert_eq!(t.grid, [Dim::sym("b"), Dim::from(8)]);
        let conv = g.topo().into_iter().find(|&id| g.op_of(id).unwrap().name() == "conv").unwrap();
        assert_eq!(t.axes[&Value { node: conv, result: 0 }], [Some(0), Some(1), None]);
    }

    #[test]
    fn an_expanded_value_is_recomputed_in_every_tile() {
        let text = "graph @f(%x: f32[n], %y: f32[b, n]) -> f32[b, n] {
            %e = exp %x : f32[n]
            %w = expand %e {shape = (b, n)} : f32[b, n]
            %z = add %w, %y : f32[b, n]
            return %z
        }";
        assert_eq!(grid(text), "b n");
    }

    #[test]
    fn a_transposed_read_swaps_axes_and_a_split_one_is_full() {
        let swapped = "graph @f(%x: f32[n, m]) -> f32[m, n] {
            %e = exp %x : f32[n, m]
            %y = transpose %e {perm = [1, 0]} : f32[m, n]
            return %y
        }";
        assert_eq!(grid(swapped), "m n");
        let split = "graph @f(%x: f32[n, 8]) -> (f32[n, 2, 4] \"y\", f32[n, 8] \"e\") {
            %e = exp %x : f32[n, 8]
            %y = reshape %e {shape = (n, 2, 4)} : f32[n, 2, 4]
            return %y, %e
        }";
        assert_eq!(grid(split), "n");
    }

    #[test]
    fn column_mean_then_row_sum_is_refused() {
        let text = "graph @f(%x: f32[n, m]) -> f32[n] {
            %s = reduce_sum %x {axes = [0], keepdims = true} : f32[1, m]
            %d = sub %x, %s : f32[n, m]
            %y = reduce_sum %d {axes = [1]} : f32[n]
            return %y
        }";
        assert_eq!(grid(text), "none");
    }

    #[test]
    fn prefix_sums_and_composites_are_alone() {
        let alone = "graph @f(%x: f32[n, m]) -> f32[n, m] {
            %y = cum_sum %x {axis = 1} : f32[n, m]
            return %y
        }";
        assert_eq!(grid(alone), "n");
        let with_map = "graph @f(%x: f32[n, m]) -> f32[n, m] {
            %e = exp %x : f32[n, m]
            %y = cum_sum %e {axis = 1} : f32[n, m]
            return %y
        }";
        assert_eq!(grid(with_map), "none");
        let composite = "graph @f(%x: f32[n, m]) -> f32[n, m] {
            %y = softmax %x : f32[n, m]
            return %y
        }";
        assert_eq!(grid(composite), "none");
    }

    #[test]
    fn a_diagonal_is_full() {
        let text = "graph @f(%x: f32[n, n], %i: i64[n]) -> f32[n, n] {
            %e = exp %x : f32[n, n]
            %y = transpose %e {perm = [1, 0]} : f32[n, n]
            %z = add %e, %y : f32[n, n]
            return %z
        }";
        assert_eq!(grid(text), "none");
    }
}
