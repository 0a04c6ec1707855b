//! Lowering: one fused region of the tensor graph to one kernel. `plan` decides which values get a stage of their own,
//! `read` inlines the others into the stages that read them, `stage` builds a stage by class, `post` merges light
//! epilogues, `reuse` lets stages work in place, `pack` chooses how weights lie, `collapse` joins labels, `panels` copies operands of
//! contractions, `params` turns the entry's symbols into dim parameters. Works on classes, never on ops.

mod collapse;
pub(crate) mod math;
mod pack;
mod panels;
mod params;
mod plan;
mod post;
mod read;
mod reuse;
mod scan;
mod scatter;
mod stage;
#[cfg(test)]
pub(crate) mod tests;

use crate::kernel::{Arg, Kernel, Role};
use plan::Plan;
use read::Reader;
use std::collections::BTreeMap;
use tgc_ir::class::Class;
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId, Value};
use tgc_ir::ops::Lowering;
use tgc_ir::tiling::{Tiling, tiling};
use tgc_ir::types::{Dim, SymTable, Type};

/// A kernel and what a launch of it needs.
pub struct Lowered {
    /// The kernel; its arguments are the region's inputs in order, then its outputs.
    pub kernel: Kernel,
    /// Value of each dim parameter over the entry's symbols.
    pub dims: Vec<Dim>,
    /// For each trap site, the region's node it belongs to.
    pub sites: Vec<NodeId>,
    /// Where in the user's model the work comes from.
    pub label: String,
}

/// Lowers a region. `consts[i]` says that input i is a weight. `Err` names what cannot be compiled yet.
pub fn lower_region(region: &Graph, symbols: &SymTable, consts: &[bool]) -> Result<Lowered, Diag> {
    let Some(mut tiles) = tiling(region)? else {
        return Err(Diag::error(
            "E-CG-001",
            "a fused region is not one kernel: its parts share no parallel axis",
        )
        .note(format!(
            "outputs: {}",
            region.outputs().iter().map(|o| o.name.as_ref()).collect::<Vec<_>>().join(", ")
        ))
        .help("this is a bug of the fusion pass: please report it with the model"));
    };
    let classes = classes(region)?;
    if classes.values().any(|c| matches!(c, Class::Index(ix) if ix.scatter.is_some())) {
        // updates may meet anywhere in the output: one tile applies them in order
        tiles = Tiling { grid: Vec::new(), axes: BTreeMap::new() };
    }
    let cx = Cx { region, symbols, tiles, classes };
    let plan = Plan::new(&cx);
    let mut kernel = Kernel {
        name: name_of(&cx),
        params: Vec::new(),
        args: args(region, consts)?,
        grid: cx.tiles.grid.clone(),
        locals: Vec::new(),
        body: Vec::new(),
        sites: Vec::new(),
    };
    let mut reader = Reader::new(&cx, &plan, &mut kernel);
    for id in plan.stages() {
        stage::lower(&mut reader, *id)?;
    }
    let sites = reader.sites();
    post::merge(&mut kernel);
    reuse::in_place(&mut kernel);
    pack::choose(&mut kernel);
    collapse::collapse(&mut kernel);
    panels::add(&mut kernel);
    let dims = params::extract(&mut kernel);
    let label = label(&cx);
    Ok(Lowered { kernel, dims, sites, label })
}

/// The region at hand with what was found out about it.
pub(crate) struct Cx<'a> {
    pub(crate) region: &'a Graph,
    pub(crate) symbols: &'a SymTable,
    pub(crate) tiles: Tiling,
    pub(crate) classes: BTreeMap<NodeId, Class>,
}

impl Cx<'_> {
    /// Type of a value (an empty one for a value that does not exist, which the verifier has excluded).
    pub(crate) fn ty(&self, v: Value) -> Type {
        self.region.ty(v).cloned().unwrap_or_else(|| Type::scalar(tgc_ir::types::DType::Bool))
    }

    /// Grid axis of each axis of a value.
    pub(crate) fn axes(&self, v: Value) -> Vec<Option<usize>> {
        self.tiles.axes.get(&v).cloned().unwrap_or_else(|| vec![None; self.ty(v).rank()])
    }
}

