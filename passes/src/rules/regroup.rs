//! `join_views`: a chain of rearrangements in its normal form, found from what they do together: split axes, take parts,
//! reorder, add or drop axes of extent 1.

use super::splat::class;
use super::{Rewrite, Rule, result, rules};
use tgc_ir::class::Class;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::{Op, Reshape, Slice, Transpose};
use tgc_ir::patch::{PVal, Patch};
use tgc_ir::types::{Atom, Dim};

pub(crate) const RULES: &[Rule] = rules![join_views];

/// Most views joined at once.
const CHAIN: usize = 12;

/// `view(view(.. x)) = reshape(transpose(slice(reshape x)))` where that takes fewer nodes, or as many and none but the
/// first regroups elements, so that all parts of one value come from one reshape of it.
fn join_views(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let out = &g.ty(result(id))?.shape;
    let mut at = result(id);
    let mut index: Vec<Dim> = (0..out.len()).map(|i| Dim::label(i as u32)).collect();
    let mut late_reshape = false;
    let mut split_below = false;
    let mut best = None;
    for n in 1..=CHAIN {
        let Some(op @ (Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_))) = g.op_of(at.node) else { break };
        let Class::View(view) = class(g, at.node)? else { break };
        // A reshape of a slice: the order that the normal form turns round.
        late_reshape |= split_below && matches!(op, Op::Slice(_));
        split_below |= matches!(op, Op::Reshape(_));
        index = view.pieces.first()?.index.iter().map(|d| through(g, d, &index, out)).collect();
        at = *g.operands(at.node).first()?;
        let Some(form) = Form::of(&index, &g.ty(at)?.shape, out) else { continue };
        let (new, turns) = (form.nodes(out), late_reshape && !form.adds_axes(out));
        if n >= 2 && (new < n || (new == n && turns)) {
            best = Some((at, form));
        }
    }
    let (x, form) = best?;
    let mut p = Patch::new(g, id);
    let new = form.build(&mut p, x, out)?;
    if p.ty(new) != g.ty(result(id)) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

/// An index expression over a view's labels, as one over the labels of the chain's result.
fn through(g: &Graph, d: &Dim, index: &[Dim], out: &[Dim]) -> Dim {
    let d = d.subst(&|a| if let Atom::Label(l) = a { index.get(*l as usize).cloned() } else { None });
    d.simplify(&|a| match a {
        Atom::Label(l) => (0, out.get(*l as usize).map_or(0, |e| g.symbols.range(e).1 - 1)),
        a => g.symbols.atom_range(a),
    })
}

/// Part of a source axis after it has been split.
struct Part {
    extent: Dim,
    start: Dim,
    /// Axis of the result; None: one element of it is taken.
    label: Option<usize>,
}

/// The normal form, by source axis.
struct Form {
    axes: Vec<Vec<Part>>,
}

impl Form {
    /// The form of an index map, if it has one: every axis of the result with more than one element comes from one part.
    fn of(index: &[Dim], from: &[Dim], out: &[Dim]) -> Option<Form> {
        let mut axes = Vec::new();
        let mut seen = vec![false; out.len()];
        for (d, extent) in index.iter().zip(from) {
            let parts = split(d, extent, out)?;
            for l in parts.iter().filter_map(|p| p.label) {
                if std::mem::replace(&mut seen[l], true) {
                    return None;
                }
            }
            axes.push(parts);
        }
        let all = seen.iter().zip(out).all(|(s, d)| *s || d.is(1));
        all.then_some(Form { axes })
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.axes.iter().flatten()
    }

    fn size(part: &Part, out: &[Dim]) -> Dim {
        part.label.map_or(Dim::from(1), |l| out[l].clone())
    }

    fn splits(&self) -> bool {
        self.axes.iter().any(|a| a.len() > 1)
    }

    fn slices(&self, out: &[Dim]) -> bool {
        self.parts().any(|p| !p.start.is(0) || p.extent != Form::size(p, out))
    }

