//! Grows groups in topological order: a node joins the group of something it reads, and may join two groups to one.
//!
//! What goes together: (1) maps and views with what they read; (2) reductions and windows with what comes before and
//! after, softmax and layer norm whole; (3) after a contraction the maps that read its result at identity, nothing
//! before it but views, which become index maps; (4) after a gather the maps that read it; (5) two contractions only as
//! a `chain`. A member's value that is read outside becomes another output if it spans the grid; else the group is not
//! joined. Nothing is joined that would compute a value more than once, or cut a contraction or reduction into fewer
//! tiles (but for the chain, where the tiles left are many).
#![deny(clippy::wildcard_enum_match_arm)]

use super::chain;
use super::plan::Plan;
use super::region::Cut;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::class::Class;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::tiling::{Tiling, tiling};

/// Most nodes of a region.
const MAX_NODES: usize = 64;

/// A structure node, or a group of nodes that compute.
struct Unit {
    members: BTreeSet<NodeId>,
    /// Units it reads.
    reads: BTreeSet<usize>,
    /// Position of its last member.
    last: usize,
}

pub(crate) struct Groups<'a> {
    g: &'a Graph,
    plan: &'a Plan,
    units: BTreeMap<usize, Unit>,
    of: BTreeMap<NodeId, usize>,
}

impl Groups<'_> {
    /// The groups of a graph, in order of their first members.
    pub(crate) fn grow(g: &Graph, plan: &Plan) -> Result<Vec<BTreeSet<NodeId>>, Diag> {
        let mut groups = Groups { g, plan, units: BTreeMap::new(), of: BTreeMap::new() };
        for (at, &id) in plan.order.iter().enumerate() {
            if !plan.inline(id) {
                groups.place(id, at)?;
            }
        }
        let computing = |u: &Unit| u.members.iter().any(|m| plan.computes(*m));
        Ok(groups.units.into_values().filter(computing).map(|u| u.members).collect())
    }

    fn place(&mut self, id: NodeId, at: usize) -> Result<(), Diag> {
        let mut reads = BTreeSet::new();
        for v in self.g.operands(id) {
            self.stored(v, &mut reads);
        }
        let reads: BTreeSet<usize> = reads.iter().filter_map(|n| self.of.get(n)).copied().collect();
        let candidates = self.candidates(id, &reads);
        self.units.insert(at, Unit { members: BTreeSet::from([id]), reads, last: at });
        self.of.insert(id, at);
        let mut mine = at;
        for other in candidates {
            let both = BTreeSet::from([mine, other]);
            if both.iter().filter(|u| self.contractions(**u) > 0).count() < 2 && self.may_join(&both)? {
                mine = self.join(mine, other);
            }
        }
        for links in self.chains(mine) {
            if self.may_join(&links)? {
                links.into_iter().fold(mine, |a, b| self.join(a, b));
                break;
            }
        }
        Ok(())
    }

    /// For a lone contraction, every set of units that makes a chain with it: one with a contraction, and those without
    /// one through which it is read.
    fn chains(&self, end: usize) -> Vec<BTreeSet<usize>> {
        let Some(unit) = self.units.get(&end) else { return Vec::new() };
        if self.contractions(end) != 1 || unit.members.len() != 1 {
            return Vec::new();
        }
        let segment = |u: &usize| {
            let first = self.units.get(u).and_then(|u| u.members.first());
            first.and_then(|m| self.plan.info(*m)).map(|i| i.segment)
        };
        let open = |u: &usize| {
            let members = self.units.get(u).into_iter().flat_map(|u| &u.members);
            let fit = |m: &NodeId| self.plan.class(*m).is_some_and(is_open) && !self.plan.alone(*m);
            segment(u) == segment(&end) && members.into_iter().all(fit)
        };
        let (mut between, mut starts) = (BTreeSet::new(), BTreeSet::new());
        let mut todo: Vec<usize> = unit.reads.iter().copied().filter(open).collect();
        while let Some(u) = todo.pop() {
            if self.contractions(u) > 0 {
                starts.insert(u);
            } else if between.len() < chain::MAX_LINKS && between.insert(u) {
                let reads = self.units.get(&u).into_iter().flat_map(|u| &u.reads);
                todo.extend(reads.copied().filter(open));
            }
        }
        let with = |start: usize| {
            let mut links = BTreeSet::from([start]);
            // Units are numbered in topological order of their first members, not of the units: until nothing changes.
            while let Some(u) = between.iter().find(|u| {
                !links.contains(u) && self.units.get(u).is_some_and(|u| !u.reads.is_disjoint(&links))
            }) {
                links.insert(*u);
            }
            links.insert(end);
            links
        };
        starts.into_iter().filter(|s| self.contractions(*s) == 1).map(with).filter(|l| l.len() > 2).collect()
    }

    /// Nodes whose stored results are read to compute `v` in place.
    fn stored(&self, v: Value, out: &mut BTreeSet<NodeId>) {
        if self.plan.inline(v.node) {
            self.g.operands(v.node).into_iter().for_each(|v| self.stored(v, out));
        } else {
            out.insert(v.node);
        }
    }

    /// Groups a node could join, the one with a contraction first, then the latest.
    fn candidates(&self, id: NodeId, reads: &BTreeSet<usize>) -> Vec<usize> {
        let Some(info) = self.plan.info(id) else { return Vec::new() };
        let joins = match &info.class {
            Some(Class::Map(_) | Class::View(_) | Class::Reduce(_) | Class::Window(_)) => true,
            Some(Class::Contract(_) | Class::Index(_) | Class::Cumulate(_) | Class::Opaque(_)) | None => {
                false
            }
        };
        if !joins || info.alone {
            return Vec::new();
        }
        let fits = |u: &&usize| {
            let Some(unit) = self.units.get(u) else { return false };
            let near = |m: &NodeId| {
                let Some(i) = self.plan.info(*m) else { return false };
                i.class.as_ref().is_some_and(is_open) && !i.alone && i.segment == info.segment
            };
            let sized =
                |m: &NodeId| self.plan.info(*m).is_some_and(|i| !i.domains.is_disjoint(&info.domains));
            unit.members.iter().all(near) && unit.members.iter().any(sized)
        };
        let mut list: Vec<usize> = reads.iter().filter(fits).copied().collect();
        let key = |u: &usize| (self.contractions(*u) > 0, self.units.get(u).map_or(0, |u| u.last));
        list.sort_by_key(|u| std::cmp::Reverse(key(u)));
        list
    }

    fn contractions(&self, unit: usize) -> usize {
        let contract = |m: &&NodeId| matches!(self.plan.class(**m), Some(Class::Contract(_)));
        self.units.get(&unit).map_or(0, |u| u.members.iter().filter(contract).count())
    }

    fn may_join(&self, units: &BTreeSet<usize>) -> Result<bool, Diag> {
        if units.len() < 2 || self.makes_cycle(units) {
            return Ok(false);
        }
        let members: BTreeSet<NodeId> =
            units.iter().filter_map(|u| self.units.get(u)).flat_map(|u| &u.members).copied().collect();
        if members.len() > MAX_NODES {
            return Ok(false);
        }
        match Cut::new(self.g, &members, self.plan)? {
            Some(cut) => accepts(&cut, self.plan),
            None => Ok(false),
        }
    }

    /// A unit outside these depends on one of them and is read by another.
    fn makes_cycle(&self, units: &BTreeSet<usize>) -> bool {
        // Units are numbered by the position of their first member.
        let first = units.first().copied().unwrap_or(0);
        let mut seen = units.clone();
        let read = |u: usize| self.units.get(&u).into_iter().flat_map(|u| &u.reads).copied();
        let mut todo: Vec<usize> =
            units.iter().flat_map(|u| read(*u)).filter(|u| !units.contains(u)).collect();
        while let Some(u) = todo.pop() {
            // What ends before the group begins cannot depend on it.
            if !seen.insert(u) || self.units.get(&u).is_none_or(|u| u.last < first) {
                continue;
            }
            if read(u).any(|r| units.contains(&r)) {
                return true;
            }
            todo.extend(read(u));
        }
        false
    }

    fn join(&mut self, a: usize, b: usize) -> usize {
        let (keep, gone) = (a.min(b), a.max(b));
        let Some(other) = self.units.remove(&gone) else { return keep };
        for m in &other.members {
            self.of.insert(*m, keep);
        }
        if let Some(unit) = self.units.get_mut(&keep) {
            unit.members.extend(other.members);
            unit.reads.extend(other.reads);
            unit.last = unit.last.max(other.last);
        }
        for u in self.units.values_mut() {
            if u.reads.remove(&gone) {
                u.reads.insert(keep);
            }
        }
        if let Some(unit) = self.units.get_mut(&keep) {
            unit.reads.remove(&keep);
        }
        keep
    }
}

