//! A second evaluator for tests: element by element in the type's own precision, sums in another order than the
//! interpreter's, functions off by as much as their class allows. Shares no code with the interpreter's loops.

use crate::accuracy::ulps;
use crate::class::{Class, Reducer, broadcast_index};
use crate::graph::{Graph, Value};
use crate::ops::{Lowering, Op};
use crate::scalar::{ENode, Expr, Scalar, cast, eval_bin, eval_fma, eval_un};
use crate::tensor::Tensor;
use crate::types::{Atom, DType, Dim, Type};
use std::collections::BTreeMap;

/// Pseudo-random numbers.
pub(super) struct Rng(pub u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    /// Uniform in -1..1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn points(shape: &[usize]) -> Vec<Vec<i64>> {
    let mut out = vec![vec![]];
    for &d in shape {
        out = out.into_iter().flat_map(|p| (0..d as i64).map(move |x| [&p[..], &[x]].concat())).collect();
    }
    out
}

fn sizes(t: &Type) -> Vec<usize> {
    t.as_fixed().expect("fixed shapes only")
}

fn at(index: &[Dim], labels: &[i64]) -> Vec<i64> {
    let leaf = |a: &Atom| match a {
        Atom::Label(i) => labels.get(*i as usize).copied(),
        _ => None,
    };
    index.iter().map(|d| d.eval(&leaf).unwrap()).collect()
}

fn read(t: &Tensor, i: &[i64]) -> Scalar {
    t.get(i.iter().zip(&t.shape).fold(0, |a, (&x, &d)| a * d + usize::try_from(x).unwrap()))
}

fn eval(e: &Expr, args: &[Scalar], labels: &[i64], rng: &mut Rng) -> Vec<Scalar> {
    let mut v: Vec<Scalar> = Vec::new();
    for (node, d) in &e.nodes {
        let a = |i: u32| v[i as usize];
        v.push(match node {
            ENode::Arg(i) => args[*i as usize],
            ENode::Const(s) => *s,
            ENode::Dim(x) => Scalar::from_int(DType::I64, at(std::slice::from_ref(x), labels)[0].into()),
            ENode::Un(op, x) => {
                let r = eval_un(*op, a(*x));
                let slack = ulps(*op, *d) * 2.0 * d.epsilon() * 0.9;
                if d.is_float() { Scalar::from_f64(*d, r.as_f64() * (1.0 + slack * rng.unit())) } else { r }
            }
            ENode::Bin(op, x, y) => eval_bin(*op, a(*x), a(*y)),
            ENode::Fma(x, y, z) => eval_fma(a(*x), a(*y), a(*z)),
            ENode::Select(c, x, y) => {
                if a(*c).is_true() {
                    a(*x)
                } else {
                    a(*y)
                }
            }
            ENode::Cast(x) => cast(*d, a(*x)),
            ENode::Bitcast(x) => Scalar { dtype: *d, ..a(*x) },
        });
    }
    e.roots.iter().map(|&r| v[r as usize]).collect()
}

/// Two partials over even and odd elements, joined.
fn reduce(r: &Reducer, elems: &[(i64, Vec<Scalar>)], rng: &mut Rng) -> Vec<Scalar> {
    let mut half = |odd: i64| {
        elems.iter().filter(|e| e.0 % 2 == odd).fold(r.init.clone(), |s, (p, x)| {
            let args = [&s[..], &x[..], &[Scalar::from_int(DType::I64, (*p).into())]].concat();
            eval(&r.step, &args, &[], rng)
        })
    };
    let both = [half(0), half(1)].concat();
    let joined = eval(&r.combine, &both, &[], rng);
    eval(&r.finish, &joined, &[], rng)
}

