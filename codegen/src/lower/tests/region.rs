//! Random regions: a few nodes of every class over inputs with constant and symbolic dims, with data to run them on.

use std::collections::BTreeMap;
use tgc_ir::diag::Loc;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::ops::*;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::tiling::tiling;
use tgc_ir::types::{Atom, DType, Dim, SymInfo, Type};

/// Splitmix64.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, v: &'a [T]) -> &'a T {
        &v[self.below(v.len())]
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A region with data.
pub struct Region {
    pub graph: Graph,
    pub inputs: Vec<Tensor>,
    pub symbols: BTreeMap<String, i64>,
}

struct Maker<'r> {
    g: Graph,
    rng: &'r mut Rng,
    symbols: BTreeMap<String, i64>,
    /// Bound of index inputs: input number -> allowed magnitude.
    bounds: BTreeMap<usize, Dim>,
    values: Vec<Value>,
}

/// A random region that is one kernel; None when this draw gave none.
pub fn random(rng: &mut Rng) -> Option<Region> {
    let mut g = Graph::new("region");
    let mut symbols = BTreeMap::new();
    for name in ["n", "m"] {
        g.symbols.insert(name, SymInfo { lo: 0, hi: 40, named: true });
        symbols.insert(name.to_string(), *rng.pick(&[0, 1, 2, 3, 5, 7, 16, 19]));
    }
    let mut m = Maker { g, rng, symbols, bounds: BTreeMap::new(), values: Vec::new() };
    let dtype = *m.rng.pick(&[
        DType::F32,
        DType::F32,
        DType::F32,
        DType::F32,
        DType::F64,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::U8,
    ]);
    let shape = m.shape();
    m.input(Type::new(dtype, shape));
    for _ in 0..1 + m.rng.below(5) {
        m.step();
    }
    m.finish()
}

