//! Layout: runs convolutions with channels last. Values joined by nodes that have a form in either layout make a set
//! (`sets`); every set with a convolution of several output channels is rewritten as a whole, with explicit transposes
//! where values enter and leave it. What form a node has with channels last is written in `forms`.
//! A convolution of few channels has its operand padded beforehand.
//!
//! The pass removes no transpose itself: `canonicalise` cancels pairs and turns those that move nothing into reshapes,
//! `fold_constants` evaluates those of constants, and fusion reads through the ones at a kernel's input.

mod forms;
mod sets;

use crate::pass::{Changed, Cx, Editor, Pass};
use crate::rules::{result, view::pads_beforehand};
use forms::{Form, Place};
use sets::Set;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Op, Pad, Reshape, Transpose};
use tgc_ir::patch::{Edit, PVal, Patch};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::Dim;

pub(crate) struct Layout;

impl Pass for Layout {
    const NAME: &'static str = "layout";
    const SUMMARY: &'static str = "puts channels last around convolutions";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &["decompose"];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        let mut changed = Changed::No;
        let mut refused: BTreeSet<NodeId> = BTreeSet::new();
        while let Some(set) = Set::next(editor.graph(), &refused) {
            let Some(edit) = rewrite(editor.graph(), &set) else {
                refused.extend(set.nodes.keys());
                continue;
            };
            if editor.apply(edit, "channels_last")?.is_none() {
                break;
            }
            changed = Changed::Yes;
        }
        Ok(changed)
    }
}

/// A patch that makes the set's nodes anew; None where a type would change.
fn rewrite(g: &Graph, set: &Set) -> Option<Edit> {
    let mut r = Rewriter {
        g,
        patch: Patch::new(g, *set.nodes.keys().next()?),
        laid: BTreeMap::new(),
        plain: BTreeMap::new(),
    };
    for id in &set.order {
        r.node(*id, set.nodes.get(id)?)?;
    }
    for id in &set.order {
        r.patch.loc = g.loc(*id);
        let v = result(*id);
        let outside = |u: &(NodeId, u32)| set.nodes.get(&u.0).is_none_or(|f| !f.lays(u.1 as usize));
        if g.is_output(v) || g.users(v).iter().any(outside) {
            let new = r.plain(v)?;
            if r.patch.ty(new) != g.ty(v) {
                return None;
            }
            r.patch.replace(v, new);
        }
    }
    Some(r.patch.finish())
}

struct Rewriter<'g> {
    g: &'g Graph,
    patch: Patch<'g>,
    /// Values with channels last, by the rank they broadcast to.
    laid: BTreeMap<(Value, usize), PVal>,
    /// Values with their axes as they were.
    plain: BTreeMap<Value, PVal>,
}

impl Rewriter<'_> {
    fn node(&mut self, id: NodeId, form: &Form) -> Option<()> {
        self.patch.loc = self.g.loc(id);
        let mut operands = Vec::new();
        for (i, v) in self.g.operands(id).into_iter().enumerate() {
            operands.push(if form.lays(i) { self.laid(v, form.rank)? } else { self.plain(v)? });
        }
        let op = self.padded(form.op.clone(), &mut operands)?;
        let new = self.patch.op(op, &operands).ok()?;
        match &form.result {
            Place::Laid => {
                let rank = self.patch.ty(new)?.rank();
                self.laid.insert((result(id), rank), new)
            }
            Place::Plain(perm) => {
                let new = self.permuted(new, perm)?;
                self.plain.insert(result(id), new)
            }
        };
        Some(())
    }

    /// A convolution of few channels gets its operand padded beforehand.
    fn padded(&mut self, op: Op, operands: &mut [PVal]) -> Option<Op> {
        let Op::Conv(mut conv) = op else { return Some(op) };
        let (x, w) = (self.patch.ty(*operands.first()?)?.clone(), self.patch.ty(*operands.get(1)?)?.clone());
        if !pads_beforehand(&conv, &w) || !conv.channels_last || conv.pads.iter().all(|p| *p == 0) {
            return Some(conv.into());
        }
        let n = conv.pads.len() / 2;
        let amounts = |pads: &[i64]| -> Vec<Dim> {
            let around = |d: &[i64]| d.iter().map(|p| Dim::from(*p)).collect::<Vec<_>>();
            [vec![Dim::from(0)], around(pads), vec![Dim::from(0)]].concat()
        };
        let (before, after) = (amounts(&conv.pads[..n]), amounts(&conv.pads[n..]));
        let value = Scalar::from_int(x.dtype, 0);
        operands[0] = self.patch.op(Pad { before, after, value }, &[operands[0]]).ok()?;
        conv.pads = vec![0; 2 * n];
        Some(conv.into())
    }

    /// The value with channels last; one of lower rank as it broadcasts to rank `rank`.
    fn laid(&mut self, v: Value, rank: usize) -> Option<PVal> {
        if let Some(&p) = self.laid.get(&(v, rank)) {
            return Some(p);
        }
        let plain = self.plain(v)?;
        self.plain.insert(v, plain);
        let mut p = plain;
        let shape = self.patch.ty(p)?.shape.clone();
        let missing = rank.checked_sub(shape.len())?;
        let perm = forms::to_last(rank);
        if missing == 0 {
            p = self.permuted(p, &perm)?;
        } else if !shape.is_empty() {
            let full = [vec![Dim::from(1); missing], shape.clone()].concat();
            if keeps_order(&full, &perm) {
                let moved: Vec<Dim> = perm.iter().map(|&a| full[a].clone()).collect();
                let lead = moved.iter().take(rank - 1).take_while(|d| d.is(1)).count();
                p = self.reshape(p, moved[lead..].to_vec())?;
            } else {
                p = self.reshape(p, full)?;
                p = self.permuted(p, &perm)?;
            }
        }
        self.laid.insert((v, rank), p);
        Some(p)
    }

    /// The value with its axes as they were.
    fn plain(&mut self, v: Value) -> Option<PVal> {
        if let Some(&p) = self.plain.get(&v) {
            return Some(p);
        }
        let rank = self.g.ty(v)?.rank();
        let Some(&p) = self.laid.get(&(v, rank)) else { return Some(PVal::Old(v)) };
        let p = self.permuted(p, &forms::to_second(rank))?;
        self.plain.insert(v, p);
        Some(p)
    }

    fn permuted(&mut self, p: PVal, perm: &[usize]) -> Option<PVal> {
        let shape = self.patch.ty(p)?.shape.clone();
        if keeps_order(&shape, perm) {
            let moved = perm.iter().map(|&a| shape[a].clone()).collect();
            return self.reshape(p, moved);
        }
        let perm = perm.iter().map(|&a| a as i64).collect();
        self.patch.op(Transpose { perm }, &[p]).ok()
    }

    fn reshape(&mut self, p: PVal, shape: Vec<Dim>) -> Option<PVal> {
        if self.patch.ty(p)?.shape == shape {
            return Some(p);
        }
        self.patch.op(Reshape { shape }, &[p]).ok()
    }
}

/// A permutation that leaves the axes that are not 1 in their order moves no element.
fn keeps_order(shape: &[Dim], perm: &[usize]) -> bool {
    let real: Vec<usize> = perm.iter().copied().filter(|&a| !shape[a].is(1)).collect();
    real.is_sorted()
}
