//! What the importer of one operator works with: its operands and attributes, and short ways to add nodes. No operator
//! is named here.

use super::attrs::Attrs;
use super::check::{Res, Stop};
use super::graph::{Importer, Scope, Slot};
use crate::formula::Build;
use crate::limits::{MAX_DIM_LEAVES, MAX_RANK};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::graph::{Graph, Guard, Value};
use tgc_ir::ops::{Cast, ConstDims, Constant, Expand, Op, Reshape};
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, Fact, KnownElem, Pred, Type};
use tgc_proto::NodeProto;

/// One node being imported.
pub(crate) struct NodeCx<'a, 'm> {
    pub(crate) im: &'a mut Importer<'m>,
    pub(crate) g: &'a mut Graph,
    pub(crate) scope: &'a Scope<'a, 'm>,
    pub(crate) node: &'m NodeProto,
    pub(crate) attrs: Attrs<'m>,
    pub(crate) ins: Vec<Option<Value>>,
    pub(crate) loc: Loc,
    pub(crate) opset: i64,
}

impl NodeCx<'_, '_> {
    /// The operator's name.
    pub(crate) fn name(&self) -> &str {
        self.node.op_type.as_deref().unwrap_or("")
    }

    /// An error at this node.
    pub(crate) fn fail(&self, code: &'static str, message: impl AsRef<str>) -> Diag {
        Diag::error(code, format!("{}: {}", self.name(), message.as_ref())).at(&self.loc)
    }

    /// Operand `i`, which must be given.
    pub(crate) fn x(&self, i: usize) -> Res<Value> {
        self.opt(i).ok_or_else(|| self.fail("E-ONNX-020", format!("operand {i} is missing")).into())
    }

    /// Operand `i` if it is given.
    pub(crate) fn opt(&self, i: usize) -> Option<Value> {
        self.ins.get(i).copied().flatten()
    }

    /// All operands, each of which must be given.
    pub(crate) fn all(&self) -> Res<Vec<Value>> {
        if self.ins.is_empty() {
            return Err(self.fail("E-ONNX-020", "at least one operand is wanted").into());
        }
        (0..self.ins.len()).map(|i| self.x(i)).collect()
    }

    /// Number of results the node names.
    pub(crate) fn outputs(&self) -> usize {
        self.node.output.len()
    }

    /// True when result `i` has a name.
    pub(crate) fn wants(&self, i: usize) -> bool {
        self.node.output.get(i).is_some_and(|n| !n.is_empty())
    }

    /// Adds a node; its first result.
    pub(crate) fn op(&mut self, op: impl Into<Op>, operands: &[Value]) -> Res<Value> {
        Ok(self.g.op(op, operands, &self.loc)?)
    }

    /// Adds a node; `n` results.
    pub(crate) fn op_n(&mut self, op: impl Into<Op>, operands: &[Value], n: u32) -> Res<Vec<Value>> {
        let node = self.g.add(op.into(), operands, Vec::new(), self.loc.clone())?;
        Ok((0..n).map(|result| Value { node, result }).collect())
    }

    /// Adds the IR op `name` with the node's own attributes and operands.
    pub(crate) fn direct(&mut self, name: &str) -> Res<Value> {
        let op = match Op::from_attrs(name, self.attrs.to_op()?) {
            Some(Ok(op)) => op,
            Some(Err(e)) => {
                let help = "the file does not follow the ONNX specification of its opset";
                return Err(self.fail("E-ONNX-007", e).help(help).into());
            }
            None => return Err(self.fail("E-ONNX-006", "not supported").into()),
        };
        let ins = (0..self.ins.len()).map(|i| self.x(i)).collect::<Res<Vec<_>>>()?;
        self.op(op, &ins)
    }

    /// What is known of a value.
    pub(crate) fn fact(&self, v: Value) -> Res<Fact> {
        self.g.fact(v).cloned().ok_or_else(|| self.fail("E-ONNX-009", "a value is not in the graph").into())
    }

    /// Element type of a value.
    pub(crate) fn dtype(&self, v: Value) -> DType {
        self.g.ty(v).map_or(DType::F32, |t| t.dtype)
    }

    /// Shape of a value.
    pub(crate) fn shape(&self, v: Value) -> Vec<Dim> {
        self.g.ty(v).map(|t| t.shape.clone()).unwrap_or_default()
    }

    /// Number of axes of a value.
    pub(crate) fn rank(&self, v: Value) -> usize {
        self.g.ty(v).map_or(0, |t| t.rank())
    }

    /// A rank-0 constant.
    pub(crate) fn num(&mut self, dtype: DType, v: f64) -> Res<Value> {
        self.op(Constant::scalar(Scalar::from_f64(dtype, v)), &[])
    }

