//! Chooses the packed form of weights: a weight that one contraction reads is cut into panels along the label the results
//! are contiguous in, so that a register block reads it front to back.

use crate::kernel::{Buf, Kernel, Kind, Load, Packed, Role, Stage};
use tgc_ir::types::{Atom, Dim};

/// Elements of a panel: the width of a register block with 32-byte vectors, one vector of 64 bytes. One form serves all
/// instruction sets and numbers of rows.
const PANEL: u32 = 16;

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
    packed(stage, load, &a.dims)
}

fn packed(s: &Stage, l: &Load, dims: &[Dim]) -> Option<Packed> {
    let label = contiguous(s)?;
    let uses = |d: &Dim, label: u32| d.any_leaf(|a| *a == Atom::Label(label));
    let moving: Vec<usize> = (0..dims.len()).filter(|i| uses(&l.index[*i], label)).collect();
    let &[axis] = &moving[..] else { return None };
    let plain = l.index[axis] == Dim::label(label);
    if !plain || dims[axis].as_const().is_none_or(|d| d < LEAST) {
        return None;
    }
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

/// The label all stores of a stage are contiguous in.
fn contiguous(s: &Stage) -> Option<u32> {
    let points: Vec<u32> = s.over.iter().copied().chain(s.inner.iter().map(|l| l.0)).collect();
    let mut labels = s.stores.iter().map(|st| {
        let last = st.index.last()?;
        points.iter().copied().find(|l| *last == Dim::label(*l))
    });
    let first = labels.next()??;
    labels.all(|l| l == Some(first)).then_some(first)
}