/// Kernels of this class take others in.
fn is_open(class: &Class) -> bool {
    match class {
        Class::Map(_) | Class::View(_) | Class::Reduce(_) | Class::Contract(_) | Class::Window(_) => true,
        Class::Index(ix) => ix.scatter.is_none(),
        Class::Cumulate(_) | Class::Opaque(_) => false,
    }
}

/// The region is one kernel, and a good one.
pub(crate) fn accepts(cut: &Cut, plan: &Plan) -> Result<bool, Diag> {
    if cut.computed > MAX_NODES {
        return Ok(false);
    }
    let Some(t) = tiling(&cut.region)? else { return Ok(false) };
    Ok(cut.members.iter().all(|(id, place)| member_fits(cut, plan, &t, *id, *place)))
}

fn member_fits(cut: &Cut, plan: &Plan, t: &Tiling, id: NodeId, place: NodeId) -> bool {
    let v = Value { node: place, result: 0 };
    let (Some(class), Some(axes), Some(ty)) = (plan.class(id), t.axes.get(&v), cut.region.ty(v)) else {
        return false;
    };
    // An axis of extent 1 is in no tile more than once, whether a value has it or not.
    let spans_grid = t.grid.iter().enumerate().all(|(g, d)| d.is(1) || axes.contains(&Some(g)));
    let all_grid = || axes.iter().zip(&ty.shape).all(|(a, d)| a.is_some() || d.is(1));
    match class {
        Class::Map(_) | Class::View(_) => spans_grid,
        Class::Reduce(_) | Class::Window(_) => all_grid(),
        Class::Contract(_) => {
            let lone = all_grid() && cut.region.operands(place).iter().all(|v| is_view_of_input(cut, *v));
            lone || chain::fits(cut, plan)
        }
        Class::Index(_) => {
            let operands = cut.region.operands(place);
            let data = operands.first().is_some_and(|v| is_leaf(cut, *v));
            spans_grid && data && operands.iter().all(|v| is_view_of_input(cut, *v))
        }
        Class::Cumulate(_) | Class::Opaque(_) => cut.computed == 1,
    }
}

/// An input or a constant of the region.
fn is_leaf(cut: &Cut, v: Value) -> bool {
    cut.region.operands(v.node).is_empty()
}

/// An input or a constant, or what is computed of one in place.
pub(super) fn is_view_of_input(cut: &Cut, v: Value) -> bool {
    let is_member = cut.members.values().any(|m| *m == v.node);
    !is_member && cut.region.operands(v.node).iter().all(|v| is_view_of_input(cut, *v))
}
