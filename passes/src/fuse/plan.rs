//! What fusion knows of each node before it groups: its class, the sizes it works over, its segment, and whether it is
//! computed in place by whatever reads it instead of being stored.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::rules::weight::widens;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::class::{Class, Map, Piece, View};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Attr, Lowering, Op};
use tgc_ir::scalar::{Bin, ENode, Un};
use tgc_ir::types::{Atom, Dim, Type};

/// Scalar nodes (arguments and constants not counted) of an expression that is cheap enough to compute again.
const CHEAP: usize = 4;
/// Summed elements that may lie far apart.
const FEW: i64 = 4;

pub(crate) struct Info {
    /// None for structure.
    pub(crate) class: Option<Class>,
    /// Element counts the node loops over: of its result, and of a reduction's operand.
    pub(crate) domains: BTreeSet<Dim>,
    /// Segment of the program: how many symbol binders come before it.
    pub(crate) segment: usize,
    /// Computed wherever it is read.
    pub(crate) inline: bool,
    /// In no group with others.
    pub(crate) alone: bool,
}

pub(crate) struct Plan {
    infos: BTreeMap<NodeId, Info>,
    places: BTreeMap<NodeId, usize>,
    pub(crate) order: Vec<NodeId>,
}

impl Plan {
    /// The plan of a graph of core ops.
    pub(crate) fn new(g: &Graph) -> Result<Plan, Diag> {
        let mut plan = Plan::without_inlining(g)?;
        plan.choose_inline(g);
        Ok(plan)
    }

    /// The plan in which every node is stored.
    pub(crate) fn without_inlining(g: &Graph) -> Result<Plan, Diag> {
        let order = g.topo();
        let mut infos = BTreeMap::new();
        let segments = segments(g, &order);
        for &id in &order {
            let Some(node) = g.node(id) else { continue };
            let ins: Vec<Type> = g.operands(id).iter().filter_map(|v| g.ty(*v).cloned()).collect();
            let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
            let dims = matches!(node.op, Op::ConstDims(_));
            let class = match node.op.lower(&ins, &outs, &g.symbols).map_err(|d| d.at(&node.loc))? {
                Lowering::Class(_) if dims => None,
                Lowering::Class(c) => Some(c),
                Lowering::Structure => None,
                Lowering::Decompose(_) | Lowering::Template(..) => {
                    let message = format!("composite op `{}` cannot be fused", node.op.name());
                    return Err(Diag::error("E-PASS-005", message)
                        .at(&node.loc)
                        .help("run pass `decompose` first"));
                }
            };
            let mut domains: BTreeSet<Dim> = outs.first().map(Type::numel).into_iter().collect();
            if matches!(class, Some(Class::Reduce(_) | Class::Window(_))) {
                domains.extend(ins.first().map(Type::numel));
            }
            let segment = segments.get(&id).copied().unwrap_or(0);
            infos.insert(id, Info { class, domains, segment, inline: false, alone: false });
        }
        let places = order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        Ok(Plan { infos, places, order })
    }

    pub(crate) fn info(&self, id: NodeId) -> Option<&Info> {
        self.infos.get(&id)
    }

    /// Nodes in topological order.
    pub(crate) fn sorted(&self, members: &BTreeSet<NodeId>) -> Vec<NodeId> {
        let mut order: Vec<NodeId> = members.iter().copied().collect();
        order.sort_by_key(|id| self.places.get(id));
        order
    }

    pub(crate) fn class(&self, id: NodeId) -> Option<&Class> {
        self.info(id).and_then(|i| i.class.as_ref())
    }

    /// True for a node that becomes (part of) a kernel.
    pub(crate) fn computes(&self, id: NodeId) -> bool {
        self.class(id).is_some()
    }

    pub(crate) fn inline(&self, id: NodeId) -> bool {
        self.info(id).is_some_and(|i| i.inline)
    }

    pub(crate) fn alone(&self, id: NodeId) -> bool {
        self.info(id).is_some_and(|i| i.alone)
    }

