//! Random whole graphs with weights and with data for two tuples of sizes. What is here: state of a graph in the making,
//! inputs, weights, limits, outputs, data. How single nodes are chosen is in `maps`, `shapes`, `sums` and `blocks`.

mod blocks;
mod maps;
mod shapes;
mod sums;

use crate::rng::Rng;
use std::collections::BTreeMap;
use tgc::ir::diag::Loc;
use tgc::ir::graph::{Graph, Value};
use tgc::ir::module::Module;
use tgc::ir::ops::{Constant, Op, Weight};
use tgc::ir::scalar::Scalar;
use tgc::ir::tensor::Tensor;
use tgc::ir::types::{Atom, DType, Dim, SymInfo, Type};

/// Elements a value may have.
const ELEMENTS: i64 = 1 << 14;
/// Products a contraction may need.
const PRODUCTS: i64 = 1 << 20;
/// Sizes where vectors, register blocks and tiles begin and end.
const EXTENTS: [i64; 19] = [1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 32, 33, 64, 65];

/// Sizes by symbol.
pub type Sizes = BTreeMap<&'static str, i64>;

/// A graph as a module of one entry, with inputs for runs at different sizes.
pub struct Made {
    pub module: Module,
    pub runs: Vec<(Sizes, Vec<Tensor>)>,
}

struct Maker {
    rng: Rng,
    g: Graph,
    weights: Vec<(String, Tensor)>,
    /// What further nodes may read.
    values: Vec<Value>,
    /// Inputs that are indices: number of the input and the axis they index.
    indices: BTreeMap<usize, Dim>,
    sizes: [Sizes; 2],
}

/// What a step gives: the value made, or nothing when it does not fit here.
type Step = Option<Value>;

/// The graph of a seed, with this name.
pub fn random(seed: u64, name: &str) -> Made {
    let mut rng = Rng::new(seed);
    let mut g = Graph::new(name);
    g.symbols.insert("b", SymInfo { lo: 0, hi: 64, named: true });
    g.symbols.insert("s", SymInfo { lo: 0, hi: 128, named: true });
    let sizes = sizes(&mut rng);
    let (weights, values, indices) = (Vec::new(), Vec::new(), BTreeMap::new());
    let mut m = Maker { rng, g, weights, values, indices, sizes };
    let wanted = 3 + if m.rng.coin() { m.rng.below(6) } else { m.rng.below(23) };
    m.begin();
    for _ in 0..wanted * 4 {
        if m.nodes() >= wanted {
            break;
        }
        if m.rng.once_in(25) {
            m.begin();
        }
        m.attempt();
    }
    m.finish()
}

/// Two different tuples of sizes, now and then with one size in both dims.
fn sizes(rng: &mut Rng) -> [Sizes; 2] {
    let mut one = |other: Option<&Sizes>| loop {
        let b = *rng.pick(&[0, 1, 1, 2, 3, 4, 5, 8]);
        let s = *rng.pick(&[0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65]);
        let sizes = Sizes::from([("b", b), ("s", if rng.once_in(6) { b } else { s })]);
        if other.is_none_or(|o| o["b"] != sizes["b"] && o["s"] != sizes["s"]) {
            return sizes;
        }
    };
    let first = one(None);
    let second = one(Some(&first));
    [first, second]
}

fn eval(d: &Dim, sizes: &Sizes) -> Option<i64> {
    let leaf = |a: &Atom| if let Atom::Sym(s) = a { sizes.get(&**s).copied() } else { None };
    d.eval(&leaf).ok()
}

impl Maker {
    fn nodes(&self) -> usize {
        let computes = |id| !matches!(self.g.op_of(id), Some(Op::Input(_) | Op::Weight(_) | Op::Constant(_)));
        self.g.ids().into_iter().filter(|&id| computes(id)).count()
    }

    /// An input to start from.
    fn begin(&mut self) {
        let dtype = *self.rng.pick(&[
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F32,
            DType::F64,
            DType::F16,
            DType::BF16,
            DType::I32,
            DType::I64,
            DType::U8,
            DType::Bool,
        ]);
        let image = dtype == DType::F32 && self.rng.once_in(3);
        for _ in 0..20 {
            let shape = if image { self.image() } else { self.shape() };
            if self.fits(&shape) {
                let v = self.input(Type::new(dtype, shape));
                return self.values.push(v);
            }
        }
    }