    /// Symbolic sizes as an i64 tensor of rank 1.
    pub(crate) fn dims_value(&mut self, dims: Vec<Dim>) -> Res<Value> {
        let fixed: Option<Vec<i64>> = dims.iter().map(Dim::as_const).collect();
        match fixed {
            Some(v) => {
                self.op(Constant { value: Tensor::from_ints(DType::I64, &[v.len()], &v), shape: None }, &[])
            }
            None => self.op(ConstDims { dims, dtype: DType::I64, scalar: false }, &[]),
        }
    }

    /// A symbolic size as an i64 of rank 0.
    pub(crate) fn dim_value(&mut self, dim: Dim) -> Res<Value> {
        match dim.as_const() {
            Some(v) => self.op(Constant::scalar(Scalar::from_int(DType::I64, v.into())), &[]),
            None => self.op(ConstDims { dims: vec![dim], dtype: DType::I64, scalar: true }, &[]),
        }
    }

    /// Conversion, left out when it changes nothing.
    pub(crate) fn cast(&mut self, v: Value, to: DType) -> Res<Value> {
        if self.dtype(v) == to { Ok(v) } else { self.op(Cast { to }, &[v]) }
    }

    /// Reshape, left out when it changes nothing.
    pub(crate) fn reshape(&mut self, v: Value, shape: Vec<Dim>) -> Res<Value> {
        if self.shape(v) == shape { Ok(v) } else { self.op(Reshape { shape }, &[v]) }
    }

    /// Expand, left out when it changes nothing.
    pub(crate) fn expand(&mut self, v: Value, shape: Vec<Dim>) -> Res<Value> {
        if self.shape(v) == shape { Ok(v) } else { self.op(Expand { shape }, &[v]) }
    }

    /// `f` applied in f32 when the element type is a narrower float: a composite is rounded once.
    pub(crate) fn wide(&mut self, x: Value, f: impl FnOnce(&mut Self, Value) -> Res<Value>) -> Res<Value> {
        let d = self.dtype(x);
        if !matches!(d, DType::F16 | DType::BF16) {
            return f(self, x);
        }
        let x = self.cast(x, DType::F32)?;
        let y = f(self, x)?;
        self.cast(y, d)
    }

