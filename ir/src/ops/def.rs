//! What every op says of itself: the [`OpDef`] trait and the types it speaks in. No op is named here.

use super::Op;
use crate::class::{Class, Opaque};
use crate::diag::{Diag, Loc};
use crate::graph::{Graph, Value};
use crate::types::{Dim, Fact, Pred, SymTable, Type};

/// Names and number of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly these.
    Fixed(&'static [&'static str]),
    /// The first `1` are needed, the others may be left out at the end.
    Optional(&'static [&'static str], usize),
    /// At least this many, all alike.
    Variadic(usize),
}

/// How far a result may be from the exact one. Numbers are in [`crate::accuracy`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Accuracy {
    /// No rounding beyond the type's own (one correct rounding of the exact result).
    Exact,
    /// Within n units in the last place for f32, twice that for f64.
    Ulp(u32),
    /// A sum of products or terms.
    Sum,
    /// As its definition: composites and region ops.
    Parts,
}

/// The ONNX operator an op corresponds to, and since which opset with this meaning; or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onnx {
    /// Operator of the default domain, first and last opset (i64::MAX: newest) for which this form is right.
    Op(&'static str, i64, i64),
    /// No operator: internal to the compiler.
    Internal,
}

/// Constant facts of an op.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Operands.
    pub arity: Arity,
    /// Accuracy class.
    pub accuracy: Accuracy,
    /// ONNX counterpart.
    pub onnx: Onnx,
    /// `op(a, b) = op(b, a)`.
    pub commutative: bool,
}

/// What an op lowers to.
#[derive(Clone, Debug)]
pub enum Lowering {
    /// A core op: one class.
    Class(Class),
    /// A composite op: a graph of other ops with the same inputs and outputs.
    Decompose(Graph),
    /// A composite with a special code template; the graph is its definition.
    Template(Template, Graph),
    /// Part of the program's structure: input, constant, weight, region op, symbol binder.
    Structure,
}

/// Code templates for composites that are more than their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Template {
    /// softmax(q k^T * scale + mask) v without the score matrix.
    Attention,
    /// A recurrent cell over time.
    Recurrent,
    /// What the interpreter runs as one piece; the definition is for code generation.
    Whole(Opaque),
}

/// A value during gradient construction: an eager tensor or a graph value, as the builder likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GVal(pub u32);

/// Builds gradients: records nodes into a graph, or executes at once.
pub trait GradBuilder {
    /// Applies an op; gives its results. Errors are kept by the builder and reported when it finishes.
    fn op(&mut self, op: Op, operands: &[GVal]) -> Vec<GVal>;
    /// Type of a value.
    fn ty(&self, v: GVal) -> Type;
}

/// What a gradient rule sees.
pub struct GradCx<'a> {
    /// Where new values come from.
    pub b: &'a mut dyn GradBuilder,
    /// The op's operands.
    pub(crate) operands: Vec<GVal>,
    /// The op's results.
    pub results: Vec<GVal>,
    /// Cotangents of the results (zeros where nothing depends on one).
    pub cotangents: Vec<GVal>,
}

/// The gradient of an op with attributes `S`.
pub(crate) enum Grad<S> {
    /// Cotangents of the operands (None: not differentiable in that operand, or always zero).
    Rule(fn(&S, &mut GradCx<'_>) -> Vec<Option<GVal>>),
    /// Derived from the scalar expression of a Map op.
    FromExpr,
    /// Differentiated through its decomposition.
    Parts,
    /// Zero wherever it is defined.
    Zero,
    /// With the reason.
    NotDifferentiable(&'static str),
}

/// Definition of one op.
pub(crate) trait OpDef: Sized {
    /// Constant facts.
    const SPEC: Spec;
    /// Type rule: results from operands and attributes. Known elements follow from the class and need not be given.
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag>;
    /// What it computes. Called only with operand and result types that `infer` accepted.
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag>;
    /// Its gradient. No default, so that silence is impossible.
    fn grad(&self) -> Grad<Self>;
}

/// What an op's lowering sees.
pub(crate) struct LowerCx<'a> {
    /// Operand types.
    pub(crate) ins: &'a [Type],
    /// Result types.
    pub(crate) outs: &'a [Type],
    /// Symbols of the entry.
    pub(crate) symbols: &'a SymTable,
}

impl LowerCx<'_> {
    /// Builds a decomposition: `f` gets the region and its inputs (one an operand) and gives the results.
    pub(crate) fn decompose(
        &self,
        f: impl FnOnce(&mut Graph, &[Value]) -> Result<Vec<Value>, Diag>,
    ) -> Result<Lowering, Diag> {
        let mut g = Graph::region(self.symbols);
        let ins: Vec<Value> = self
            .ins
            .iter()
            .enumerate()
            .map(|(i, t)| g.input(&format!("x{i}"), t.clone(), Loc::default()))
            .collect();
        let outs = f(&mut g, &ins)?;
        for (i, v) in outs.into_iter().enumerate() {
            g.output(&format!("y{i}"), v);
        }
        Ok(Lowering::Decompose(g))
    }
}

/// What an op's type rule sees, and where it leaves conditions it cannot prove.
pub(crate) struct InferCx<'a> {
    name: &'static str,
    /// Facts of the operands.
    pub(crate) operands: &'a [Fact],
    /// Regions of a region op.
    pub(crate) regions: &'a [Graph],
    /// Symbols of the entry.
    pub(crate) symbols: &'a SymTable,
    guards: Vec<(Pred, String)>,
}