    fn extent(&mut self) -> Dim {
        Dim::from(if self.rng.once_in(40) { 0 } else { *self.rng.pick(&EXTENTS) })
    }

    fn dim(&mut self) -> Dim {
        match self.rng.below(8) {
            0 | 1 => Dim::sym("b"),
            2 => Dim::sym("s"),
            _ => self.extent(),
        }
    }

    fn shape(&mut self) -> Vec<Dim> {
        let rank = *self.rng.pick(&[1usize, 2, 2, 3, 3, 3, 4]);
        (0..rank).map(|_| self.dim()).collect()
    }

    /// `[N, C, spatial..]` of one to three spatial axes.
    fn image(&mut self) -> Vec<Dim> {
        let batch = if self.rng.coin() { Dim::sym("b") } else { Dim::from(*self.rng.pick(&[1i64, 2])) };
        let channels = Dim::from(*self.rng.pick(&[1i64, 2, 3, 4, 8, 16, 17]));
        let mut shape = vec![batch, channels];
        for _ in 0..*self.rng.pick(&[1, 2, 2, 2, 3]) {
            let spatial = Dim::from(*self.rng.pick(&[1i64, 3, 4, 5, 7, 8, 9, 16, 17]));
            shape.push(if self.rng.once_in(5) { Dim::sym("s") } else { spatial });
        }
        shape
    }

    /// The sizes are computable and not too many, for both tuples.
    fn fits(&self, shape: &[Dim]) -> bool {
        self.sizes.iter().all(|s| self.count(shape, s).is_some_and(|n| n <= ELEMENTS))
    }

    fn count(&self, shape: &[Dim], sizes: &Sizes) -> Option<i64> {
        shape.iter().try_fold(1i64, |n, d| n.checked_mul(eval(d, sizes)?.max(0)))
    }

    /// A contraction of `each` products an element of `shape` is no more than the interpreter does in a moment.
    fn affordable(&self, shape: &[Dim], each: &Dim) -> bool {
        let cost = |s| self.count(shape, s)?.checked_mul(eval(each, s)?);
        self.sizes.iter().all(|s| cost(s).is_some_and(|n| n <= PRODUCTS))
    }

    fn input(&mut self, ty: Type) -> Value {
        let name = format!("x{}", self.g.inputs().len());
        self.g.input(&name, ty, Loc::default())
    }

    /// An input of indices into an axis of this size.
    fn index(&mut self, shape: Vec<Dim>, axis: Dim) -> Value {
        self.indices.insert(self.g.inputs().len(), axis);
        let dtype = if self.rng.coin() { DType::I64 } else { DType::I32 };
        self.input(Type::new(dtype, shape))
    }

    /// Another operand: a weight or, if its sizes are not numbers or by chance, an input.
    fn operand(&mut self, dtype: DType, shape: Vec<Dim>) -> Step {
        if !self.fits(&shape) {
            return None;
        }
        let fixed: Option<Vec<usize>> =
            shape.iter().map(|d| d.as_const().and_then(|d| usize::try_from(d).ok())).collect();
        match fixed {
            Some(fixed) if self.rng.below(3) > 0 => self.weight(dtype, &fixed),
            _ => Some(self.input(Type::new(dtype, shape))),
        }
    }

    fn weight(&mut self, dtype: DType, shape: &[usize]) -> Step {
        let name = format!("{}.w{}", self.g.name, self.weights.len());
        let value = draw(&mut self.rng, dtype, shape, None);
        if shape.is_empty() {
            return self.op(Constant { value, shape: None }, &[]);
        }
        self.weights.push((name.clone(), value));
        let shape = shape.iter().map(|&d| Dim::from(d)).collect();
        self.op(Weight { name, dtype, shape }, &[])
    }

    fn number(&mut self, dtype: DType, v: f64) -> Step {
        self.op(Constant::scalar(Scalar::from_f64(dtype, v)), &[])
    }

    fn ty(&self, v: Value) -> Type {
        self.g.ty(v).cloned().unwrap_or(Type::scalar(DType::F32))
    }

    fn dims(&self, v: Value) -> Vec<Dim> {
        self.ty(v).shape
    }

    /// A value made already; the latest ones are likelier, so that chains form.
    fn any(&mut self) -> Value {
        let n = self.values.len();
        let back = if self.rng.coin() { n.min(2) } else { n };
        self.values[n - 1 - self.rng.below(back)]
    }

