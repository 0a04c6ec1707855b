//! Random graphs around convolutions compute the same with channels last, with the layout pass alone and in the pipeline.

mod support;

use support::{inputs, same};
use tgc_ir::diag::Loc;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::interp::run_bounded;
use tgc_ir::module::Module;
use tgc_ir::ops::*;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::text::print_module;
use tgc_ir::types::{DType, Dim, SymInfo, Type};
use tgc_passes::{Options, run_pipeline};

/// Elements of a value beside its symbolic dims.
const MOST: i64 = 600;

struct Maker {
    g: Graph,
    state: u64,
    values: Vec<Value>,
}

impl Maker {
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 33) as usize % n.max(1)
    }

    fn each(&mut self, n: usize, lo: i64, span: usize) -> Vec<i64> {
        (0..n).map(|_| lo + self.below(span) as i64).collect()
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn input(&mut self, shape: Vec<Dim>) -> Value {
        let name = format!("x{}", self.g.inputs().len());
        self.g.input(&name, Type::new(DType::F32, shape), Loc::default())
    }

    fn shape(&self, v: Value) -> Vec<Dim> {
        self.g.ty(v).unwrap().shape.clone()
    }

    fn pick(&mut self) -> Value {
        // recent values are likelier, so that chains grow
        let from = if self.coin() { self.values.len().saturating_sub(3) } else { 0 };
        let at = from + self.below(self.values.len() - from);
        self.values[at]
    }

    /// Adds a node; an op that does not accept the operands is left out.
    fn add(&mut self, op: impl Into<Op>, operands: &[Value]) -> Option<Value> {
        let v = self.g.op(op, operands, &Loc::default()).ok()?;
        let fixed: i64 = self.shape(v).iter().filter_map(Dim::as_const).product();
        let float = self.g.ty(v).unwrap().dtype == DType::F32;
        if float && (1..=MOST).contains(&fixed) {
            self.values.push(v);
        }
        Some(v)
    }

    fn conv(&mut self, x: Value) {
        let shape = self.shape(x);
        let Some(c) = shape.get(1).and_then(Dim::as_const).filter(|_| shape.len() >= 3) else { return };
        let n = shape.len() - 2;
        let groups = match self.below(4) {
            0 => c,
            1 if c % 2 == 0 => 2,
            _ => 1,
        };
        let mut w = vec![Dim::from(groups * (1 + self.below(3) as i64)), Dim::from(c / groups)];
        w.extend(self.each(n, 1, 3).into_iter().map(Dim::from));
        let w = self.input(w);
        let (strides, dilations) = (self.each(n, 1, 2), self.each(n, 1, 2));
        let pads = self.each(2 * n, 0, 3);
        self.add(Conv { strides, pads, dilations, groups, channels_last: false }, &[x, w]);
    }

    fn pool(&mut self, x: Value) {
        let n = self.shape(x).len().saturating_sub(2);
        let (kernel, strides, pads) = (self.each(n, 2, 2), self.each(n, 1, 2), self.each(2 * n, 0, 2));
        let (dilations, ceil, channels_last) = (vec![1; n], self.coin(), false);
        if self.coin() {
            self.add(MaxPool { kernel, strides, pads, dilations, ceil, channels_last }, &[x]);
        } else {
            let count_include_pad = self.coin();
            let op = AvgPool { kernel, strides, pads, dilations, ceil, count_include_pad, channels_last };
            self.add(op, &[x]);
        }
    }

    /// An input that broadcasts to `x`.
    fn beside(&mut self, x: Value) -> Value {
        let shape = self.shape(x);
        let skip = if self.coin() { 0 } else { self.below(shape.len() + 1) };
        let part = shape[skip..].iter().map(|d| if self.coin() { d.clone() } else { Dim::from(1) }).collect();
        self.input(part)
    }

    fn map(&mut self, x: Value) {
        let y = if self.coin() { self.beside(x) } else { self.pick() };
        match self.below(5) {
            0 => self.add(Tanh {}, &[x]),
            1 => self.add(Add {}, &[x, y]),
            2 => self.add(Mul {}, &[y, x]),
            3 => self.add(Max {}, &[x, y]),
            _ => self.add(Lt {}, &[x, y]).and_then(|c| self.add(Select {}, &[c, x, y])),
        };
    }

    fn boxes(&mut self, x: Value) {
        let shape = self.shape(x);
        let rank = shape.len();
        if self.coin() {
            let mut ends = || self.each(rank, 0, 2).into_iter().map(Dim::from).collect();
            let (before, after) = (ends(), ends());
            self.add(Pad { before, after, value: Scalar::from_f64(DType::F32, 0.5) }, &[x]);
            return;
        }
        let (mut starts, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for d in shape {
            let back = self.coin() && d.as_const().is_some();
            let one = d.as_const().is_some_and(|d| d > 1) && self.coin();
            let from = if back || one { 1 } else { 0 };
            starts.push(Dim::from(if back { d.as_const().unwrap_or(1) - 1 } else { from }));
            sizes.push(if one { d - Dim::from(1) } else { d });
            steps.push(if back { -1 } else { 1 });
        }
        self.add(Slice { starts, sizes, steps }, &[x]);
    }

    fn joined(&mut self, x: Value) {
        let (axis, y) = (self.below(self.shape(x).len()) as i64, self.pick());
        if self.coin() && self.shape(y).len() == self.shape(x).len() {
            self.add(Concat { axis }, &[x, y]);
            return;
        }
        if self.shape(x)[axis as usize].as_const().is_some_and(|d| d >= 2) {
            let at = [1, 0, -1].map(|i| Scalar::from_int(DType::I64, i));
            let value = Tensor::from_scalars(DType::I64, &[3], at);
            if let Some(at) = self.add(Constant { value, shape: None }, &[]) {
                self.add(Gather { axis }, &[x, at]);
            }
        }
    }

    fn reduced(&mut self, x: Value) {
        let rank = self.shape(x).len();
        let axes: Vec<i64> = (0..rank as i64).filter(|_| self.below(3) == 0).collect();
        let keepdims = self.below(3) > 0;
        let axis = self.below(rank) as i64;
        match self.below(4) {
            0 => self.add(ReduceSum { axes, keepdims }, &[x]),
            1 => self.add(ReduceMax { axes, keepdims }, &[x]),
            2 => self.add(ReduceMean { axes, keepdims }, &[x]),
            _ => {
                let op = ArgMax { axis, keepdims, last: false, smallest: false };
                self.add(op, &[x]).and_then(|i| self.add(Cast { to: DType::F32 }, &[i]))
            }
        };
    }

    fn shuffled(&mut self, x: Value) {
        let mut shape = self.shape(x);
        let rank = shape.len();
        match self.below(4) {
            0 => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                (1..rank).rev().for_each(|i| perm.swap(i, self.below(i + 1)));
                self.add(Transpose { perm }, &[x]);
            }
            1 if rank > 3 => {
                let last = shape.remove(rank - 1);
                shape[rank - 2] = shape[rank - 2].clone() * last;
                self.add(Reshape { shape }, &[x]);
            }
            2 if rank < 5 => {
                shape.insert(self.below(rank + 1), Dim::from(1));
                self.add(Reshape { shape }, &[x]);
            }
            _ => {
                let y = self.pick();
                let shape = self.shape(y);
                self.add(Expand { shape }, &[x]);
            }
        }
    }

    fn step(&mut self) {
        let x = self.pick();
        if self.shape(x).is_empty() {
            return;
        }
        match self.below(9) {
            0 | 1 => self.conv(x),
            2 => self.pool(x),
            3 | 4 => self.map(x),
            5 => self.boxes(x),
            6 => self.joined(x),
            7 => self.reduced(x),
            _ => self.shuffled(x),
        }
    }
}

