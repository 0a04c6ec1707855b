//! Makes a failing module small: greedy steps, each kept if what remains still fails. What "fails" means is the caller's
//! affair. How a graph is made anew without a part of it is in `rebuild`.

mod rebuild;
#[cfg(test)]
mod tests;

use rebuild::{Change, drop_weights, rebuild};
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::module::Module;
use tgc_ir::ops::Op;
use tgc_ir::types::{Dim, Type};

/// The smallest module that the steps find for which `fails` is still true (it must be for `module`): entries and outputs
/// are dropped; nodes become inputs, or one of their operands of the same type; sizes shrink. One entry is left, as a rule.
/// Diagnostics for a module that cannot be taken apart.
pub fn reduce(module: &Module, fails: &mut dyn FnMut(&Module) -> bool) -> Result<Module, Vec<Diag>> {
    if !module.states.is_empty() {
        return Err(vec![
            Diag::error("E-CLI-008", "a module with states cannot be made smaller")
                .help("make its states inputs and outputs of the graph"),
        ]);
    }
    let mut best = module.clone();
    for name in module.entries.keys() {
        let mut one = module.clone();
        one.entries.retain(|n, _| n == name);
        drop_weights(&mut one);
        if one.entries.len() < best.entries.len() && fails(&one) {
            best = one;
            break;
        }
    }
    let names: Vec<String> = best.entries.keys().cloned().collect();
    loop {
        let before = names.iter().map(|n| weight_of(&best.entries[n].body)).collect::<Vec<_>>();
        for name in &names {
            outputs(&mut best, name, fails);
            nodes(&mut best, name, fails);
            sizes(&mut best, name, fails);
        }
        if before == names.iter().map(|n| weight_of(&best.entries[n].body)).collect::<Vec<_>>() {
            return Ok(best);
        }
    }
}

/// What every step must lower: outputs, nodes, then symbols and extents.
fn weight_of(g: &Graph) -> (usize, usize, usize, i128) {
    let dims = all_dims(g);
    let extents: i128 = dims.iter().filter_map(Dim::as_const).map(i128::from).sum();
    (g.outputs().len(), costly(g).len(), g.symbols.len(), extents)
}

/// Nodes that count: all but inputs and constants.
fn costly(g: &Graph) -> Vec<NodeId> {
    let counts = |id: &NodeId| !matches!(g.op_of(*id), Some(Op::Input(_) | Op::Constant(_)));
    g.topo().into_iter().filter(counts).collect()
}

/// Dims of inputs and weights.
fn all_dims(g: &Graph) -> Vec<Dim> {
    let leaf = |id: &NodeId| matches!(g.op_of(*id), Some(Op::Input(_) | Op::Weight(_)));
    let ids = g.topo().into_iter().filter(leaf);
    ids.filter_map(|node| g.ty(Value { node, result: 0 })).flat_map(|t: &Type| t.shape.clone()).collect()
}

/// Takes the changed module in place of `best` if it is smaller and fails.
fn attempt(
    best: &mut Module,
    entry: &str,
    change: &Change<'_>,
    fails: &mut dyn FnMut(&Module) -> bool,
) -> bool {
    let Some(next) = rebuild(best, entry, change) else { return false };
    let smaller = weight_of(&next.entries[entry].body) < weight_of(&best.entries[entry].body);
    let taken = smaller && tgc_ir::verify::verify(&next).is_empty() && fails(&next);
    if taken {
        *best = next;
    }
    taken
}

/// One output alone, else without one after the other.
fn outputs(best: &mut Module, entry: &str, fails: &mut dyn FnMut(&Module) -> bool) {
    let n = best.entries[entry].body.outputs().len();
    for i in (0..n).rev() {
        if attempt(best, entry, &Change { outputs: Some(BTreeSet::from([i])), ..Change::default() }, fails) {
            return;
        }
    }
    for i in (0..n).rev() {
        let rest = (0..best.entries[entry].body.outputs().len()).filter(|o| *o != i).collect();
        attempt(best, entry, &Change { outputs: Some(rest), ..Change::default() }, fails);
    }
}

/// Each node an input, the last ones first, as that takes away what comes before them; else an operand of its type.
fn nodes(best: &mut Module, entry: &str, fails: &mut dyn FnMut(&Module) -> bool) {
    let mut left = costly(&best.entries[entry].body).len();
    while left > 0 {
        left -= 1;
        let g = &best.entries[entry].body;
        // ids change with every step taken, the order does not
        let Some(&id) = costly(g).get(left) else { continue };
        let results = g.node(id).map_or(0, |n| n.results.len() as u32);
        let all: Vec<Value> = (0..results).map(|result| Value { node: id, result }).collect();
        let ty = g.ty(all[0]).cloned();
        let same = g.operands(id).into_iter().filter(|v| results == 1 && g.ty(*v) == ty.as_ref());
        let mut changes = vec![Change { inputs: all.iter().copied().collect(), ..Change::default() }];
        changes.extend(same.map(|v| Change { instead: BTreeMap::from([(all[0], v)]), ..Change::default() }));
        changes.iter().any(|c| attempt(best, entry, c, fails));
    }
}

/// Symbols become numbers, numbers smaller, wherever they occur.
fn sizes(best: &mut Module, entry: &str, fails: &mut dyn FnMut(&Module) -> bool) {
    let symbols: Vec<String> = best.entries[entry].body.symbols.iter().map(|s| s.0.to_string()).collect();
    for s in symbols {
        for n in [1, 2, 3, 8, 17] {
            let to = |d: &Dim| {
                d.subst(&|a| match a {
                    tgc_ir::types::Atom::Sym(name) if **name == *s => Some(Dim::from(n)),
                    _ => None,
                })
            };
            if attempt(best, entry, &Change { dims: Some(&to), ..Change::default() }, fails) {
                break;
            }
        }
    }
    let extents: BTreeSet<i64> =
        all_dims(&best.entries[entry].body).iter().filter_map(Dim::as_const).collect();
    for &c in extents.iter().rev().filter(|c| **c > 1) {
        for n in [1, 2, 3, c / 2, c - 1] {
            let to = |d: &Dim| with_number(d, c, n);
            if n < c && attempt(best, entry, &Change { dims: Some(&to), ..Change::default() }, fails) {
                break;
            }
        }
    }
}

/// `d` with `n` where it has the number `c`, alone or as a factor.
fn with_number(d: &Dim, c: i64, n: i64) -> Dim {
    let number = |k: i128| if k == i128::from(c) { i128::from(n) } else { k };
    let term = |(k, atoms): (i128, &[tgc_ir::types::Atom])| {
        atoms.iter().fold(Dim::from(number(k)), |d, a| d * Dim::atom(a.clone()))
    };
    d.terms().map(term).fold(Dim::from(number(d.constant())), |sum, t| sum + t)
}