    /// A node that reads `operands`; None where the op does not accept them or the result is too large.
    fn op(&mut self, op: impl Into<Op>, operands: &[Value]) -> Step {
        let v = self.g.op(op, operands, &Loc::default()).ok()?;
        self.fits(&self.dims(v)).then_some(v)
    }

    /// One step; what it has added stays only if all of it fits.
    fn attempt(&mut self) {
        let before = (self.g.clone(), self.weights.len(), self.indices.clone());
        match self.step() {
            Some(v) => self.values.push(v),
            None => {
                self.g = before.0;
                self.weights.truncate(before.1);
                self.indices = before.2;
            }
        }
    }

    fn step(&mut self) -> Step {
        if self.values.is_empty() {
            return None;
        }
        let x = self.any();
        match self.rng.below(30) {
            0..=3 => self.unary(x),
            4..=8 => self.binary(x),
            9 => self.cast(x),
            10 => self.chosen(x),
            11 => self.quantized(x),
            12 => self.made(x),
            13..=15 => self.view(x),
            16 => self.part(x),
            17 => self.joined(x),
            18 => self.indexed(x),
            19 | 20 => self.reduced(x),
            21 | 22 => self.matmul(x),
            23 | 24 => self.conv(x),
            25 => self.pool(x),
            26 => self.along(x),
            27 => self.normalized(x),
            _ => self.block(x),
        }
    }

    /// A dim's size comes from an input that has it as a dim of its own.
    fn solve(&mut self) {
        for name in ["b", "s"] {
            let d = Dim::sym(name);
            let inputs = self.g.inputs().to_vec();
            if !inputs.iter().any(|&node| self.dims(Value { node, result: 0 }).contains(&d)) {
                self.input(Type::new(DType::U8, vec![d]));
            }
        }
    }

    /// Values that nothing reads become outputs, and now and then others, as they are or twice.
    fn finish(mut self) -> Made {
        self.solve();
        let mut outputs = Vec::new();
        for id in self.g.topo() {
            let leaf = matches!(self.g.op_of(id), Some(Op::Input(_) | Op::Weight(_) | Op::Constant(_)));
            let results = self.g.node(id).map_or(0, |n| n.results.len() as u32);
            let all = (0..results).map(|result| Value { node: id, result });
            outputs.extend(all.filter(|&v| !leaf && self.g.users(v).is_empty()));
        }
        while self.rng.once_in(4) && !self.values.is_empty() {
            let v = self.any();
            outputs.push(v);
        }
        for (i, v) in outputs.into_iter().enumerate() {
            self.g.output(&format!("y{i}"), v);
        }
        let mut runs = Vec::new();
        for sizes in self.sizes.clone() {
            let inputs = self.g.inputs().to_vec();
            let types: Vec<Type> = inputs.iter().map(|&node| self.ty(Value { node, result: 0 })).collect();
            let mut data = Vec::new();
            for (i, ty) in types.iter().enumerate() {
                let size = |d| eval(d, &sizes).unwrap_or(0).max(0) as usize;
                let shape: Vec<usize> = ty.shape.iter().map(size).collect();
                let bound = self.indices.get(&i).map(|d| eval(d, &sizes).unwrap_or(0).max(0));
                data.push(draw(&mut self.rng, ty.dtype, &shape, bound));
            }
            runs.push((sizes, data));
        }
        let mut module = Module::single(self.g);
        module.weights.extend(self.weights);
        Made { module, runs }
    }
}

/// Random elements: indices into an axis of size `axis` (from both ends), else small numbers, now and then -0.
fn draw(rng: &mut Rng, d: DType, shape: &[usize], axis: Option<i64>) -> Tensor {
    let n: usize = shape.iter().product();
    let mut one = || match (d, axis) {
        (_, Some(axis)) => Scalar::from_int(d, i128::from(rng.below(2 * axis as usize) as i64 - axis)),
        (DType::Bool, _) => Scalar::bool(rng.coin()),
        (d, _) if d.is_float() && rng.once_in(50) => Scalar::from_f64(d, -0.0),
        (d, _) if d.is_float() => Scalar::from_f64(d, rng.unit() * 4.0 - 2.0),
        (d, _) if d.is_unsigned() => Scalar::from_int(d, rng.below(9) as i128),
        (d, _) => Scalar::from_int(d, rng.below(9) as i128 - 4),
    };
    Tensor::from_scalars(d, shape, (0..n).map(|_| one()).collect::<Vec<_>>())
}
