//! ONNX graphs under construction: nodes with unique readable names, initializers, constants that are written once. What
//! an op of the tensor IR means is not known here.

use super::types;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::module::Module;
use tgc_ir::scalar::{Scalar, cast};
use tgc_ir::tensor::{Data, Tensor};
use tgc_ir::types::{Atom, DType, Dim, SymTable, Type};
use tgc_proto::attribute_proto::AttributeType;
use tgc_proto::tensor_shape_proto::{Dimension, dimension};
use tgc_proto::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto,
    type_proto,
};

/// A value of the ONNX graph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Val {
    /// Its name.
    pub(super) name: String,
    /// Its element type.
    pub(super) dtype: DType,
}

/// Names that are taken.
#[derive(Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// Takes `base`, or `base_1` and so on where that is taken.
    pub(super) fn fresh(&mut self, base: &str) -> String {
        let mut name = base.to_string();
        let mut n = 0;
        while !self.0.insert(name.clone()) {
            n += 1;
            name = format!("{base}_{n}");
        }
        name
    }

    /// Takes `name`; false if it was taken.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.0.insert(name.to_string())
    }
}

/// How a value was made.
#[derive(Clone)]
pub(super) enum Made {
    /// `a < b`.
    Less(Val, Val),
    /// The greater of a value and a limit.
    Limited(Val, Val),
    /// An integer of 8 bits as one of 32, less a zero point of its type with one element.
    Widened(Val, Option<Val>),
}

/// An axis of an input, from which sizes are read.
pub(super) struct Source {
    /// The input.
    pub(super) input: Val,
    /// The axis.
    pub(super) axis: usize,
    /// Its size.
    pub(super) size: Dim,
}

/// Everything that is known while one model is written. `nodes` is the list of the graph or branch at hand.
pub(super) struct Cx<'m> {
    pub(super) module: &'m Module,
    pub(super) opset: i64,
    pub(super) symbols: SymTable,
    /// Names that symbols get in the file, where these are not their own.
    pub(super) renamed: BTreeMap<String, String>,
    pub(super) sources: Vec<Source>,
    /// Names of the model's outputs.
    pub(super) outputs: Vec<String>,
    /// Sizes that are values already (`i64[1]`), in this branch.
    pub(super) sizes: BTreeMap<Dim, Val>,
    pub(super) nodes: Vec<NodeProto>,
    pub(super) initializers: Vec<TensorProto>,
    pub(super) blockers: Vec<Diag>,
    /// The node that is being written: where it is from, and the stem of its names.
    pub(super) at: Loc,
    pub(super) stem: String,
    /// Names of values.
    pub(super) names: Names,
    node_names: Names,
    /// How values were made, as far as forms of several nodes ask for it.
    pub(super) made: BTreeMap<String, Made>,
    /// Types of values of the tensor graph.
    pub(super) types: BTreeMap<String, Type>,
    weights: BTreeMap<String, Val>,
    constants: BTreeMap<(DType, Vec<usize>, Vec<u8>), Val>,
    small: BTreeMap<String, Tensor>,
}

/// Constants of up to so many elements are kept at hand, to be converted and shared.
const SMALL: usize = 1024;