    /// A constant that kernels hold a copy of: one element or a splat; or dims. Others are read from memory: a copy of
    /// several elements is a chain of selections at every read, and kernels that differ in it are not shared.
    pub(crate) fn is_free(&self, g: &Graph, id: NodeId) -> bool {
        let Some(op) = g.op_of(id) else { return false };
        if let Op::Constant(c) = op {
            return c.shape.is_some() || c.value.numel() == 1;
        }
        matches!(op, Op::ConstDims(_))
    }

    /// Name of the rule that makes a group, by its heaviest member.
    pub(crate) fn rule(&self, members: &BTreeSet<NodeId>) -> &'static str {
        let any = |f: fn(&Class) -> bool| members.iter().filter_map(|m| self.class(*m)).any(f);
        if any(|c| matches!(c, Class::Contract(_))) {
            "fuse_contract"
        } else if any(|c| matches!(c, Class::Window(_))) {
            "fuse_window"
        } else if any(|c| matches!(c, Class::Reduce(_))) {
            "fuse_reduce"
        } else if any(|c| matches!(c, Class::Index(_))) {
            "fuse_index"
        } else {
            "fuse_map"
        }
    }

    /// Decides from the last node to the first which ones are computed where they are read: views of one piece, maps
    /// without operands, cheap maps of stored inputs with several readers of the same size, and for contractions cheap
    /// maps that widen a weight.
    fn choose_inline(&mut self, g: &Graph) {
        let mut into_contract: BTreeSet<NodeId> = BTreeSet::new();
        let order = self.order.clone();
        for &id in order.iter().rev() {
            let users = users(g, id);
            if users.is_empty() || is_output(g, id) || !self.may_inline(g, id, &users) {
                continue;
            }
            if self.stores_transposed(g, id, &users) || self.breaks_rows(g, id, &users) {
                continue;
            }
            let contract = users
                .iter()
                .any(|u| matches!(self.class(*u), Some(Class::Contract(_))) || into_contract.contains(u));
            let whole = matches!(self.class(id), Some(Class::View(v)) if is_whole(v));
            let in_place = whole || widens(g, crate::rules::result(id));
            if !users.iter().all(|u| self.absorbs(g, *u, id)) || (contract && !in_place) {
                continue;
            }
            if contract {
                into_contract.insert(id);
            }
            if let Some(i) = self.infos.get_mut(&id) {
                i.inline = true;
            }
        }
        self.keep_rooted_maps(g);
        self.keep_reshapes(g, &into_contract);
    }

    /// A view that moves the last axis of what a convolution reads many times over: read in place, the channels summed
    /// would lie far apart.
    fn breaks_rows(&self, g: &Graph, id: NodeId, users: &BTreeSet<NodeId>) -> bool {
        let Some(Class::View(View { pieces, .. })) = self.class(id) else { return false };
        let v = crate::rules::result(id);
        let Some(rank) = g.ty(v).map(|t| t.rank()) else { return false };
        let keeps = |p: &Piece| rank > 0 && p.index.last() == Some(&Dim::label(rank as u32 - 1));
        if pieces.iter().all(keeps) {
            return false;
        }
        users.iter().any(|u| match self.class(*u) {
            Some(Class::Contract(c)) => {
                let many =
                    |l: &u32| c.extents.get(*l as usize).and_then(Dim::as_const).is_none_or(|e| e > FEW);
                c.red.len() > 1 && g.operands(*u).first() == Some(&v) && c.red.last().is_some_and(many)
            }
            _ => false,
        })
    }

    /// A transpose that keeps the innermost axis, of what one kernel computes and only reshapes read: the kernel stores
    /// it so, in runs as long as that axis, and the reshapes need no division to find an element.
    fn stores_transposed(&self, g: &Graph, id: NodeId, users: &BTreeSet<NodeId>) -> bool {
        let Some(Op::Transpose(t)) = g.op_of(id) else { return false };
        let [x] = g.operands(id)[..] else { return false };
        let last = t.perm.last().is_some_and(|p| *p == -1 || *p + 1 == t.perm.len() as i64);
        let readers =
            values(g, x.node).map(|v| g.users(v).len() + usize::from(g.is_output(v))).sum::<usize>();
        let computed =
            matches!(self.class(x.node), Some(Class::Map(_) | Class::Contract(_) | Class::Reduce(_)));
        last && computed && readers == 1 && users.iter().all(|u| matches!(g.op_of(*u), Some(Op::Reshape(_))))
    }

    /// Takes back the choice for reshapes, read by contractions, of what is stored anyway: a reshape of a buffer is that
    /// buffer, and the contraction reads it without divisions.
    fn keep_reshapes(&mut self, g: &Graph, into_contract: &BTreeSet<NodeId>) {
        for id in self.order.clone() {
            let Some(Op::Reshape(_)) = g.op_of(id) else { continue };
            let stored = |v: &Value| self.computes(v.node) && !self.inline(v.node);
            let stored = g.operands(id).iter().all(stored);
            let plain = matches!(self.class(id), Some(Class::View(v)) if is_plain(v));
            if let Some(i) = self.infos.get_mut(&id).filter(|i| i.inline && stored && !plain)
                && into_contract.contains(&id)
            {
                i.inline = false;
                i.alone = true;
            }
        }
    }

    /// Takes back the choice for maps of something that is computed in this graph: those join its kernel instead.
    fn keep_rooted_maps(&mut self, g: &Graph) {
        for id in self.order.clone() {
            let from_inputs = g
                .operands(id)
                .iter()
                .all(|v| !self.computes(v.node) || (self.inline(v.node) && self.rooted(g, v.node)));
            let is_map = matches!(self.class(id), Some(Class::Map(_)));
            if let Some(i) = self.infos.get_mut(&id).filter(|i| i.inline && is_map && !from_inputs) {
                i.inline = false;
            }
        }
    }

    /// Everything an inline node reads is there before any kernel runs.
    fn rooted(&self, g: &Graph, id: NodeId) -> bool {
        g.operands(id)
            .iter()
            .all(|v| !self.computes(v.node) || (self.inline(v.node) && self.rooted(g, v.node)))
    }

    fn may_inline(&self, g: &Graph, id: NodeId, users: &BTreeSet<NodeId>) -> bool {
        let Some(info) = self.info(id) else { return false };
        match &info.class {
            Some(Class::View(v)) => is_whole(v),
            Some(Class::Map(m)) => {
                let operands = g.operands(id);
                let same_size =
                    |u: &NodeId| self.info(*u).is_some_and(|u| !u.domains.is_disjoint(&info.domains));
                let rank0 = g.ty(crate::rules::result(id)).is_some_and(|t| t.rank() == 0);
                let copied = || users.len() > 1 && users.iter().all(same_size) && narrow(g, id, &operands);
                let widens = || widens(g, crate::rules::result(id));
                operands.is_empty() || (cheap(m) && (rank0 || copied() || widens()))
            }
            Some(Class::Reduce(_) | Class::Contract(_) | Class::Window(_)) => false,
            Some(Class::Index(_) | Class::Cumulate(_) | Class::Opaque(_)) | None => false,
        }
    }

    /// A reader that can compute its operand `id` itself: a gather its indices, as far as they are a rearrangement.
    fn absorbs(&self, g: &Graph, user: NodeId, id: NodeId) -> bool {
        match self.class(user) {
            Some(
                Class::Map(_) | Class::View(_) | Class::Reduce(_) | Class::Contract(_) | Class::Window(_),
            ) => true,
            Some(Class::Index(ix)) => {
                let data = g.operands(user).first().is_some_and(|v| v.node == id);
                ix.scatter.is_none() && !data && matches!(self.class(id), Some(Class::View(_)))
            }
            Some(Class::Cumulate(_) | Class::Opaque(_)) | None => false,
        }
    }
}