    /// An axis, negative counting from the end, as an index below `rank`.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Res<usize> {
        let r = rank as i64;
        let a = if axis < 0 { axis + r } else { axis };
        if (0..r).contains(&a) {
            return Ok(a as usize);
        }
        Err(self
            .fail(
                "E-ONNX-022",
                format!("axis {axis} is out of range for rank {rank} (allowed -{rank}..{rank})"),
            )
            .into())
    }

    /// Distinct axes, sorted.
    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Res<Vec<usize>> {
        let mut out = axes.iter().map(|&a| self.axis(a, rank)).collect::<Res<Vec<usize>>>()?;
        out.sort_unstable();
        if out.windows(2).any(|w| w[0] == w[1]) {
            return Err(self.fail("E-ONNX-022", format!("axes {axes:?} name an axis twice")).into());
        }
        Ok(out)
    }

    /// The elements of operand `i` as sizes; an error when they are not known before the model runs.
    pub(crate) fn sizes(&self, i: usize, what: &str) -> Res<Vec<Dim>> {
        let v = self.x(i)?;
        let f = self.fact(v)?;
        if f.ty.rank() > 1 {
            let m = format!("{what} (operand {i}) must have rank 0 or 1, found {}", f.ty);
            return Err(self.fail("E-ONNX-022", m).into());
        }
        if f.ty.shape.first().is_some_and(|d| d.is(0)) {
            return Ok(Vec::new());
        }
        if let Some(dims) = f.known.as_ref().and_then(|k| k.as_dims()) {
            return Ok(dims.into_iter().map(|d| self.simplify(d)).collect());
        }
        let name = self.node.input.get(i).map_or("", |n| n.as_str());
        let by = self.g.loc(v.node).place;
        let m = format!(
            "{what} (operand {i}, `{name}`) depends on the data the model is fed; it must follow from input sizes"
        );
        let help = match *by == *format!("input `{name}`") {
            true => {
                let value = if self.rank(v) == 0 { "1" } else { "[1]" };
                format!("give this input a fixed value, such as --const {name}={value}")
            }
            false => "export the model with this operand as a constant or computed from shapes, or fix the input it comes from with --const"
                .to_string(),
        };
        let made = format!("it comes from {by}");
        Err(self.fail("E-ONNX-016", m).note(made).help(help).into())
    }

    /// The elements of operand `i` as numbers.
    pub(crate) fn ints(&self, i: usize, what: &str) -> Res<Vec<i64>> {
        let dims = self.sizes(i, what)?;
        let fixed: Option<Vec<i64>> = dims.iter().map(Dim::as_const).collect();
        fixed.ok_or_else(|| {
            let list: Vec<String> = dims.iter().map(Dim::to_string).collect();
            let m = format!("{what} (operand {i}) must be numbers; found ({})", list.join(", "));
            self.fail("E-ONNX-016", m).help("give the sizes in it fixed values with --dim").into()
        })
    }

    /// The only element of operand `i` when it is known.
    pub(crate) fn known_scalar(&self, i: usize) -> Option<Scalar> {
        match self.g.fact(self.opt(i)?)?.known.as_ref()?.0.as_slice() {
            [KnownElem::Scalar(s)] => Some(*s),
            _ => None,
        }
    }

    /// The normal form simplified by the ranges of symbols.
    pub(crate) fn simplify(&self, d: Dim) -> Dim {
        d.simplify(&|a| self.g.symbols.atom_range(a))
    }

    /// Interval of a size.
    pub(crate) fn range(&self, d: &Dim) -> (i128, i128) {
        self.g.symbols.range(d)
    }

    /// Requires a condition on sizes: an error when it cannot hold, a guard when that is not known yet.
    pub(crate) fn require(&mut self, pred: Pred, why: &str) -> Res<()> {
        match pred.decide_in(&self.g.symbols) {
            Some(true) => return Ok(()),
            Some(false) => {
                return Err(self.fail("E-ONNX-022", format!("{why}: `{pred}` cannot hold")).into());
            }
            None => {}
        }
        if let Pred::Eq(a, b) = &pred {
            for (n, c) in [(a, b), (b, a)] {
                if let (Some(name), Some(c)) = (self.g.symbols.as_named(n), c.as_const()) {
                    return Err(self
                        .fail("E-ONNX-022", format!("{why}: this would pin the named dim `{name}` to {c}"))
                        .help(format!("a named dim stays dynamic; give it the fixed size {c} in the model, or --dim {name}={c}"))
                        .into());
                }
            }
        }
        let why = format!("{}: {why}", self.name());
        self.g.guard(Guard { pred, why, at: self.loc.clone() });
        Ok(())
    }

    /// Checks a result's size against the limits, and replaces a computed value whose elements are all known by a
    /// constant, so that shape arithmetic is dead after import.
    pub(crate) fn finish(&mut self, slot: Slot) -> Res<Slot> {
        let Slot::Val(v) = slot else { return Ok(slot) };
        let f = self.fact(v)?;
        if f.ty.rank() > MAX_RANK {
            let m = format!("a result has {} axes; at most {MAX_RANK} are allowed", f.ty.rank());
            return Err(self.fail("E-ONNX-017", m).into());
        }
        let known = f.known.iter().flat_map(|k| &k.0).filter_map(|e| match e {
            KnownElem::Dim(d) => Some(d),
            _ => None,
        });
        if f.ty.shape.iter().chain(known).any(|d| leaves(d) > MAX_DIM_LEAVES) {
            let m = format!("a symbolic size has more than {MAX_DIM_LEAVES} parts");
            return Err(self.fail("E-ONNX-017", m).help("give some sizes fixed values with --dim").into());
        }
        match self.g.op_of(v.node) {
            Some(Op::Constant(_) | Op::ConstDims(_) | Op::Weight(_) | Op::Input(_)) => Ok(slot),
            _ => Ok(Slot::Val(self.known_value(v, &f)?)),
        }
    }

    fn known_value(&mut self, v: Value, f: &Fact) -> Res<Value> {
        let (Some(known), true) = (&f.known, f.ty.dtype.is_int() || f.ty.dtype == DType::Bool) else {
            return Ok(v);
        };
        let scalars: Option<Vec<Scalar>> = known
            .0
            .iter()
            .map(|e| match e {
                KnownElem::Scalar(s) => Some(*s),
                _ => None,
            })
            .collect();
        if let (Some(s), Some(shape)) = (scalars, f.ty.as_fixed()) {
            if s.len() != shape.iter().product::<usize>() {
                return Ok(v);
            }
            return self
                .op(Constant { value: Tensor::from_scalars(f.ty.dtype, &shape, s), shape: None }, &[]);
        }
        match (known.as_dims(), f.ty.rank()) {
            (Some(dims), 0) if f.ty.dtype.is_int() => {
                self.op(ConstDims { dims, dtype: f.ty.dtype, scalar: true }, &[])
            }
            (Some(dims), 1) if f.ty.dtype.is_int() => {
                self.op(ConstDims { dims, dtype: f.ty.dtype, scalar: false }, &[])
            }
            _ => Ok(v),
        }
    }
}

impl Build for NodeCx<'_, '_> {
    type V = Value;
    type E = Stop;

    fn apply(&mut self, op: Op, operands: &[Value]) -> Res<Value> {
        Ok(self.g.op(op, operands, &self.loc)?)
    }

    fn ty(&self, v: Value) -> Type {
        self.g.ty(v).cloned().unwrap_or(Type::scalar(DType::F32))
    }

    fn demand(&mut self, pred: Pred, why: &str) -> Res<()> {
        self.require(pred, why)
    }
}

fn leaves(d: &Dim) -> usize {
    let mut n = d.terms().count();
    d.leaves(&mut |_| n += 1);
    n
}

/// A stop from a plain message.
pub(crate) fn stop(code: &'static str, message: impl Into<String>) -> Stop {
    Diag::error(code, message).into()
}