/// Bytes of a tensor that the message shares.
struct Shared(Data);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl<'m> Cx<'m> {
    pub(super) fn new(module: &'m Module, opset: i64, symbols: SymTable) -> Cx<'m> {
        Cx {
            module,
            opset,
            symbols,
            renamed: BTreeMap::new(),
            sources: Vec::new(),
            outputs: Vec::new(),
            sizes: BTreeMap::new(),
            nodes: Vec::new(),
            initializers: Vec::new(),
            blockers: Vec::new(),
            at: Loc::default(),
            stem: String::new(),
            names: Names::default(),
            node_names: Names::default(),
            made: BTreeMap::new(),
            types: BTreeMap::new(),
            weights: BTreeMap::new(),
            constants: BTreeMap::new(),
            small: BTreeMap::new(),
        }
    }

    /// An error at the node that is being written.
    pub(super) fn fail(&self, code: &'static str, message: impl Into<String>) -> Diag {
        Diag::error(code, message).at(&self.at)
    }

    /// Adds a node; its results have these types.
    pub(super) fn node_n(
        &mut self,
        op: &str,
        ins: &[&Val],
        attrs: Vec<AttributeProto>,
        outs: &[DType],
    ) -> Vec<Val> {
        let stem = if self.stem.is_empty() {
            op.to_string()
        } else if self.stem.to_lowercase().contains(&op.to_lowercase()) {
            self.stem.clone()
        } else {
            format!("{}/{op}", self.stem)
        };
        let name = self.node_names.fresh(&stem);
        let result = |(i, d): (usize, &DType)| Val {
            name: self.names.fresh(&format!("{name}_output_{i}")),
            dtype: *d,
        };
        let results: Vec<Val> = outs.iter().enumerate().map(result).collect();
        self.nodes.push(NodeProto {
            input: ins.iter().map(|v| v.name.clone()).collect(),
            output: results.iter().map(|v| v.name.clone()).collect(),
            name: Some(name),
            op_type: Some(op.to_string()),
            attribute: attrs,
            ..NodeProto::default()
        });
        results
    }

    /// Adds a node of one result.
    pub(super) fn node(&mut self, op: &str, ins: &[&Val], attrs: Vec<AttributeProto>, out: DType) -> Val {
        self.node_n(op, ins, attrs, &[out]).swap_remove(0)
    }

    /// Adds a node that computes in the type of operand `main`, or in a wider one where the operator does not take that:
    /// operands of the type are converted, and results that are to have it.
    pub(super) fn typed(
        &mut self,
        op: &str,
        main: usize,
        ins: &[&Val],
        attrs: Vec<AttributeProto>,
        outs: &[DType],
    ) -> Result<Vec<Val>, Diag> {
        let d = ins[main].dtype;
        let c = self.compute_type(op, d)?;
        if c == d {
            return Ok(self.node_n(op, ins, attrs, outs));
        }
        let ins: Vec<Val> =
            ins.iter().map(|v| if v.dtype == d { self.cast(v, c) } else { (*v).clone() }).collect();
        let inner: Vec<DType> = outs.iter().map(|o| if *o == d { c } else { *o }).collect();
        let found = self.node_n(op, &ins.iter().collect::<Vec<_>>(), attrs, &inner);
        Ok(found.iter().zip(outs).map(|(v, o)| self.back(v, *o)).collect())
    }

    /// [`Cx::typed`] by the first operand, with one result.
    pub(super) fn typed1(
        &mut self,
        op: &str,
        ins: &[&Val],
        attrs: Vec<AttributeProto>,
        out: DType,
    ) -> Result<Val, Diag> {
        Ok(self.typed(op, 0, ins, attrs, &[out])?.swap_remove(0))
    }

    /// The type in which an operator computes, or the diagnostic that names what blocks it.
    pub(super) fn compute_type(&self, op: &str, d: DType) -> Result<DType, Diag> {
        types::compute_type(op, self.opset, d).map_err(|types::Refused(why, later)| {
            let m = format!("no form in opset {} for an operation on {d}: {why}", self.opset);
            let help = match later {
                Some(v) => format!("export with --opset {v} or newer"),
                None => "compute in another element type there".to_string(),
            };
            self.fail("E-EXP-002", m).help(help)
        })
    }

    /// Converts, unless the value has the type. A constant becomes another constant.
    pub(super) fn cast(&mut self, v: &Val, to: DType) -> Val {
        if v.dtype == to {
            return v.clone();
        }
        let result = if let Some(t) = self.small.get(&v.name) {
            let t = Tensor::from_scalars(to, &t.shape, t.scalars().map(|s| cast(to, s)).collect::<Vec<_>>());
            self.constant(&t, &v.name)
        } else {
            let v = self.limited(v, to);
            self.node("Cast", &[&v], vec![int("to", i64::from(types::code(to).0 as i32))], to)
        };
        if matches!(v.dtype, DType::I8 | DType::U8) && to == DType::I32 {
            self.made.insert(result.name.clone(), Made::Widened(v.clone(), None));
        }
        result
    }

    /// A result in the type whose values it has, or has modulo its width.
    fn back(&mut self, v: &Val, to: DType) -> Val {
        if v.dtype == to {
            return v.clone();
        }
        self.node("Cast", &[v], vec![int("to", i64::from(types::code(to).0 as i32))], to)
    }

    /// A float that is to become an integer whose limits it holds, within that one's range: ONNX says nothing of others.
    fn limited(&mut self, v: &Val, to: DType) -> Val {
        let holds = if v.dtype == DType::F64 { 32 } else { 16 };
        if !v.dtype.is_float() || !to.is_int() || to.bits() > holds {
            return v.clone();
        }
        // narrower floats do not hold the limits
        let v = if v.dtype == DType::F64 { v.clone() } else { self.cast(v, DType::F32) };
        let [low, high] = [false, true].map(|greatest| Scalar::extreme(to, greatest).as_f64());
        let (low, high) = (self.num(v.dtype, low), self.num(v.dtype, high));
        self.node("Clip", &[&v, &low, &high], Vec::new(), v.dtype)
    }

    /// True where a value certainly has one element.
    pub(super) fn is_single(&self, v: &Val) -> bool {
        let constant = self.small.get(&v.name).map(|t| t.numel() == 1);
        constant.or_else(|| self.types.get(&v.name).map(|t| t.numel().is(1))).unwrap_or(false)
    }

    /// Number of axes, where it is known.
    pub(super) fn rank(&self, v: &Val) -> Option<usize> {
        let constant = self.small.get(&v.name).map(|t| t.shape.len());
        constant.or_else(|| self.types.get(&v.name).map(Type::rank))
    }

    /// A tensor as an initializer; equal small ones are one.
    pub(super) fn constant(&mut self, t: &Tensor, hint: &str) -> Val {
        let key = (t.numel() <= SMALL).then(|| (t.dtype, t.shape.clone(), t.data.bytes().to_vec()));
        if let Some(v) = key.as_ref().and_then(|k| self.constants.get(k)) {
            return v.clone();
        }
        let name = self.names.fresh(hint);
        self.initializers.push(tensor(&name, t));
        let v = Val { name, dtype: t.dtype };
        if let Some(k) = key {
            self.constants.insert(k, v.clone());
            self.small.insert(v.name.clone(), t.clone());
        }
        v
    }

    /// The elements of a small constant.
    pub(super) fn known(&self, v: &Val) -> Option<&Tensor> {
        self.small.get(&v.name)
    }

    /// A rank-0 constant.
    pub(super) fn scalar(&mut self, s: Scalar) -> Val {
        self.constant(&Tensor::from_scalars(s.dtype, &[], [s]), "constant")
    }

    /// A rank-0 number.
    pub(super) fn num(&mut self, d: DType, v: f64) -> Val {
        self.scalar(Scalar::from_f64(d, v))
    }

    /// A vector of integers.
    pub(super) fn ints(&mut self, v: &[i64], hint: &str) -> Val {
        self.constant(&Tensor::from_ints(DType::I64, &[v.len()], v), hint)
    }

    /// A weight of the module's store, under its own name where that is free.
    pub(super) fn weight(&mut self, name: &str) -> Result<Val, Diag> {
        if let Some(v) = self.weights.get(name) {
            return Ok(v.clone());
        }
        let Some(t) = self.module.weights.get(name) else {
            return Err(self.fail("E-EXP-001", format!("the module has no weight `{name}`")));
        };
        self.storable(t.dtype)?;
        let v = Val { name: self.names.fresh(name), dtype: t.dtype };
        self.initializers.push(tensor(&v.name, t));
        self.weights.insert(name.to_string(), v.clone());
        Ok(v)
    }

    /// A weight under the name of the input whose default it is.
    pub(super) fn default(&mut self, input: &str, weight: &str) -> Result<(), Diag> {
        let Some(t) = self.module.weights.get(weight) else {
            return Err(self.fail("E-EXP-001", format!("the module has no weight `{weight}`")));
        };
        self.initializers.push(tensor(input, t));
        Ok(())
    }

    /// A size as text, symbols under the names they are to have.
    pub(super) fn shown(&self, d: &Dim) -> String {
        let named = |a: &Atom| match a {
            Atom::Sym(s) => self.renamed.get(&**s).map(|n| Dim::sym(n)),
            _ => None,
        };
        let d = if self.renamed.is_empty() { d.clone() } else { d.subst(&named) };
        // a name alone needs no quotes
        d.as_sym().map_or_else(|| d.to_string(), |s| s.to_string())
    }

    /// Name and type of a value.
    pub(super) fn value_info(&self, name: &str, ty: &Type) -> ValueInfoProto {
        let dim = |d: &Dim| {
            let value = match d.as_const() {
                Some(c) => dimension::Value::DimValue(c),
                None => dimension::Value::DimParam(self.shown(d)),
            };
            Dimension { value: Some(value), denotation: None }
        };
        let tensor = type_proto::Tensor {
            elem_type: Some(types::code(ty.dtype).0 as i32),
            shape: Some(TensorShapeProto { dim: ty.shape.iter().map(dim).collect() }),
        };
        let ty = TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None };
        ValueInfoProto { name: Some(name.to_string()), r#type: Some(ty), ..ValueInfoProto::default() }
    }

    /// Name and type of an input. A size that has no name of its own gets none.
    pub(super) fn input_info(&self, name: &str, ty: &Type) -> ValueInfoProto {
        let mut info = self.value_info(name, ty);
        let Some(type_proto::Value::TensorType(t)) = info.r#type.as_mut().and_then(|t| t.value.as_mut())
        else {
            return info;
        };
        for (axis, (size, dim)) in
            ty.shape.iter().zip(t.shape.iter_mut().flat_map(|s| &mut s.dim)).enumerate()
        {
            let own = size.as_sym().filter(|s| ***s == *format!("{name}_{axis}"));
            let anonymous = own.is_some_and(|s| {
                !self.renamed.contains_key(&**s) && self.symbols.get(s).is_some_and(|i| !i.named)
            });
            if anonymous {
                dim.value = None;
            }
        }
        info
    }

    /// Checks that tensors of a type exist in this opset.
    pub(super) fn storable(&self, d: DType) -> Result<(), Diag> {
        let since = types::code(d).1;
        if since <= self.opset {
            return Ok(());
        }
        let m = format!("tensors of {d} exist from opset {since} on, not in opset {}", self.opset);
        Err(self.fail("E-EXP-002", m).help(format!("export with --opset {since} or newer")))
    }
}

/// A tensor as a message that shares the bytes (those below a byte wide are packed).
fn tensor(name: &str, t: &Tensor) -> TensorProto {
    let data = match t.dtype.bits() {
        bits @ (2 | 4) => Bytes::from(packed(t.data.bytes(), bits)),
        _ => Bytes::from_owner(Shared(t.data.clone())),
    };
    TensorProto {
        dims: t.shape.iter().map(|&d| d as i64).collect(),
        data_type: Some(types::code(t.dtype).0 as i32),
        name: Some(name.to_string()),
        raw_data: Some(data),
        ..TensorProto::default()
    }
}

/// Elements of `bits` bits, the first in the lowest ones of a byte.
fn packed(elements: &[u8], bits: u32) -> Vec<u8> {
    let mask = (1u8 << bits) - 1;
    let byte = |c: &[u8]| c.iter().rev().fold(0, |b, e| (b << bits) | (e & mask));
    elements.chunks((8 / bits) as usize).map(byte).collect()
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.to_string()), r#type: Some(kind as i32), ..AttributeProto::default() }
}

