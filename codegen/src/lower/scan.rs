//! Prefix operations: carried state in locals, a sequential loop along the axis.

use super::read::{Building, Reader, push_load};
use crate::kernel::{Buf, Item, Load, Mode, Store};
use tgc_ir::class::{Combine, Cumulate};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{NodeId, Value};
use tgc_ir::types::{Dim, Pred};

/// `state = init` everywhere, then for each position along the axis: new state from the element, result from the new (or
/// old, when exclusive) state.
pub(crate) fn lower(r: &mut Reader<'_>, id: NodeId, name: &str, c: &Cumulate) -> Result<(), Diag> {
    let v = Value { node: id, result: 0 };
    let operand = r.cx.region.operands(id)[0];
    let (ty, axes) = (r.cx.ty(v), r.cx.axes(v));
    let keep = |i: &usize| *i != c.axis;
    let state_axes: Vec<Option<usize>> = (0..ty.rank()).filter(keep).map(|i| axes[i]).collect();
    let state_dims: Vec<Dim> = (0..ty.rank()).filter(keep).map(|i| ty.shape[i].clone()).collect();
    let states: Vec<Buf> =
        c.reducer.init.iter().map(|s| Buf::Local(r.new_local(s.dtype, &state_axes, &state_dims))).collect();

    let (mut b, labels) = without_axis(r, name, v, c.axis);
    b.stage.expr.roots = c.reducer.init.iter().map(|s| b.stage.expr.constant(*s)).collect();
    b.stage.stores = states.iter().enumerate().map(|(i, s)| store(*s, &labels, i as u32)).collect();
    r.kernel.body.push(Item::Stage(b.stage));

    let var = r.fresh();
    let extent = ty.shape[c.axis].clone();
    let (mut b, labels) = without_axis(r, name, v, c.axis);
    b.extents.insert(var, extent.clone());
    let at = if c.reverse { extent.clone() - Dim::from(1) - Dim::label(var) } else { Dim::label(var) };
    let mut index = labels.clone();
    index.insert(c.axis, at);
    let mut old = Vec::new();
    for (s, init) in states.iter().zip(&c.reducer.init) {
        let load = Load { from: *s, index: labels.clone(), mode: Mode::Proved };
        old.push(push_load(&mut b.stage, load, init.dtype));
    }
    let x = r.read(&mut b, operand, &index, &Pred::True)?;
    let pos = b.stage.expr.dim(Dim::label(var));
    let mut args = old.clone();
    args.extend([x, pos]);
    let new = b.stage.expr.inline(&c.reducer.step, &args);
    let result = b.stage.expr.inline(&c.reducer.finish, if c.exclusive { &old } else { &new });
    b.stage.expr.roots = new.clone();
    b.stage.expr.roots.extend(&result);
    for to in r.targets(v) {
        b.stage.stores.push(store(to, &index, new.len() as u32));
    }
    b.stage.stores.extend(states.iter().enumerate().map(|(i, s)| store(*s, &labels, i as u32)));
    r.kernel.body.push(Item::Loop { var, lo: Dim::from(0), hi: extent, body: vec![Item::Stage(b.stage)] });
    Ok(())
}

fn store(to: Buf, index: &[Dim], value: u32) -> Store {
    Store { to, index: index.to_vec(), value, op: Combine::Set, site: 0 }
}

/// A stage over every axis of `v` but one.
fn without_axis(r: &mut Reader<'_>, name: &str, v: Value, axis: usize) -> (Building, Vec<Dim>) {
    let (mut b, mut labels) = r.start(name, v);
    let gone = labels.remove(axis);
    b.stage.inner.retain(|(l, _)| Dim::label(*l) != gone);
    (b, labels)
}