fn classes(region: &Graph) -> Result<BTreeMap<NodeId, Class>, Diag> {
    let mut out = BTreeMap::new();
    for id in region.topo() {
        let Some(node) = region.node(id) else { continue };
        let ins: Vec<Type> = region.operands(id).iter().filter_map(|v| region.ty(*v).cloned()).collect();
        let outs: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
        match node.op.lower(&ins, &outs, &region.symbols)? {
            Lowering::Class(Class::Opaque(_)) => return Err(unbuilt(region, id, "the runtime kernel of")),
            Lowering::Class(c) => {
                out.insert(id, c);
            }
            Lowering::Structure if matches!(node.op.name(), "input" | "constant") => {}
            _ => return Err(unbuilt(region, id, "code for")),
        }
    }
    Ok(out)
}

pub(crate) fn unbuilt(region: &Graph, id: NodeId, what: &str) -> Diag {
    let name = region.op_of(id).map_or("?", |o| o.name());
    Diag::error("E-CG-002", format!("{what} `{name}` is not built yet"))
        .at(&region.loc(id))
        .help("the reference interpreter runs it; compiled code for it is planned")
}

fn args(region: &Graph, consts: &[bool]) -> Result<Vec<Arg>, Diag> {
    let mut out = Vec::new();
    let mut arg = |v: Value, name: String, role: Role| -> Result<(), Diag> {
        let t = region.ty(v).ok_or_else(|| Diag::error("E-CG-003", "a region's value has no type"))?;
        if t.dtype.is_storage_only() {
            return Err(Diag::error(
                "E-CG-004",
                format!("code for values of type {} is not built yet", t.dtype),
            )
            .at(&region.loc(v.node))
            .help("cast to a type of at least 8 bits that is computed with"));
        }
        out.push(Arg { name, dtype: t.dtype, dims: t.shape.clone(), role, packed: None });
        Ok(())
    };
    for (i, &id) in region.inputs().iter().enumerate() {
        let weight = consts.get(i).copied().unwrap_or(false);
        let (name, role) = if weight { (format!("w{i}"), Role::Const) } else { (format!("x{i}"), Role::In) };
        arg(Value { node: id, result: 0 }, name, role)?;
    }
    for (i, o) in region.outputs().iter().enumerate() {
        arg(o.value, format!("y{i}"), Role::Out)?;
    }
    Ok(out)
}

/// The place of the node with the most work, and how many other places have a part in it.
fn label(cx: &Cx<'_>) -> String {
    let weight = |id: &NodeId| match cx.classes.get(id) {
        Some(Class::Contract(_)) => 3,
        Some(Class::Map(_)) => 1,
        Some(Class::View(_)) | None => 0,
        Some(_) => 2,
    };
    let mut places: BTreeMap<String, u32> = BTreeMap::new();
    let mut first: Option<(u32, String)> = None;
    for id in cx.region.topo().into_iter().filter(|id| cx.classes.contains_key(id)) {
        let place = cx.region.loc(id).place.to_string();
        if place.is_empty() {
            continue;
        }
        let w = weight(&id);
        if first.as_ref().is_none_or(|f| w > f.0) {
            first = Some((w, place.clone()));
        }
        let known = places.entry(place).or_default();
        *known = (*known).max(w);
    }
    // views alone are no work worth a word
    let others = places.values().filter(|w| **w > 0).count().saturating_sub(1);
    match (first, others) {
        (None, _) => String::new(),
        (Some((_, place)), 0) => place,
        (Some((_, place)), n) => format!("{place} +{n}"),
    }
}

/// A readable name: the ops of the region in order, the commonest view ops left out, cut to a length.
fn name_of(cx: &Cx<'_>) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let ids: Vec<NodeId> = cx.region.topo().into_iter().filter(|i| cx.classes.contains_key(i)).collect();
    for keep_views in [false, true] {
        for id in &ids {
            if keep_views || !matches!(cx.classes.get(id), Some(Class::View(_))) {
                parts.push(cx.region.op_of(*id).map_or("?", |o| o.name()));
            }
        }
        if !parts.is_empty() {
            break;
        }
    }
    let more = parts.len() > 6;
    parts.truncate(6);
    format!("{}{}", parts.join("_"), if more { "_etc" } else { "" })
}