impl<'a> InferCx<'a> {
    pub(crate) fn new(
        op: &Op,
        operands: &'a [Fact],
        regions: &'a [Graph],
        symbols: &'a SymTable,
    ) -> InferCx<'a> {
        InferCx { name: op.name(), operands, regions, symbols, guards: Vec::new() }
    }

    pub(crate) fn take_guards(self) -> Vec<(Pred, String)> {
        self.guards
    }

    /// Type of operand `i`. The arity has been checked, so it exists unless it is optional.
    pub(crate) fn ty(&self, i: usize) -> Result<&'a Type, Diag> {
        self.operands
            .get(i)
            .map(|f| &f.ty)
            .ok_or_else(|| self.fail("E-IR-002", format!("operand {i} is missing")))
    }

    /// An error of this op.
    pub(crate) fn fail(&self, code: &'static str, message: impl AsRef<str>) -> Diag {
        let list: Vec<String> = self.operands.iter().map(|f| f.ty.to_string()).collect();
        Diag::error(code, format!("`{}`: {}", self.name, message.as_ref()))
            .note(format!("operands: ({})", list.join(", ")))
    }

    /// Fails with `message` (constraint `id`, such as "softmax.c1") unless `ok`.
    pub(crate) fn check(&self, ok: bool, id: &str, message: impl AsRef<str>) -> Result<(), Diag> {
        if ok { Ok(()) } else { Err(self.fail("E-IR-003", format!("{} [{id}]", message.as_ref()))) }
    }

    /// An axis attribute, negative counting from the end, as an index below `rank`.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize, Diag> {
        let r = rank as i64;
        let a = if axis < 0 { axis + r } else { axis };
        if (0..r).contains(&a) {
            Ok(a as usize)
        } else {
            Err(self.fail(
                "E-IR-004",
                format!("axis {axis} is out of range for rank {rank} (allowed -{rank}..{rank})"),
            ))
        }
    }

    /// Requires a condition: nothing if proved, an error if impossible, else a guard checked at bind.
    pub(crate) fn require(&mut self, pred: Pred, why: &str) -> Result<(), Diag> {
        match pred.decide_in(self.symbols) {
            Some(true) => Ok(()),
            Some(false) => {
                let found = match &pred {
                    Pred::Eq(a, b) => format!("`{a}` and `{b}` are not equal"),
                    Pred::Le(a, b) => format!("`{a}` is more than `{b}`"),
                    Pred::Broadcastable(a, b) => format!("`{a}` and `{b}` are not equal, and neither is 1"),
                    other => format!("`{other}` cannot hold"),
                };
                let help = "the sizes come from the operands' shapes: change one so that they fit";
                Err(self.fail("E-IR-005", format!("{why}: {found}")).help(help))
            }
            None => {
                self.guards.push((pred, format!("`{}`: {why}", self.name)));
                Ok(())
            }
        }
    }

    /// Requires two dims to be equal. Pinning a named dim to a number is an error; otherwise a guard.
    pub(crate) fn require_eq(&mut self, a: &Dim, b: &Dim, why: &str) -> Result<(), Diag> {
        if a == b {
            return Ok(());
        }
        for (n, c) in [(a, b), (b, a)] {
            if let (Some(name), Some(c)) = (self.symbols.as_named(n), c.as_const()) {
                return Err(self
                    .fail("E-IR-006", format!("{why}: this would pin the named dim `{name}` to {c}"))
                    .help(format!("a named dim stays dynamic; give it the fixed size {c} in the model, or --dim {name}={c}")));
            }
        }
        self.require(Pred::Eq(a.clone(), b.clone()), why)
    }

    /// Broadcast of two dims by the numpy rule, with a guard where it cannot be decided.
    pub(crate) fn broadcast_dim(&mut self, a: &Dim, b: &Dim) -> Result<Dim, Diag> {
        if a == b || b.is(1) {
            return Ok(a.clone());
        }
        if a.is(1) {
            return Ok(b.clone());
        }
        for (n, c) in [(a, b), (b, a)] {
            if let (Some(name), Some(c)) = (self.symbols.as_named(n), c.as_const()) {
                let one = self.symbols.get(name).is_some_and(|i| i.lo == 1 && i.hi == 1);
                if !one {
                    return Err(self
                        .fail(
                            "E-IR-006",
                            format!("broadcasting would pin the named dim `{name}` to {c} (or 1)"),
                        )
                        .help(format!(
                            "a named dim stays dynamic; fix the size {c} in the model, or --dim {name}={c}"
                        )));
                }
            }
        }
        self.require(Pred::Broadcastable(a.clone(), b.clone()), "sizes must broadcast")?;
        Ok(match (a.as_const(), b.as_const()) {
            (Some(_), None) => a.clone(),
            (None, Some(_)) => b.clone(),
            _ => a.bcast(b),
        })
    }

    /// Broadcast of shapes by the numpy rule.
    pub(crate) fn broadcast(&mut self, a: &[Dim], b: &[Dim]) -> Result<Vec<Dim>, Diag> {
        let rank = a.len().max(b.len());
        let one = Dim::from(1);
        let at = |s: &[Dim], i: usize| (i + s.len()).checked_sub(rank).map_or(one.clone(), |j| s[j].clone());
        (0..rank).map(|i| self.broadcast_dim(&at(a, i), &at(b, i))).collect()
    }

    /// Requires all operands to have one dtype; gives it.
    pub(crate) fn same_dtype(&self) -> Result<crate::types::DType, Diag> {
        let first = self.ty(0)?.dtype;
        match self.operands.iter().find(|f| f.ty.dtype != first) {
            None => Ok(first),
            Some(_) => {
                Err(self.fail("E-IR-007", "operands must have one element type").help("insert a cast"))
            }
        }
    }
}
