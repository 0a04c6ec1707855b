//! Chooses the packed form of weights: a weight that one contraction reads is cut into panels along the label that a
//! register block's vectors run along, so that the block reads it front to back.

use crate::kernel::{Buf, Kernel, Kind, Load, Mode, Packed, Role, Stage, flat, packed_label, without_panels};
use tgc_ir::types::{Atom, Dim};

/// Elements of a panel: the width of a register block with 32-byte vectors, one vector of 64 bytes. One form serves all
/// instruction sets and numbers of rows.
pub(super) const PANEL: u32 = 16;

/// Extents along the panels below which padding would outweigh the gain.
const LEAST: i64 = 8;

/// Packs what can be packed.
pub(crate) fn choose(kernel: &mut Kernel) {
    for i in 0..kernel.args.len() {
        let form = form(kernel, i as u32);
        kernel.args[i].packed = form;
    }
}

fn form(k: &Kernel, arg: u32) -> Option<Packed> {
    let a = &k.args[arg as usize];
    let known = a.dims.iter().all(|d| d.as_const().is_some_and(|d| d > 0));
    if a.role != Role::Const || !known || a.dims.len() < 2 {
        return None;
    }
    let stages = k.stages();
    let mut reads = stages
        .iter()
        .flat_map(|s| s.loads.iter().map(move |l| (*s, l)))
        .filter(|(_, l)| l.from == Buf::Arg(arg));
    let (stage, load) = reads.next()?;
    if reads.next().is_some() || !matches!(stage.kind, Kind::Contract { .. }) {
        return None;
    }
    packed(k, stage, load, &a.dims)
}

fn packed(k: &Kernel, s: &Stage, l: &Load, dims: &[Dim]) -> Option<Packed> {
    let label = panel_label(k, s, l, dims)?;
    let axis = l.index.iter().position(|d| *d == Dim::label(label))?;
    // Axes of points first, then the panels, then the axes of the sum in its order.
    let place = |i: usize| -> usize {
        if i == axis {
            return 1;
        }
        let last = s.red.iter().rposition(|r| uses(&l.index[i], r.0));
        last.map_or(0, |r| r + 2)
    };
    let mut order: Vec<u32> = (0..dims.len() as u32).collect();
    order.sort_by_key(|i| place(*i as usize));
    Some(Packed { width: PANEL, axis: axis as u32, order })
}

/// The point label a block's vectors should run along: one of the weight's, that the other operand is contiguous in or
/// does not move with. The label that the results are contiguous in is best; without it, none where the other operand has
/// vectors along the results itself.
fn panel_label(k: &Kernel, s: &Stage, l: &Load, dims: &[Dim]) -> Option<u32> {
    // Whole groups of channels are the same for all lanes of a vector.
    let step = |b: Buf, index: &[Dim], label: u32| {
        without_panels(&flat(k, b, index)?, label, LEAST as u32).affine(label)?.0.as_const()
    };
    let others: Vec<&Load> = s
        .loads
        .iter()
        .filter(|o| *o != l && s.red.iter().any(|r| o.index.iter().any(|d| uses(d, r.0))))
        .collect();
    let points = s.over.iter().copied().chain(s.inner.iter().map(|i| i.0));
    let contiguous = |label: u32| s.stores.iter().all(|st| step(st.to, &st.index, label) == Some(1));
    let fits = |label: &u32| {
        let moving: Vec<usize> = (0..dims.len()).filter(|i| uses(&l.index[*i], *label)).collect();
        let &[axis] = &moving[..] else { return false };
        l.index[axis] == Dim::label(*label)
            && dims[axis].as_const().is_some_and(|d| d >= LEAST)
            && others.iter().all(|o| matches!(step(o.from, &o.index, *label), Some(0 | 1)))
    };
    let candidates: Vec<u32> = points.clone().filter(fits).collect();
    if let Some(&best) = candidates.iter().find(|c| contiguous(**c)) {
        return Some(best);
    }
    let vectors_elsewhere = points
        .filter(|p| contiguous(*p))
        .any(|p| others.iter().any(|o| o.mode == Mode::Proved && step(o.from, &o.index, p) == Some(1)));
    if vectors_elsewhere { None } else { candidates.into_iter().next() }
}

/// The label that a contraction's register block has its vectors along: a packed weight's, else the one that the results
/// are contiguous in.
pub(super) fn vector_label(k: &Kernel, s: &Stage) -> Option<u32> {
    let mut points = s.over.iter().copied().chain(s.inner.iter().map(|i| i.0));
    let contiguous = |label: u32| {
        let step = |b: Buf, index: &[Dim]| flat(k, b, index)?.affine(label)?.0.as_const();
        s.stores.iter().all(|st| step(st.to, &st.index) == Some(1))
    };
    packed_label(k, s).or_else(|| points.find(|p| contiguous(*p)))
}

fn uses(d: &Dim, label: u32) -> bool {
    d.any_leaf(|a| *a == Atom::Label(label))
}
