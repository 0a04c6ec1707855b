//! Scatters: one tile copies the data, then applies the updates in ascending order.

use super::read::{Reader, at_vals};
use super::stage::push;
use super::unbuilt;
use crate::kernel::Store;
use tgc_ir::class::{Combine, Index};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{NodeId, Value};
use tgc_ir::types::{DType, Pred};

/// `out = data`, then `out[at] = combine(out[at], update)` for each element of the updates (the last operand).
pub(crate) fn lower(r: &mut Reader<'_>, id: NodeId, name: &str, ix: &Index) -> Result<(), Diag> {
    let operands = r.cx.region.operands(id);
    let v = Value { node: id, result: 0 };
    let Some(&updates) = operands.last() else { return Ok(()) };
    let arithmetic = matches!(ix.scatter, Some(Combine::Add | Combine::Mul));
    let combines = arithmetic || matches!(ix.scatter, Some(Combine::Min | Combine::Max));
    match r.cx.ty(v).dtype {
        DType::BF16 if combines => return Err(unbuilt(r.cx.region, id, "code for bf16 values combined by")),
        DType::Bool if arithmetic => return Err(unbuilt(r.cx.region, id, "code for bool values summed by")),
        _ => {}
    }
    let (mut b, labels) = r.start(name, v);
    let n = r.read(&mut b, operands[0], &labels, &Pred::True)?;
    b.stage.expr.roots = vec![n];
    r.end(b, id, &labels);

    let (mut b, labels) = r.start(name, updates);
    let vals = r.index_values(&mut b, &operands, ix, &labels, &Pred::True)?;
    let n = r.read(&mut b, updates, &labels, &Pred::True)?;
    b.stage.expr.roots = vec![n];
    let at: Vec<_> = ix.at.iter().map(|d| at_vals(d, &labels, &vals)).collect();
    let site = r.site(id);
    for to in r.targets(v) {
        let op = ix.scatter.unwrap_or(Combine::Set);
        b.stage.stores.push(Store { to, index: at.clone(), value: 0, op, site });
    }
    push(r, b);
    Ok(())
}