impl Maker<'_> {
    fn dim(&mut self) -> Dim {
        match self.rng.below(8) {
            0 | 1 => Dim::sym("n"),
            2 => Dim::sym("m"),
            3 => Dim::from(1),
            _ => Dim::from(*self.rng.pick(&[2i64, 3, 4, 6, 9, 17, 33])),
        }
    }

    fn shape(&mut self) -> Vec<Dim> {
        let rank = *self.rng.pick(&[1usize, 2, 2, 3, 3, 4]);
        (0..rank).map(|_| self.dim()).collect()
    }

    fn input(&mut self, ty: Type) -> Value {
        let name = format!("x{}", self.g.inputs().len());
        let v = self.g.input(&name, ty, Loc::default());
        self.values.push(v);
        v
    }

    fn ty(&self, v: Value) -> Type {
        self.g.ty(v).cloned().unwrap()
    }

    fn any(&mut self) -> Value {
        // the latest values are the likeliest, so that chains form
        let n = self.values.len();
        let back = self.rng.below(n.min(3));
        self.values[n - 1 - back]
    }

    fn add(&mut self, op: impl Into<Op>, operands: &[Value]) {
        if let Ok(v) = self.g.op(op, operands, &Loc::default()) {
            self.values.push(v);
        }
    }

    fn step(&mut self) {
        let x = self.any();
        let t = self.ty(x);
        match self.rng.below(16) {
            0 | 1 => self.unary(x, &t),
            2..=4 => self.binary(x, &t),
            5 => self.view(x, &t),
            6 => self.slice_or_pad(x, &t),
            7 => self.concat(x, &t),
            8 | 9 => self.reduce(x, &t),
            10 | 11 => self.matmul(x, &t),
            12 => self.conv(x, &t),
            13 => self.pool(x, &t),
            14 => self.gather(x, &t),
            _ => self.alone(x, &t),
        }
    }

    fn unary(&mut self, x: Value, t: &Type) {
        if t.dtype.is_float() {
            let ops: [Op; 12] = [
                Neg {}.into(),
                Abs {}.into(),
                Exp {}.into(),
                Tanh {}.into(),
                Erf {}.into(),
                Sigmoid {}.into(),
                Relu {}.into(),
                Floor {}.into(),
                Round {}.into(),
                Sin {}.into(),
                Sign {}.into(),
                Sqrt {}.into(),
            ];
            let op = self.rng.pick(&ops).clone();
            self.add(op, &[x]);
        } else {
            let to = *self.rng.pick(&[DType::F32, DType::I64, DType::U8, DType::Bool, DType::F64]);
            self.add(Cast { to }, &[x]);
        }
    }

    fn binary(&mut self, x: Value, t: &Type) {
        let mut shape = t.shape.clone();
        for d in &mut shape {
            if self.rng.below(4) == 0 {
                *d = Dim::from(1);
            }
        }
        if self.rng.below(3) == 0 && !shape.is_empty() {
            shape.remove(0);
        }
        let same: Vec<Value> = self.values.iter().copied().filter(|v| self.ty(*v) == *t).collect();
        let y = if self.rng.below(2) == 0 {
            *self.rng.pick(&same)
        } else {
            self.input(Type::new(t.dtype, shape))
        };
        let ops: [Op; 9] = [
            Add {}.into(),
            Sub {}.into(),
            Mul {}.into(),
            Div {}.into(),
            Min {}.into(),
            Max {}.into(),
            Lt {}.into(),
            Eq {}.into(),
            Add {}.into(),
        ];
        let op = self.rng.pick(&ops).clone();
        let (a, b) = if self.rng.below(2) == 0 { (x, y) } else { (y, x) };
        self.add(op, &[a, b]);
        if let Some(&c) = self.values.last()
            && self.ty(c).dtype == DType::Bool
        {
            self.add(Select {}, &[c, x, y]);
        }
    }

    fn view(&mut self, x: Value, t: &Type) {
        let rank = t.rank();
        match self.rng.below(3) {
            0 => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                for i in (1..rank).rev() {
                    let j = self.rng.below(i + 1);
                    perm.swap(i, j);
                }
                self.add(Transpose { perm }, &[x]);
            }
            1 if rank >= 2 => {
                let at = self.rng.below(rank - 1);
                let mut shape = t.shape.clone();
                let d = shape.remove(at + 1);
                shape[at] = shape[at].clone() * d;
                self.add(Reshape { shape }, &[x]);
            }
            _ => {
                let at = self.rng.below(rank.max(1));
                let mut shape = t.shape.clone();
                if let Some(c) = shape.get(at).and_then(Dim::as_const)
                    && c % 3 == 0
                    && c > 0
                {
                    shape[at] = Dim::from(c / 3);
                    shape.insert(at, Dim::from(3));
                } else {
                    shape.insert(at.min(rank), Dim::from(1));
                }
                self.add(Reshape { shape }, &[x]);
            }
        }
    }

    fn slice_or_pad(&mut self, x: Value, t: &Type) {
        let (mut starts, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for d in &t.shape {
            match d.as_const() {
                Some(c) if c >= 3 => {
                    let (start, step) =
                        *self.rng.pick(&[(0i64, 1i64), (1, 1), (1, 2), (c - 1, -1), (c - 1, -2)]);
                    let room = if step > 0 { c - start } else { start + 1 };
                    starts.push(Dim::from(start));
                    steps.push(step);
                    sizes.push(Dim::from((room + step.abs() - 1) / step.abs()));
                }
                _ => {
                    starts.push(Dim::from(0));
                    sizes.push(d.clone());
                    steps.push(1);
                }
            }
            before.push(Dim::from(self.rng.below(3)));
            after.push(Dim::from(self.rng.below(2)));
        }
        if self.rng.below(2) == 0 {
            self.add(Slice { starts, sizes, steps }, &[x]);
        } else {
            self.add(Pad { before, after, value: Scalar::from_f64(t.dtype, 1.5) }, &[x]);
        }
    }

    fn concat(&mut self, x: Value, t: &Type) {
        let axis = self.rng.below(t.rank().max(1));
        let mut other = t.clone();
        if let Some(d) = other.shape.get_mut(axis) {
            *d = Dim::from(1 + self.rng.below(4));
        }
        let y = self.input(other);
        self.add(Concat { axis: axis as i64 }, &[x, y]);
    }

    fn reduce(&mut self, x: Value, t: &Type) {
        let mut axes: Vec<i64> = (0..t.rank() as i64).filter(|_| self.rng.below(2) == 0).collect();
        if axes.is_empty() && t.rank() > 0 {
            axes = vec![t.rank() as i64 - 1];
        }
        let keepdims = self.rng.below(2) == 0;
        match self.rng.below(6) {
            0 | 1 => self.add(ReduceSum { axes, keepdims }, &[x]),
            2 => self.add(ReduceMax { axes, keepdims }, &[x]),
            3 => self.add(ReduceMin { axes, keepdims }, &[x]),
            4 => self.add(ReduceProd { axes, keepdims }, &[x]),
            _ => {
                let axis = axes.first().copied().unwrap_or(0);
                let last = self.rng.below(2) == 0;
                self.add(ArgMax { axis, keepdims, last, smallest: false }, &[x]);
            }
        }
    }

    fn matmul(&mut self, x: Value, t: &Type) {
        let Some(k) = t.shape.last().cloned() else { return };
        let mut shape: Vec<Dim> =
            if self.rng.below(2) == 0 { vec![] } else { t.shape[..t.rank().saturating_sub(2)].to_vec() };
        shape.extend([k, self.dim()]);
        let w = self.input(Type::new(t.dtype, shape));
        self.add(Matmul {}, &[x, w]);
    }

    fn conv(&mut self, x: Value, t: &Type) {
        let rank = t.rank();
        if rank < 3 {
            return;
        }
        let channels_last = self.rng.below(2) == 0;
        let Some(c) = t.shape[if channels_last { rank - 1 } else { 1 }].as_const() else { return };
        let groups = if c % 2 == 0 && self.rng.below(2) == 0 { 2 } else { 1 };
        let spatial = rank - 2;
        let mut shape = vec![Dim::from(groups * (1 + self.rng.below(4) as i64)), Dim::from(c / groups)];
        shape.extend((0..spatial).map(|_| Dim::from(1 + self.rng.below(3))));
        let w = self.input(Type::new(t.dtype, shape));
        let each = |rng: &mut Rng, n: usize, lo: i64, span: usize| {
            (0..n).map(|_| lo + rng.below(span) as i64).collect()
        };
        let conv = Conv {
            strides: each(self.rng, spatial, 1, 2),
            pads: each(self.rng, 2 * spatial, 0, 3),
            dilations: each(self.rng, spatial, 1, 2),
            groups,
            channels_last,
        };
        self.add(conv, &[x, w]);
    }

    fn pool(&mut self, x: Value, t: &Type) {
        if t.rank() < 3 || !t.dtype.is_float() {
            return;
        }
        let n = t.rank() - 2;
        let each = |rng: &mut Rng, n: usize, lo: i64, span: usize| -> Vec<i64> {
            (0..n).map(|_| lo + rng.below(span) as i64).collect()
        };
        let kernel = each(self.rng, n, 2, 2);
        let strides = each(self.rng, n, 1, 2);
        let pads = each(self.rng, 2 * n, 0, 2);
        let dilations = vec![1; n];
        let ceil = self.rng.below(3) == 0;
        let channels_last = self.rng.below(2) == 0;
        if self.rng.below(2) == 0 {
            self.add(MaxPool { kernel, strides, pads, dilations, ceil, channels_last }, &[x]);
        } else {
            let count_include_pad = self.rng.below(2) == 0;
            let op = AvgPool { kernel, strides, pads, dilations, ceil, count_include_pad, channels_last };
            self.add(op, &[x]);
        }
    }

    fn gather(&mut self, x: Value, t: &Type) {
        if t.rank() == 0 || !self.g.inputs().contains(&x.node) {
            return;
        }
        let axis = self.rng.below(t.rank());
        let d = self.dim();
        let index = self.input(Type::new(DType::I64, vec![d]));
        self.bounds.insert(self.g.inputs().len() - 1, t.shape[axis].clone());
        self.add(Gather { axis: axis as i64 }, &[x, index]);
    }

    /// Classes that are a kernel of their own; only where nothing has been made yet.
    fn alone(&mut self, x: Value, t: &Type) {
        if self.g.len() > 1 || t.rank() == 0 || t.dtype == DType::Bool {
            return;
        }
        let axis = self.rng.below(t.rank()) as i64;
        if self.rng.below(2) == 0 {
            let (exclusive, reverse) = (self.rng.below(2) == 0, self.rng.below(2) == 0);
            self.add(CumSum { axis, exclusive, reverse }, &[x]);
        } else {
            let mut shape = t.shape.clone();
            shape[axis as usize] = Dim::from(1 + self.rng.below(3));
            let index = self.input(Type::new(DType::I64, shape.clone()));
            self.bounds.insert(self.g.inputs().len() - 1, t.shape[axis as usize].clone());
            let updates = self.input(Type::new(t.dtype, shape));
            let reduction = self.rng.pick(&["none", "add", "mul", "max", "min"]).to_string();
            self.add(ScatterElements { axis, reduction }, &[x, index, updates]);
        }
        self.values.truncate(0);
        if let Some(&id) = self.g.topo().last() {
            self.values.push(Value { node: id, result: 0 });
        }
    }

    /// Every value that nothing reads becomes an output; data is drawn.
    fn finish(mut self) -> Option<Region> {
        let mut n = 0;
        for id in self.g.topo() {
            if self.g.inputs().contains(&id) {
                continue;
            }
            let results = self.g.node(id)?.results.len() as u32;
            if (0..results).all(|r| self.g.users(Value { node: id, result: r }).is_empty()) {
                for r in 0..results {
                    self.g.output(&format!("y{n}"), Value { node: id, result: r });
                    n += 1;
                }
            }
        }
        if n == 0 || tiling(&self.g).ok()?.is_none() {
            return None;
        }
        let symbols = self.symbols.clone();
        let leaf = |a: &Atom| match a {
            Atom::Sym(s) => symbols.get(&**s).copied(),
            _ => None,
        };
        let mut inputs = Vec::new();
        for (i, id) in self.g.inputs().to_vec().into_iter().enumerate() {
            let ty = self.ty(Value { node: id, result: 0 });
            let shape: Option<Vec<usize>> =
                ty.shape.iter().map(|d| d.eval(&leaf).ok().and_then(|v| usize::try_from(v).ok())).collect();
            let shape = shape?;
            let count: usize = shape.iter().product();
            if count > 1 << 15 {
                return None;
            }
            let bound = match self.bounds.get(&i) {
                Some(d) => d.eval(&leaf).ok()?,
                None => 4,
            };
            if bound == 0 && count > 0 {
                return None;
            }
            let rng = &mut *self.rng;
            let elems = (0..count).map(|_| draw(rng, ty.dtype, bound));
            inputs.push(Tensor::from_scalars(ty.dtype, &shape, elems.collect::<Vec<_>>()));
        }
        Some(Region { graph: self.g, inputs, symbols })
    }
}

fn draw(rng: &mut Rng, d: DType, bound: i64) -> Scalar {
    match d {
        DType::Bool => Scalar::bool(rng.below(2) == 0),
        d if d.is_float() => Scalar::from_f64(d, rng.unit() * 4.0 - 2.0),
        d if d.is_unsigned() => Scalar::from_int(d, rng.below(9) as i128),
        d => Scalar::from_int(d, (rng.below(2 * bound as usize) as i64 - bound) as i128),
    }
}
