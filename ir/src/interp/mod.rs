//! The reference interpreter: evaluates every class and region plainly, and is the oracle for passes and code. It can
//! carry a first-order error bound for each element: how far a correct lower-precision evaluation, each op within its
//! accuracy class, may be from the value given here. It matches on classes and on the structure ops, never on others.
//!
//! Every op's result is rounded to its type; within reductions and contractions floats are accumulated in f64.

mod bind;
mod bound;
mod classes;
mod contract;
mod cumulate;
mod exec;
mod expr;
mod index;
mod indexed;
mod map;
mod opaque;
mod reduce;
mod value;
mod view;
mod window;

#[cfg(test)]
mod tests;

pub use bind::{Bindings, bind};

#[cfg(test)]
use crate::class::Class;
use crate::diag::Diag;
use crate::graph::Graph;
use crate::module::Module;
use crate::ops::Op;
use crate::tensor::Tensor;
#[cfg(test)]
use crate::types::{Atom, DType};
use crate::types::{SymTable, Type};
use exec::{Exec, Step};
use std::rc::Rc;
use value::Val;

/// Bytes that live values may take together in one run.
pub(crate) const MEMORY_BUDGET: u64 = 8 << 30;

/// Gives weights by name.
pub type Weights<'a> = &'a dyn Fn(&str) -> Option<Tensor>;

/// A result with an error bound for each element.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounded {
    /// The value.
    pub tensor: Tensor,
    /// How far a correct evaluation may be from each element; infinite where nothing can be said.
    pub bound: Vec<f64>,
}

/// Runs an entry: the first variant whose condition holds, else its body. `inputs` are all inputs of the signature in
/// order, states among them, or all but those with a default. Gives the outputs in order, new states among them.
pub fn run(module: &Module, entry: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, Diag> {
    let vals = enter(module, entry, inputs, false)?;
    Ok(vals.iter().map(|v| v.to_tensor()).collect())
}

/// [`run`] with error bounds.
pub fn run_bounded(module: &Module, entry: &str, inputs: &[Tensor]) -> Result<Vec<Bounded>, Diag> {
    Ok(with_bounds(&enter(module, entry, inputs, true)?))
}

/// Runs one graph (no variants) with weights from wherever the caller has them.
pub fn run_graph(graph: &Graph, inputs: &[Tensor], weights: Weights<'_>) -> Result<Vec<Tensor>, Diag> {
    let vals = checked(graph, inputs, weights, false)?;
    Ok(vals.iter().map(|v| v.to_tensor()).collect())
}

/// [`run_graph`] with error bounds.
pub fn run_graph_bounded(
    graph: &Graph,
    inputs: &[Tensor],
    weights: Weights<'_>,
) -> Result<Vec<Bounded>, Diag> {
    Ok(with_bounds(&checked(graph, inputs, weights, true)?))
}

/// Evaluates one node on known operands, for constant folding. A symbol without a value is an error.
pub fn eval_node(
    op: &Op,
    ins: &[Tensor],
    regions: &[Graph],
    symbols: &SymTable,
    bindings: &Bindings,
    outs: &[Type],
) -> Result<Vec<Tensor>, Diag> {
    let none = |_: &str| None;
    let exec = Exec::new(&none, MEMORY_BUDGET, false);
    let vals = ins.iter().map(|t| Val::from_tensor(t).map(Rc::new)).collect::<Result<Vec<_>, _>>()?;
    let types: Vec<Type> = ins.iter().map(Tensor::ty).collect();
    let step = Step { op, regions, symbols, ins: &types, outs };
    let out = exec.step(&step, &vals, &mut bindings.clone())?;
    Ok(out.iter().map(|v| v.to_tensor()).collect())
}

/// Evaluates a class; `outs` are the results' types with sizes, `leaf` gives the values of symbols.
#[cfg(test)]
pub(crate) fn eval_class(
    class: &Class,
    ins: &[Tensor],
    outs: &[(DType, Vec<usize>)],
    leaf: &dyn Fn(&Atom) -> Option<i64>,
) -> Result<Vec<Tensor>, Diag> {
    let vals = ins.iter().map(Val::from_tensor).collect::<Result<Vec<_>, _>>()?;
    let refs: Vec<&Val> = vals.iter().collect();
    let job = classes::Job { ins: &refs, outs, leaf, bounded: false };
    Ok(classes::eval(class, &job)?.iter().map(Val::to_tensor).collect())
}

fn with_bounds(vals: &[Rc<Val>]) -> Vec<Bounded> {
    let one = |v: &Rc<Val>| Bounded {
        tensor: v.to_tensor(),
        bound: v.err.clone().unwrap_or_else(|| vec![0.0; v.numel()]),
    };
    vals.iter().map(one).collect()
}

fn enter(module: &Module, entry: &str, inputs: &[Tensor], bounded: bool) -> Result<Vec<Rc<Val>>, Diag> {
    let Some(e) = module.entries.get(entry) else {
        let names: Vec<&str> = module.entries.keys().map(String::as_str).collect();
        return Err(Diag::error("E-RUN-009", format!("there is no entry `{entry}`"))
            .help(format!("entries: {}", names.join(", "))));
    };
    let weights = |name: &str| module.weights.get(name).cloned();
    let inputs = with_defaults(&e.body, inputs, &weights)?;
    check_types(&e.body, &inputs)?;
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|t| t.shape.clone()).collect();
    let b = bind::solve(&e.body, &shapes)?;
    for v in &e.variants {
        if v.when.eval(&bind::leaf(&b)).map_err(|e| index::dim_error(&e))? {
            return match &v.body {
                Ok(g) => checked(g, &inputs, &weights, bounded),
                Err(why) => {
                    Err(Diag::error("E-RUN-008", format!("these sizes (`{}`) cannot run: {why}", v.when))
                        .help("give inputs of other sizes"))
                }
            };
        }
    }
    checked(&e.body, &inputs, &weights, bounded)
}