/// One piece that is the whole output: an index map.
pub(crate) fn is_whole(v: &View) -> bool {
    v.pieces.len() == 1 && v.fill.is_none() && v.pieces[0].lo.iter().all(|d| d.is(0))
}

/// Index maps that are plain labels or numbers: axes come and go, none is split or joined.
fn is_plain(v: &View) -> bool {
    let label = |d: &Dim, rank: usize| (0..rank).any(|l| *d == Dim::label(l as u32));
    v.pieces.iter().all(|p| p.index.iter().all(|d| d.as_const().is_some() || label(d, p.lo.len())))
}

/// At most one operand that is more than a number, and no element wider than the result's.
fn narrow(g: &Graph, id: NodeId, operands: &[Value]) -> bool {
    let bits = |v: Value| g.ty(v).map_or(0, |t| t.dtype.bits());
    let big =
        |v: &&Value| g.ty(**v).is_some_and(|t| t.rank() > 0) && crate::rules::splat_of(g, **v).is_none();
    let out = bits(crate::rules::result(id));
    operands.iter().filter(big).count() <= 1 && operands.iter().all(|v| bits(*v) <= out)
}

fn cheap(m: &Map) -> bool {
    let free = |n: &ENode| matches!(n, ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_));
    let slow = |n: &ENode| match n {
        ENode::Un(op, _) => {
            matches!(op, Un::Exp | Un::Log | Un::Sqrt | Un::Tanh | Un::Erf | Un::Sin | Un::Cos)
        }
        ENode::Bin(op, ..) => matches!(op, Bin::Div | Bin::Rem | Bin::Mod | Bin::Pow),
        ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) | ENode::Fma(..) | ENode::Select(..) => false,
        ENode::Cast(_) | ENode::Bitcast(_) => false,
    };
    let nodes = || m.expr.nodes.iter().map(|n| &n.0);
    m.expr.roots.len() == 1 && nodes().filter(|n| !free(n)).count() <= CHEAP && !nodes().any(slow)
}

