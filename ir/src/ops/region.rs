//! Shared by region ops: types of a region's inputs and results. No op is named here.

use super::InferCx;
use crate::diag::Diag;
use crate::graph::Graph;
use crate::types::Type;

/// Checks that a region takes exactly these types (constraint `id`).
pub(crate) fn check_inputs(cx: &InferCx<'_>, region: &Graph, want: &[Type], id: &str) -> Result<(), Diag> {
    let have: Vec<Type> = region
        .inputs()
        .iter()
        .filter_map(|&i| region.node(i).and_then(|n| n.results.first()).map(|f| f.ty.clone()))
        .collect();
    let list = |v: &[Type]| v.iter().map(Type::to_string).collect::<Vec<_>>().join(", ");
    let text = format!("the region takes ({}) where ({}) is given", list(&have), list(want));
    cx.check(have == want, id, text)
}

/// Types of a region's results.
pub(crate) fn outputs(cx: &InferCx<'_>, region: &Graph) -> Result<Vec<Type>, Diag> {
    let missing = || cx.fail("E-IR-001", "a result of the region is not in the region");
    region.outputs().iter().map(|o| region.ty(o.value).cloned().ok_or_else(missing)).collect()
}