/// An integer attribute.
pub(super) fn int(name: &str, v: i64) -> AttributeProto {
    AttributeProto { i: Some(v), ..attribute(name, AttributeType::Int) }
}

/// A float attribute.
pub(super) fn float(name: &str, v: f64) -> AttributeProto {
    AttributeProto { f: Some(v as f32), ..attribute(name, AttributeType::Float) }
}

/// An attribute of integers.
pub(super) fn ints(name: &str, v: &[i64]) -> AttributeProto {
    AttributeProto { ints: v.to_vec(), ..attribute(name, AttributeType::Ints) }
}

/// A text attribute.
pub(super) fn text(name: &str, v: &str) -> AttributeProto {
    AttributeProto { s: Some(v.as_bytes().to_vec()), ..attribute(name, AttributeType::String) }
}

/// An attribute that is a graph.
pub(super) fn branch(name: &str, g: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(g), ..attribute(name, AttributeType::Graph) }
}

/// An attribute that is a tensor of one element.
pub(super) fn element(name: &str, s: Scalar) -> AttributeProto {
    let t = tensor("", &Tensor::from_scalars(s.dtype, &[1], [s]));
    AttributeProto { t: Some(TensorProto { name: None, ..t }), ..attribute(name, AttributeType::Tensor) }
}
