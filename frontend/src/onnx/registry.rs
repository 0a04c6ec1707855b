//! Finds the importer of an operator: a special one from `composite`, else the IR op that says of itself that it is this
//! ONNX operator. No operator is named here.

use super::check::Res;
use super::composite;
use super::graph::is_default_domain;
use super::node::NodeCx;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Arity, Onnx, Op, Spec};
use tgc_proto::FunctionProto;

/// Imports one node: its results in order.
pub(crate) type Handler = fn(&mut NodeCx<'_, '_>) -> Res<Vec<Value>>;

/// An operator with the opsets (first, last) for which the handler is right.
pub(crate) type Row = (&'static str, i64, i64, Handler);

/// Newest.
pub(crate) const ANY: i64 = i64::MAX;

/// Oldest and newest opset of the default domain that are understood.
pub(crate) const OPSETS: (i64, i64) = (1, 28);

/// How an operator is imported.
pub(crate) enum Found<'m> {
    /// By a function of `composite`.
    Handler(Handler),
    /// As the IR op of this name, attributes and operands alike.
    Direct(&'static str),
    /// By inlining a function of the model.
    Function(&'m FunctionProto),
}

type Table = BTreeMap<&'static str, Vec<(i64, i64, Found<'static>)>>;

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut t = Table::new();
        for &(op, since, until, f) in composite::ROWS.iter().copied().flatten() {
            t.entry(op).or_default().push((since, until, Found::Handler(f)));
        }
        for &name in Op::all() {
            // variadic ops are region ops and those with attributes ONNX spells otherwise: they need an importer
            if let Some(Spec { onnx: Onnx::Op(op, since, until), arity: Arity::Fixed(_), .. }) =
                Op::spec_of(name)
            {
                t.entry(op).or_default().push((since, until, Found::Direct(name)));
            }
        }
        t
    })
}

/// The importer of `op` of `domain`, or why there is none.
pub(crate) fn find<'m>(domain: &str, op: &str, opset: Option<i64>) -> Result<Found<'m>, String> {
    if !is_default_domain(Some(domain)) {
        return Err(format!("operators of domain `{domain}` are not known"));
    }
    let Some(opset) = opset else {
        return Err(
            "the model imports no opset of the default domain, so its meaning is not defined".to_string()
        );
    };
    let Some(rows) = table().get(op) else { return Err("no importer for it exists".to_string()) };
    match rows.iter().find(|r| r.0 <= opset && opset <= r.1) {
        Some((_, _, Found::Handler(f))) => Ok(Found::Handler(*f)),
        Some((_, _, Found::Direct(name))) => Ok(Found::Direct(name)),
        _ => {
            let to = |u: i64| if u == ANY { "newer".to_string() } else { u.to_string() };
            let list: Vec<String> = rows.iter().map(|r| format!("{} to {}", r.0, to(r.1))).collect();
            Err(format!("its meaning in opset {opset} is not known (known: {})", list.join(", ")))
        }
    }
}
