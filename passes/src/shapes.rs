//! `simplify_shapes`: values known from shape arithmetic become constants, and dims in attributes get simpler where the
//! ranges of the symbols allow it.

use crate::pass::{Changed, Cx, Editor, Pass};
use crate::rules::splat::splat_constant;
use crate::rules::{Rewrite, Rule, apply_rules, remake, result, rules};
use tgc_ir::diag::Diag;
use tgc_ir::graph::{Graph, NodeId};
use tgc_ir::ops::{Attr, Attrs, ConstDims, Constant, Op};
use tgc_ir::patch::Patch;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Dim, KnownElem, SymTable, Type};

pub(crate) struct SimplifyShapes;

pub(crate) const RULES: &[Rule] = rules![known_value, simpler_dims];

impl Pass for SimplifyShapes {
    const NAME: &'static str = "simplify_shapes";
    const SUMMARY: &'static str = "turns known values into constants and simplifies dims in attributes";
    const REQUIRED: bool = false;
    const AFTER: &'static [&'static str] = &[];

    fn run(editor: &mut Editor<'_>, _: &mut Cx<'_>) -> Result<Changed, Diag> {
        apply_rules(editor, &[RULES])
    }
}

/// `x = c` for a node whose only result is known: `constant` for numbers, `const_dims` for symbolic integers.
fn known_value(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let node = g.node(id)?;
    let [fact] = &node.results[..] else { return None };
    let keeps = matches!(node.op, Op::Constant(_) | Op::ConstDims(_) | Op::Input(_) | Op::BindDim(_));
    if keeps || !node.regions.is_empty() {
        return None;
    }
    let op = known_op(&fact.ty, &fact.known.as_ref()?.0)?;
    let mut p = Patch::new(g, id);
    let new = p.op(op, &[]).ok()?;
    if p.ty(new) != Some(&fact.ty) {
        return None;
    }
    p.replace(result(id), new);
    Some(p)
}

fn known_op(ty: &Type, elems: &[KnownElem]) -> Option<Op> {
    let scalar = |e: &KnownElem| if let KnownElem::Scalar(s) = e { Some(*s) } else { None };
    if let Some(scalars) = elems.iter().map(scalar).collect::<Option<Vec<Scalar>>>() {
        let right = scalars.iter().all(|s| s.dtype == ty.dtype);
        let shape = ty.as_fixed().filter(|_| right)?;
        if let Some(first) = scalars.first().filter(|f| scalars.len() > 1 && scalars.iter().all(|s| s == *f))
        {
            return Some(splat_constant(ty, *first));
        }
        return Some(Constant { value: Tensor::from_scalars(ty.dtype, &shape, scalars), shape: None }.into());
    }
    if ty.rank() > 1 || !ty.dtype.is_int() {
        return None;
    }
    let dims: Vec<Dim> = elems.iter().map(KnownElem::as_dim).collect::<Option<_>>()?;
    Some(ConstDims { dims, dtype: ty.dtype, scalar: ty.rank() == 0 }.into())
}

/// `op {dims} = op {simpler dims}`, when the types of the results stay as they are.
fn simpler_dims(g: &Graph, id: NodeId) -> Rewrite<'_> {
    let node = g.node(id)?;
    if !node.regions.is_empty() || node.results.len() != 1 || matches!(node.op, Op::Input(_)) {
        return None;
    }
    let mut attrs = Attrs::new();
    let mut changed = false;
    for (name, attr) in node.op.attrs() {
        let new = match &attr {
            Attr::Dim(d) => Attr::Dim(simpler(d, &g.symbols)),
            Attr::Dims(v) => Attr::Dims(v.iter().map(|d| simpler(d, &g.symbols)).collect()),
            _ => attr.clone(),
        };
        changed |= new != attr;
        attrs.insert(name.to_string(), new);
    }
    if !changed {
        return None;
    }
    remake(g, id, Op::from_attrs(node.op.name(), attrs)?.ok()?, &g.operands(id))
}

fn simpler(d: &Dim, symbols: &SymTable) -> Dim {
    d.simplify(&|a| symbols.atom_range(a))
}