/// Adds the weights that are defaults where only the other inputs are given.
fn with_defaults(graph: &Graph, inputs: &[Tensor], weights: Weights<'_>) -> Result<Vec<Tensor>, Diag> {
    let ids = graph.inputs();
    let default = |id| match graph.op_of(id) {
        Some(Op::Input(i)) => i.default.clone(),
        _ => None,
    };
    let needed = ids.iter().filter(|&&id| default(id).is_none()).count();
    if inputs.len() == ids.len() || inputs.len() != needed {
        return Ok(inputs.to_vec());
    }
    let mut given = inputs.iter();
    let mut out = Vec::with_capacity(ids.len());
    for &id in ids {
        let t = match default(id) {
            None => given.next().cloned(),
            Some(name) => weights(&name),
        };
        out.push(t.ok_or_else(|| {
            Diag::error("E-RUN-020", "the default value of an input is not in the weight store")
                .at(&graph.loc(id))
        })?);
    }
    Ok(out)
}

fn check_types(graph: &Graph, inputs: &[Tensor]) -> Result<(), Diag> {
    for (&id, t) in graph.inputs().iter().zip(inputs) {
        if let Some(Op::Input(i)) = graph.op_of(id)
            && i.dtype != t.dtype
        {
            let msg = format!("input `{}` has element type {}; allowed: {}", i.name, t.dtype, i.dtype);
            return Err(Diag::error("E-RUN-002", msg)
                .at(&graph.loc(id))
                .help(format!("convert it to {}", i.dtype)));
        }
    }
    Ok(())
}

/// Binds, checks guards and runs.
fn checked(
    graph: &Graph,
    inputs: &[Tensor],
    weights: Weights<'_>,
    bounded: bool,
) -> Result<Vec<Rc<Val>>, Diag> {
    check_types(graph, inputs)?;
    let shapes: Vec<Vec<usize>> = inputs.iter().map(|t| t.shape.clone()).collect();
    let mut b = bind(graph, &shapes)?;
    let mut exec = Exec::new(weights, MEMORY_BUDGET, bounded);
    exec.guards = graph.all_guards();
    let vals = inputs.iter().map(|t| Val::from_tensor(t).map(Rc::new)).collect::<Result<Vec<_>, _>>()?;
    exec.graph(graph, &vals, &mut b)
}