fn random(seed: u64) -> Module {
    let mut g = Graph::new("main");
    g.symbols.insert("n", SymInfo::default());
    let mut m = Maker { g, state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), values: Vec::new() };
    let rank = 3 + m.below(3);
    let mut shape = vec![Dim::sym("n"), Dim::from(1 + m.below(4) as i64)];
    let spatial = m.each(rank - 2, 2, if rank > 4 { 2 } else { 5 });
    shape.extend(spatial.into_iter().map(Dim::from));
    let x = m.input(shape);
    m.values.push(x);
    m.conv(x);
    for _ in 0..3 + m.below(9) {
        m.step();
    }
    let mut outs = vec![*m.values.last().unwrap()];
    for _ in 0..m.below(3) {
        let v = m.pick();
        outs.push(v);
    }
    for (i, v) in outs.into_iter().enumerate() {
        m.g.output(&format!("y{i}"), v);
    }
    Module::single(m.g)
}

#[test]
fn random_graphs_compute_the_same_with_channels_last() {
    let mut fired = 0;
    for seed in 0..200 {
        let module = random(seed);
        let alone = ["decompose", "layout"].map(str::to_string).to_vec();
        for passes in [Some(alone), None] {
            let mut after = module.clone();
            let what = format!("seed {seed}, passes {passes:?}");
            let options = Options { passes, verify_each: true, ..Options::default() };
            let report = run_pipeline(&mut after, &options)
                .unwrap_or_else(|e| panic!("{what}: {}\n{}", e[0].render(None), print_module(&module)));
            fired += usize::from(report.fired.contains_key("channels_last"));
            for size in [1, 3] {
                let ins = inputs(&module, size, seed);
                let Ok(want) = run_bounded(&module, "main", &ins) else { continue };
                let got = run_bounded(&after, "main", &ins)
                    .unwrap_or_else(|e| panic!("{what}: {}\n{}", e.render(None), print_module(&after)));
                same(&want, &got, &format!("{what}\n{}\n{}", print_module(&module), print_module(&after)));
            }
        }
    }
    assert!(fired > 200, "the pass did something in {fired} of 400 runs only");
}
