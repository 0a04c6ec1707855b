//! Stages that only turn one local buffer into another of the same form work in place: a chain of scores, exponentials
//! and quotients needs one buffer in a tile, and tiles get larger.

use crate::kernel::{Buf, Item, Kernel, Kind, Mode, Stage};
use tgc_ir::class::Combine;

/// Lets stages store to a local that they read for the last time, where each point stores the element that it read.
/// Only straight lists of stages: a loop's locals carry state.
pub(crate) fn in_place(kernel: &mut Kernel) {
    let mut at = 0;
    while at < kernel.body.len() {
        match replacement(kernel, at) {
            Some((old, new)) => rename(kernel, old, new),
            None => at += 1,
        }
    }
    super::post::drop_locals(kernel);
}

/// A local that stage `at` makes, and the one it can be written over.
fn replacement(kernel: &Kernel, at: usize) -> Option<(Buf, Buf)> {
    let Item::Stage(s) = &kernel.body[at] else { return None };
    let [store] = &s.stores[..] else { return None };
    let Buf::Local(new) = store.to else { return None };
    let first = !kernel.body[..at].iter().any(|i| touches(i, store.to));
    if s.kind != Kind::Map || store.op != Combine::Set || !first {
        return None;
    }
    let fits = |old: &Buf| {
        let Buf::Local(o) = *old else { return false };
        let (a, b) = (&kernel.locals[o as usize], &kernel.locals[new as usize]);
        let same_place = |s: &Stage| {
            let mut loads = s.loads.iter().filter(|l| l.from == *old);
            loads.all(|l| l.index == store.index && l.mode == Mode::Proved)
        };
        let last = !kernel.body[at + 1..].iter().any(|i| touches(i, *old));
        o != new && a.dtype == b.dtype && a.axes == b.axes && same_place(s) && last
    };
    s.loads.iter().map(|l| l.from).find(fits).map(|old| (store.to, old))
}

fn touches(item: &Item, buf: Buf) -> bool {
    match item {
        Item::Stage(s) => s.loads.iter().any(|l| l.from == buf) || s.stores.iter().any(|st| st.to == buf),
        Item::Loop { body, .. } => body.iter().any(|i| touches(i, buf)),
    }
}

fn rename(kernel: &mut Kernel, from: Buf, to: Buf) {
    super::post::visit(&mut kernel.body, &mut |s| {
        let renamed = |b: &mut Buf| {
            if *b == from {
                *b = to;
            }
        };
        s.loads.iter_mut().for_each(|l| renamed(&mut l.from));
        s.stores.iter_mut().for_each(|st| renamed(&mut st.to));
    });
}