    /// Order of the parts in the result: those with a label by label, each part without one before what follows it.
    fn order(&self) -> Vec<usize> {
        let labels: Vec<Option<usize>> = self.parts().map(|p| p.label).collect();
        let mut order: Vec<usize> = (0..labels.len()).collect();
        let key = |i: usize| labels[i..].iter().find_map(|l| *l).unwrap_or(usize::MAX);
        let keys: Vec<(usize, usize)> = (0..labels.len()).map(|i| (labels[i].unwrap_or(key(i)), i)).collect();
        order.sort_by_key(|i| keys[*i]);
        order
    }

    fn reorders(&self) -> bool {
        self.order().iter().enumerate().any(|(i, p)| i != *p)
    }

    /// Extents after slicing and reordering.
    fn ordered(&self, out: &[Dim]) -> Vec<Dim> {
        let sizes: Vec<Dim> = self.parts().map(|p| Form::size(p, out)).collect();
        self.order().into_iter().map(|i| sizes[i].clone()).collect()
    }

    fn adds_axes(&self, out: &[Dim]) -> bool {
        self.ordered(out) != out
    }

    fn nodes(&self, out: &[Dim]) -> usize {
        [self.splits(), self.slices(out), self.reorders(), self.adds_axes(out)].iter().filter(|b| **b).count()
    }

    fn build(&self, p: &mut Patch<'_>, x: Value, out: &[Dim]) -> Option<PVal> {
        let mut v = PVal::Old(x);
        let extents: Vec<Dim> = self.parts().map(|p| p.extent.clone()).collect();
        if self.splits() {
            v = p.op(Reshape { shape: extents.clone() }, &[v]).ok()?;
        }
        if self.slices(out) {
            let starts = self.parts().map(|p| p.start.clone()).collect();
            let sizes = self.parts().map(|p| Form::size(p, out)).collect();
            v = p.op(Slice { starts, sizes, steps: vec![1; extents.len()] }, &[v]).ok()?;
        }
        if self.reorders() {
            let perm = self.order().into_iter().map(|i| i as i64).collect();
            v = p.op(Transpose { perm }, &[v]).ok()?;
        }
        if self.adds_axes(out) {
            v = p.op(Reshape { shape: out.to_vec() }, &[v]).ok()?;
        }
        Some(v)
    }
}

/// The parts of a source axis that is read at `d`: `d` in mixed radix, a digit for each label.
fn split(d: &Dim, extent: &Dim, out: &[Dim]) -> Option<Vec<Part>> {
    let mut rest = d.clone();
    let mut digits: Vec<(i64, usize)> = Vec::new();
    for (l, size) in out.iter().enumerate() {
        let (c, without) = rest.affine(l as u32)?;
        rest = without;
        if !c.is(0) && !size.is(1) {
            digits.push((c.as_const().filter(|c| *c > 0)?, l));
        }
    }
    digits.sort_by_key(|d| std::cmp::Reverse(*d));
    let whole = |start: Dim, label| vec![Part { extent: extent.clone(), start, label }];
    match digits[..] {
        [] => return Some(whole(rest, None)),
        [(1, l)] => return Some(whole(rest, Some(l))),
        _ if digits.last().is_none_or(|d| d.0 != 1) => return None,
        _ => {}
    }
    let mut offset = rest.as_const().filter(|c| *c >= 0)?;
    let mut parts = Vec::new();
    for (n, &(stride, l)) in digits.iter().enumerate() {
        let start = offset / stride;
        offset %= stride;
        let size = match n.checked_sub(1).map(|n| digits[n].0) {
            None => extent.div_exact(&Dim::from(stride))?,
            Some(outer) if outer % stride == 0 => {
                let size = outer / stride;
                // Or the digit would carry into the one before.
                let used = start.checked_add(out[l].as_const()?)?;
                if used > size {
                    return None;
                }
                Dim::from(size)
            }
            Some(_) => return None,
        };
        parts.push(Part { extent: size, start: Dim::from(start), label: Some(l) });
    }
    Some(parts)
}