/// Nodes that read any result of `id`.
pub(crate) fn users(g: &Graph, id: NodeId) -> BTreeSet<NodeId> {
    values(g, id).flat_map(|v| g.users(v)).map(|u| u.0).collect()
}

fn is_output(g: &Graph, id: NodeId) -> bool {
    values(g, id).any(|v| g.is_output(v))
}

pub(crate) fn values(g: &Graph, id: NodeId) -> impl Iterator<Item = Value> {
    let count = g.node(id).map_or(0, |n| n.results.len()) as u32;
    (0..count).map(move |result| Value { node: id, result })
}

/// Segment of each node: one more than the binder's for whatever mentions its symbol.
fn segments(g: &Graph, order: &[NodeId]) -> BTreeMap<NodeId, usize> {
    let mut bound: BTreeMap<String, usize> = BTreeMap::new();
    let mut out: BTreeMap<NodeId, usize> = BTreeMap::new();
    let has_binders = g.ids().iter().any(|id| matches!(g.op_of(*id), Some(Op::BindDim(_))));
    if !has_binders {
        return out;
    }
    for &id in order {
        let mut segment = g.operands(id).iter().filter_map(|v| out.get(&v.node)).copied().max().unwrap_or(0);
        let Some(node) = g.node(id) else { continue };
        if let Op::BindDim(b) = &node.op {
            bound.insert(b.symbol.clone(), segment + 1);
        } else {
            symbols(node, &mut |s| segment = segment.max(bound.get(s).copied().unwrap_or(0)));
        }
        out.insert(id, segment);
    }
    out
}

/// Symbols in the types, attributes and regions of a node.
fn symbols(node: &tgc_ir::graph::Node, f: &mut dyn FnMut(&str)) {
    let mut dim = |d: &Dim| {
        d.leaves(&mut |a| {
            if let Atom::Sym(s) = a {
                f(s);
            }
        });
    };
    node.results.iter().flat_map(|r| &r.ty.shape).for_each(&mut dim);
    for (_, attr) in node.op.attrs() {
        if let Attr::Dim(d) = &attr {
            dim(d);
        } else if let Attr::Dims(v) = &attr {
            v.iter().for_each(&mut dim);
        }
    }
    for region in &node.regions {
        for id in region.ids() {
            if let Some(n) = region.node(id) {
                symbols(n, f);
            }
        }
    }
}
