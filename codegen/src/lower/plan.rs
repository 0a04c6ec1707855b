//! Which values of a region get a stage of their own: results of reducing nodes, outputs, and values that several
//! stages would otherwise compute again at some cost. All others are inlined where they are read.

use super::Cx;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::class::Class;
use tgc_ir::graph::{NodeId, Value};
use tgc_ir::scalar::{ENode, Expr, Un};

/// Cost of evaluating a value's inlined expression once, in simple operations, from which sharing pays.
const SHARE_FROM: u64 = 4;

pub(crate) struct Plan {
    stages: Vec<NodeId>,
    stored: BTreeSet<NodeId>,
}

impl Plan {
    pub(crate) fn new(cx: &Cx<'_>) -> Plan {
        let order = cx.region.topo();
        let outputs: BTreeSet<NodeId> = cx.region.outputs().iter().map(|o| o.value.node).collect();
        let costs = costs(cx, &order);
        let mut stored = BTreeSet::new();
        let mut readers: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
        for &id in order.iter().rev() {
            let Some(class) = cx.classes.get(&id) else {
                if outputs.contains(&id) {
                    stored.insert(id);
                }
                continue;
            };
            if gathers(class)
                && let Some(data) = cx.region.operands(id).first()
                && !cx.region.inputs().contains(&data.node)
            {
                stored.insert(data.node);
            }
            let mut into: BTreeSet<NodeId> = BTreeSet::new();
            let mut contracted = false;
            let results = cx.region.node(id).map_or(0, |n| n.results.len());
            for (user, _) in (0..results).flat_map(|r| cx.region.users(Value { node: id, result: r as u32 }))
            {
                match stored.contains(&user) {
                    true => {
                        contracted |= rereads(cx.classes.get(&user));
                        into.insert(user);
                    }
                    false => into.extend(readers.get(&user).into_iter().flatten().copied()),
                }
            }
            let own = !matches!(class, Class::Map(_) | Class::View(_)) && !gathers(class);
            let cost = costs.get(&id).copied().unwrap_or(0);
            let shared = (into.len() > 1 || contracted) && cost >= SHARE_FROM;
            if own || outputs.contains(&id) || shared {
                stored.insert(id);
            }
            readers.insert(id, into);
        }
        let stages = order.into_iter().filter(|i| stored.contains(i)).collect();
        Plan { stages, stored }
    }

    /// Nodes with a stage, in order.
    pub(crate) fn stages(&self) -> &[NodeId] {
        &self.stages
    }

    /// True for a node whose results are in buffers.
    pub(crate) fn is_stored(&self, id: NodeId) -> bool {
        self.stored.contains(&id)
    }
}

fn gathers(class: &Class) -> bool {
    matches!(class, Class::Index(ix) if ix.scatter.is_none())
}

/// True for classes that read an operand's element many times.
fn rereads(class: Option<&Class>) -> bool {
    matches!(class, Some(Class::Contract(_) | Class::Window(_)))
}

fn costs(cx: &Cx<'_>, order: &[NodeId]) -> BTreeMap<NodeId, u64> {
    let mut costs: BTreeMap<NodeId, u64> = BTreeMap::new();
    for &id in order {
        let own: u64 = match cx.classes.get(&id) {
            Some(Class::Map(m)) => cost(&m.expr),
            Some(Class::View(v)) => v.pieces.len() as u64 - 1 + u64::from(v.fill.is_some()),
            Some(Class::Index(_)) => 4,
            _ => 0,
        };
        let below: u64 = match cx.classes.get(&id) {
            Some(Class::Map(_) | Class::View(_)) => {
                let operands = cx.region.operands(id);
                operands.iter().filter_map(|v| costs.get(&v.node)).fold(0, |a, b| a.saturating_add(*b))
            }
            _ => 0,
        };
        costs.insert(id, own.saturating_add(below));
    }
    costs
}

/// Simple operations that a scalar program takes.
pub(crate) fn cost(e: &Expr) -> u64 {
    e.nodes.iter().map(|n| node_cost(&n.0)).sum()
}

fn node_cost(n: &ENode) -> u64 {
    match n {
        ENode::Un(Un::Exp | Un::Log | Un::Tanh | Un::Erf | Un::Sin | Un::Cos, _) => 12,
        ENode::Bin(tgc_ir::scalar::Bin::Pow, ..) => 30,
        ENode::Bin(tgc_ir::scalar::Bin::Div, ..) | ENode::Un(Un::Sqrt, _) => 3,
        ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) => 0,
        _ => 1,
    }
}
