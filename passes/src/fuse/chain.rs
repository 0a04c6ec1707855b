//! Chains: two contractions in one kernel, the second one reading what maps and reductions make of the first one's
//! result, as attention does. Decides when that is good; that it is one kernel at all is `tgc_ir::tiling`'s decision.
//!
//! The tiling already excludes recomputation: every reducing node spans the whole grid, so each tile computes its own
//! part of the first result and no other tile needs it. What is lost is the cut along the axes that are left whole: those
//! of the first result that the second contraction sums over, and those of the second result that the first one lacks.
//! So a chain is made only where
//!
//! - a reduction stands between the two contractions: it needs whole rows of the first result anyway, and without a chain
//!   they would go through memory more than once. (Layers of a perceptron have none: there the rows are long, and cutting
//!   both products along their columns is worth more than keeping the row.)
//! - neither contraction reads a weight: a weight is shared by all rows, and tiles of a few whole rows would read all of
//!   it again and again.
#![deny(clippy::wildcard_enum_match_arm)]

use super::group::is_view_of_input;
use super::plan::Plan;
use super::region::Cut;
use std::collections::BTreeSet;
use tgc_ir::class::Class;
use tgc_ir::graph::{NodeId, Value};

/// Most groups without a contraction between the two ends.
pub(crate) const MAX_LINKS: usize = 6;

/// The contractions of the cut are a chain that is worth a kernel.
pub(crate) fn fits(cut: &Cut, plan: &Plan) -> bool {
    let contract = |m: &NodeId| matches!(plan.class(*m), Some(Class::Contract(_)));
    let places = |keep: &dyn Fn(&NodeId) -> bool| -> Vec<NodeId> {
        let mut list: Vec<NodeId> = cut.members.iter().filter(|m| keep(m.0)).map(|m| *m.1).collect();
        // Ids in a region are in topological order: it was built so.
        list.sort();
        list
    };
    let [first, second] = places(&contract)[..] else { return false };
    let reads_leaf = |v: &Value| is_view_of_input(cut, *v);
    let plain = |place: NodeId| cut.region.operands(place).iter().filter(|v| reads_leaf(v)).count();
    if plain(first) != 2 || plain(second) != 1 || reads_weight(cut, first) || reads_weight(cut, second) {
        return false;
    }
    let below = ancestors(cut, second);
    let reduction = |m: &NodeId| matches!(plan.class(*m), Some(Class::Reduce(_)));
    places(&reduction).iter().any(|r| below.contains(r) && ancestors(cut, *r).contains(&first))
}

/// An operand of a contraction is a weight or a constant, or computed in place of one.
fn reads_weight(cut: &Cut, place: NodeId) -> bool {
    let inputs = cut.region.inputs();
    let weight = |id: &NodeId| {
        inputs.iter().position(|i| i == id).is_some_and(|i| cut.weights.get(i).copied().unwrap_or(false))
    };
    let member = |v: &Value| cut.members.values().any(|m| *m == v.node);
    let operands = cut.region.operands(place);
    operands.iter().filter(|v| !member(v)).any(|v| {
        let below = ancestors(cut, v.node);
        below.iter().any(weight)
    })
}

/// The node and all that it depends on in the region.
fn ancestors(cut: &Cut, id: NodeId) -> BTreeSet<NodeId> {
    let mut out = BTreeSet::new();
    let mut todo = vec![id];
    while let Some(id) = todo.pop() {
        if out.insert(id) {
            todo.extend(cut.region.operands(id).into_iter().map(|v| v.node));
        }
    }
    out
}
