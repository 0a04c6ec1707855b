//! Inlines a function that the model itself defines at the node that calls it.

use super::check::Res;
use super::graph::{Slot, default_opset};
use super::node::NodeCx;
use tgc_proto::FunctionProto;

/// The results of calling `f`.
pub(crate) fn call<'m>(cx: &mut NodeCx<'_, 'm>, f: &'m FunctionProto) -> Res<Vec<Slot>> {
    let name = f.name.as_deref().unwrap_or("");
    if cx.ins.len() > f.input.len() {
        let m = format!("{} operands given to a function of {}", cx.ins.len(), f.input.len());
        return Err(cx.fail("E-ONNX-020", m).into());
    }
    let mut scope = cx.scope.closed(&format!(", in function `{name}` called by {}", cx.loc.place));
    scope.opset = default_opset(&f.opset_import).or(scope.opset);
    scope.args.clear();
    for a in &f.attribute_proto {
        scope.args.insert(a.name.as_deref().unwrap_or(""), a);
    }
    for n in &f.attribute {
        if let Some(a) = cx.attrs.raw(n) {
            scope.args.insert(n, a);
        }
    }
    for a in &f.attribute_proto {
        if let Some(given) = cx.attrs.raw(a.name.as_deref().unwrap_or("")) {
            scope.args.insert(a.name.as_deref().unwrap_or(""), given);
        }
    }
    for (i, n) in f.input.iter().enumerate() {
        scope.define(n, cx.opt(i).map_or(Slot::Absent, Slot::Val));
    }
    cx.im.nodes(cx.g, &mut scope, &f.node);
    let missing =
        |n: &str| cx.fail("E-ONNX-009", format!("output `{n}` of the function is produced by nothing"));
    f.output.iter().map(|n| scope.get(n).ok_or_else(|| missing(n).into())).collect()
}