fn class(c: &Class, ins: &[Tensor], outs: &[Type], rng: &mut Rng) -> Vec<Tensor> {
    let shape = sizes(&outs[0]);
    let mut cols: Vec<Vec<Scalar>> = vec![Vec::new(); outs.len()];
    let mut put = |v: Vec<Scalar>| cols.iter_mut().zip(v).for_each(|(c, s)| c.push(s));
    for p in points(&shape) {
        match c {
            Class::Map(m) => {
                let arg = |t: &Tensor| read(t, &at(&broadcast_index(&t.ty().shape, &outs[0].shape), &p));
                put(eval(&m.expr, &ins.iter().map(arg).collect::<Vec<_>>(), &p, rng));
            }
            Class::View(v) => {
                let fixed = |d: &[Dim]| -> Vec<i64> { d.iter().map(|d| d.as_const().unwrap()).collect() };
                let inside = |q: &&crate::class::Piece| {
                    p.iter().zip(fixed(&q.lo).iter().zip(&fixed(&q.hi))).all(|(x, (l, h))| l <= x && x < h)
                };
                let hit = v.pieces.iter().find(inside).map(|q| read(&ins[q.operand], &at(&q.index, &p)));
                put(vec![hit.or(v.fill).unwrap()]);
            }
            Class::Reduce(r) => {
                let from = &ins[0].shape;
                let keep: Vec<usize> = (0..from.len()).filter(|a| !r.axes.contains(a)).collect();
                let p = if r.keepdims { keep.iter().map(|&a| p[a]).collect() } else { p };
                let ext: Vec<usize> = r.axes.iter().map(|&a| from[a]).collect();
                let elems: Vec<_> = points(&ext)
                    .into_iter()
                    .enumerate()
                    .map(|(n, q)| {
                        let mut i = vec![0; from.len()];
                        keep.iter().zip(&p).for_each(|(&a, &x)| i[a] = x);
                        r.axes.iter().zip(&q).for_each(|(&a, &x)| i[a] = x);
                        (n as i64, ins.iter().map(|t| read(t, &i)).collect())
                    })
                    .collect();
                put(reduce(&r.reducer, &elems, rng));
            }
            Class::Contract(k) => {
                let ext: Vec<usize> =
                    k.red.iter().map(|&l| k.extents[l as usize].as_const().unwrap() as usize).collect();
                let mut sum = Scalar::from_int(k.acc, 0);
                for q in points(&ext).into_iter().rev() {
                    let mut labels = vec![0; k.extents.len()];
                    k.out
                        .iter()
                        .zip(&p)
                        .chain(k.red.iter().zip(&q))
                        .for_each(|(&l, &x)| labels[l as usize] = x);
                    let leaf = |a: &Atom| match a {
                        Atom::Label(i) => labels.get(*i as usize).copied(),
                        _ => None,
                    };
                    let side = |i: usize| {
                        let a = &k.operands[i];
                        let zero = Scalar::from_int(k.acc, 0);
                        if a.when.eval(&leaf).unwrap() {
                            cast(k.acc, read(&ins[i], &at(&a.index, &labels)))
                        } else {
                            zero
                        }
                    };
                    let product = eval_bin(crate::scalar::Bin::Mul, side(0), side(1));
                    sum = eval_bin(crate::scalar::Bin::Add, sum, product);
                }
                put(vec![cast(outs[0].dtype, sum)]);
            }
            other => panic!("not in these tests: {other:?}"),
        }
    }
    outs.iter().zip(cols).map(|(t, c)| Tensor::from_scalars(t.dtype, &sizes(t), c)).collect()
}

/// Runs a graph of fixed shapes.
pub(super) fn run(g: &Graph, ins: &[Tensor], rng: &mut Rng) -> Vec<Tensor> {
    let mut env: BTreeMap<Value, Tensor> = BTreeMap::new();
    for (&id, t) in g.inputs().iter().zip(ins) {
        env.insert(Value { node: id, result: 0 }, t.clone());
    }
    for id in g.topo() {
        let node = g.node(id).unwrap();
        let args: Vec<Tensor> = g.operands(id).iter().map(|v| env[v].clone()).collect();
        let types: Vec<Type> = node.results.iter().map(|f| f.ty.clone()).collect();
        let vals = match &node.op {
            Op::Input(_) => continue,
            Op::Constant(c) => {
                let shape = sizes(&types[0]);
                let n = shape.iter().product();
                let get = |i| c.value.get(if c.shape.is_some() { 0 } else { i });
                vec![Tensor::from_scalars(types[0].dtype, &shape, (0..n).map(get))]
            }
            op => {
                let in_types: Vec<Type> = args.iter().map(Tensor::ty).collect();
                match op.lower(&in_types, &types, &g.symbols).unwrap() {
                    Lowering::Class(c) => class(&c, &args, &types, rng),
                    Lowering::Decompose(d) => run(&d, &args, rng),
                    other => panic!("not in these tests: {other:?}"),
                }
            }
        };
        for (r, t) in vals.into_iter().enumerate() {
            env.insert(Value { node: id, result: r as u32 }, t);
        }
    }
    g.outputs().iter().map(|o| env[&o.value].clone()).collect()
}
