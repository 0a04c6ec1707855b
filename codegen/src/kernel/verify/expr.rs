//! Types of scalar programs: operands before users, operations defined on their types, inputs of the promised types.

use tgc_ir::class::Reducer;
use tgc_ir::scalar::{ENode, Expr};
use tgc_ir::types::{Atom, DType, Dim};

/// What a program may use.
pub(super) struct Context<'a> {
    /// Types of `Arg(0)..`.
    pub(crate) args: &'a [DType],
    /// True for leaves a dim node may use.
    pub(crate) leaf: &'a dyn Fn(&Atom) -> bool,
}

impl Context<'_> {
    /// First fault of `e`, in words.
    pub(crate) fn check(&self, e: &Expr) -> Result<(), String> {
        for (at, (node, dtype)) in e.nodes.iter().enumerate() {
            if let Some(o) = node.operands().into_iter().find(|o| *o as usize >= at) {
                return Err(format!("node ${at} uses ${o}, which does not come before it"));
            }
            if dtype.is_storage_only() {
                return Err(format!(
                    "node ${at} has type {dtype}, which can be stored but not computed with"
                ));
            }
            let want = self.result(e, node, *dtype).map_err(|m| format!("node ${at}: {m}"))?;
            if want != *dtype {
                return Err(format!("node ${at} has type {dtype}, its operation gives {want}"));
            }
        }
        match e.roots.iter().find(|r| **r as usize >= e.nodes.len()) {
            Some(r) => Err(format!("the result ${r} does not exist")),
            None => Ok(()),
        }
    }

    fn result(&self, e: &Expr, node: &ENode, dtype: DType) -> Result<DType, String> {
        let ty = |n: &u32| e.dtype(*n);
        match node {
            ENode::Arg(i) => match self.args.get(*i as usize) {
                Some(t) => Ok(*t),
                None => Err(format!("input {i} does not exist (there are {})", self.args.len())),
            },
            ENode::Const(s) if s.bits >> (dtype.bits() - 1) >> 1 != 0 => {
                Err(format!("{:x} is no {dtype}", s.bits))
            }
            ENode::Const(s) => Ok(s.dtype),
            ENode::Dim(d) => match bad_leaf(d, self.leaf) {
                Some(a) => Err(format!("`{a}` has no value in `{d}`")),
                None => Ok(DType::I64),
            },
            ENode::Un(op, a) => {
                op.result(ty(a)).ok_or_else(|| format!("{} is not defined on {}", op.name(), ty(a)))
            }
            ENode::Bin(op, a, b) if ty(a) == ty(b) => {
                op.result(ty(a)).ok_or_else(|| format!("{} is not defined on {}", op.name(), ty(a)))
            }
            ENode::Bin(op, a, b) => Err(format!("{} of {} and {}", op.name(), ty(a), ty(b))),
            ENode::Fma(a, b, c) if ty(a) != ty(b) || ty(a) != ty(c) || ty(a) == DType::Bool => {
                Err(format!("fma of {}, {} and {}", ty(a), ty(b), ty(c)))
            }
            ENode::Fma(a, ..) => Ok(ty(a)),
            ENode::Select(c, a, b) if ty(c) != DType::Bool || ty(a) != ty(b) => {
                Err(format!("select of {}, {} and {}", ty(c), ty(a), ty(b)))
            }
            ENode::Select(_, a, _) => Ok(ty(a)),
            ENode::Cast(_) => Ok(dtype),
            ENode::Bitcast(a)
                if ty(a).bits() != dtype.bits() || (ty(a) == DType::Bool) != (dtype == DType::Bool) =>
            {
                Err(format!("bitcast of {} to {dtype}", ty(a)))
            }
            ENode::Bitcast(_) => Ok(dtype),
        }
    }
}

/// A leaf of `d` that is not allowed.
pub(super) fn bad_leaf(d: &Dim, allowed: &dyn Fn(&Atom) -> bool) -> Option<Atom> {
    let mut bad = None;
    d.leaves(&mut |a| {
        if bad.is_none() && !allowed(a) {
            bad = Some(a.clone());
        }
    });
    bad
}

/// Result types of a reducer over inputs of the given types, or its first fault in words.
pub(super) fn reducer(
    r: &Reducer,
    inputs: &[DType],
    leaf: &dyn Fn(&Atom) -> bool,
) -> Result<Vec<DType>, String> {
    let state: Vec<DType> = r.init.iter().map(|s| s.dtype).collect();
    if state.is_empty() {
        return Err("the reducer has no state".into());
    }
    let part = |name: &str, e: &Expr, args: &[DType], want: Option<&[DType]>| -> Result<Vec<DType>, String> {
        Context { args, leaf }.check(e).map_err(|m| format!("{name}: {m}"))?;
        let got: Vec<DType> = e.roots.iter().map(|r| e.dtype(*r)).collect();
        match want {
            Some(w) if w != &got[..] => Err(format!("{name} gives {got:?}, the state is {w:?}")),
            _ => Ok(got),
        }
    };
    let step: Vec<DType> = state.iter().chain(inputs).copied().chain([DType::I64]).collect();
    part("step", &r.step, &step, Some(&state))?;
    let two: Vec<DType> = state.iter().chain(&state).copied().collect();
    part("combine", &r.combine, &two, Some(&state))?;
    part("finish", &r.finish, &state, None)
}
