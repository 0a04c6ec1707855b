//! Derives known elements of small results from known operands, by class: this is how shape arithmetic
//! (Shape -> Gather -> Concat -> Reshape) is resolved while a graph is built. No op rule lives here.

use crate::class::{Class, broadcast_index};
use crate::ops::{Lowering, Op};
use crate::scalar::{Bin, ENode, Expr, Scalar, Un, cast, eval_bin, eval_fma, eval_un};
use crate::types::{Atom, DType, Dim, Fact, Known, KnownElem, MAX_KNOWN, Pred, SymTable, Type};

/// Fills in `known` of results whose elements follow from the operands' known elements.
pub(crate) fn propagate(op: &Op, operands: &[Fact], results: &mut [Fact], symbols: &SymTable) {
    match op {
        Op::Constant(c) => {
            if let Some(n) = small(&results[0].ty) {
                let splat = c.shape.is_some();
                let at = |i| KnownElem::Scalar(c.value.get(if splat { 0 } else { i }));
                results[0].known = Some(Known((0..n).map(at).collect()));
            }
            return;
        }
        Op::ConstDims(c) => {
            let elem = |d: &Dim| match d.as_const() {
                Some(v) => KnownElem::Scalar(Scalar::from_int(c.dtype, i128::from(v))),
                None => KnownElem::Dim(d.clone()),
            };
            results[0].known = Some(Known(c.dims.iter().map(elem).collect()));
            return;
        }
        _ => {}
    }
    if !operands.is_empty() && !operands.iter().any(|f| f.known.is_some()) {
        return;
    }
    let ins: Vec<Type> = operands.iter().map(|f| f.ty.clone()).collect();
    let outs: Vec<Type> = results.iter().map(|f| f.ty.clone()).collect();
    if !outs.iter().all(|t| small(t).is_some()) {
        return;
    }
    match op.lower(&ins, &outs, symbols) {
        Ok(Lowering::Class(class)) => by_class(&class, operands, results, symbols),
        Ok(Lowering::Decompose(g)) => by_parts(&g, operands, results),
        _ => {}
    }
}

/// Runs a decomposition again with the operands' known elements as its inputs'.
fn by_parts(g: &crate::graph::Graph, operands: &[Fact], results: &mut [Fact]) {
    let mut facts: std::collections::BTreeMap<crate::graph::Value, Fact> = std::collections::BTreeMap::new();
    for id in g.topo() {
        let Some(node) = g.node(id) else { return };
        let input = g.inputs().iter().position(|i| *i == id);
        let ins: Option<Vec<Fact>> = g.operands(id).iter().map(|v| facts.get(v).cloned()).collect();
        let Some(ins) = ins else { return };
        let mut out = node.results.clone();
        match input {
            Some(i) => out[0].known = operands.get(i).and_then(|f| f.known.clone()),
            None => propagate(&node.op, &ins, &mut out, &g.symbols),
        }
        for (i, f) in out.into_iter().enumerate() {
            facts.insert(crate::graph::Value { node: id, result: i as u32 }, f);
        }
    }
    for (r, o) in results.iter_mut().zip(g.outputs()) {
        r.known = facts.get(&o.value).and_then(|f| f.known.clone());
    }
}

fn small(t: &Type) -> Option<usize> {
    let n = t.as_fixed()?.into_iter().try_fold(1usize, usize::checked_mul)?;
    (n <= MAX_KNOWN).then_some(n)
}

fn by_class(class: &Class, operands: &[Fact], results: &mut [Fact], symbols: &SymTable) {
    match class {
        Class::Map(m) => {
            let Some(shape) = results[0].ty.as_fixed() else { return };
            let maps: Vec<Vec<Dim>> =
                operands.iter().map(|f| broadcast_index(&f.ty.shape, &results[0].ty.shape)).collect();
            let mut out: Vec<Vec<KnownElem>> = vec![Vec::new(); results.len()];
            for at in indices(&shape) {
                let args: Vec<KnownElem> =
                    operands.iter().zip(&maps).map(|(f, m)| read(f, m, &at, &[])).collect();
                for (o, e) in out.iter_mut().zip(eval(&m.expr, &args, &at, symbols)) {
                    o.push(e);
                }
            }
            for (r, o) in results.iter_mut().zip(out) {
                r.known = Some(Known(o));
            }
        }
        Class::View(v) => {
            let Some(shape) = results[0].ty.as_fixed() else { return };
            let mut out = Vec::new();
            for at in indices(&shape) {
                let inside = |p: &&crate::class::Piece| {
                    at.iter().enumerate().all(|(i, &x)| {
                        let (lo, hi) = (p.lo[i].as_const(), p.hi[i].as_const());
                        lo.is_some_and(|l| l <= x) && hi.is_some_and(|h| x < h)
                    })
                };
                out.push(match v.pieces.iter().find(inside) {
                    Some(p) => {
                        operands.get(p.operand).map_or(KnownElem::Unknown, |f| read(f, &p.index, &at, &[]))
                    }
                    None => v.fill.map_or(KnownElem::Unknown, KnownElem::Scalar),
                });
            }
            results[0].known = Some(Known(out));
        }
        Class::Index(ix) if ix.scatter.is_none() => {
            let Some(shape) = results[0].ty.as_fixed() else { return };
            let mut out = Vec::new();
            for at in indices(&shape) {
                let vals: Option<Vec<i64>> = ix
                    .reads
                    .iter()
                    .map(|(operand, index, bound)| {
                        let v = read(operands.get(*operand)?, index, &at, &[]).as_dim()?.as_const()?;
                        let b = bound.as_const()?;
                        (-b <= v && v < b).then_some(if v < 0 { v + b } else { v })
                    })
                    .collect();
                out.push(vals.map_or(KnownElem::Unknown, |v| read(&operands[0], &ix.at, &at, &v)));
            }
            results[0].known = Some(Known(out));
        }
        Class::Reduce(r) if results.len() == 1 && operands.len() == 1 => {
            reduce(r, &operands[0], &mut results[0], symbols)
        }
        _ => {}
    }
}

fn reduce(r: &crate::class::Reduce, x: &Fact, result: &mut Fact, symbols: &SymTable) {
    let (Some(shape), Some(n)) = (x.ty.as_fixed(), small(&x.ty)) else { return };
    let Some(known) = x.known.as_ref().filter(|k| k.0.len() == n) else { return };
    let Some(count) = small(&result.ty) else { return };
    let mut state = vec![r.reducer.init.iter().map(|s| KnownElem::Scalar(*s)).collect::<Vec<_>>(); count];
    for (pos, at) in indices(&shape).enumerate() {
        let (mut slot, mut red) = (0usize, 0i64);
        for (i, (&x, &d)) in at.iter().zip(&shape).enumerate() {
            if r.axes.contains(&i) {
                red = red * d as i64 + x;
            } else {
                slot = slot * d + x as usize;
            }
        }
        let mut args = state[slot].clone();
        args.push(known.0[pos].clone());
        args.push(KnownElem::Scalar(Scalar::from_int(DType::I64, i128::from(red))));
        state[slot] = eval(&r.reducer.step, &args, &[], symbols);
    }
    let finish = |s: &Vec<KnownElem>| eval(&r.reducer.finish, s, &[], symbols).swap_remove(0);
    result.known = Some(Known(state.iter().map(finish).collect()));
}

/// All index tuples of a shape, row-major.
fn indices(shape: &[usize]) -> impl Iterator<Item = Vec<i64>> {
    let shape = shape.to_vec();
    let n: usize = shape.iter().product();
    (0..n).map(move |mut i| {
        let mut at = vec![0i64; shape.len()];
        for (a, &d) in at.iter_mut().zip(&shape).rev() {
            *a = (i % d) as i64;
            i /= d;
        }
        at
    })
}

fn read(f: &Fact, index: &[Dim], at: &[i64], vals: &[i64]) -> KnownElem {
    let go = || {
        let (known, shape) = (f.known.as_ref()?, f.ty.as_fixed()?);
        let leaf = |a: &Atom| match a {
            Atom::Label(i) => at.get(*i as usize).copied(),
            Atom::Val(i) => vals.get(*i as usize).copied(),
            _ => None,
        };
        let mut lin = 0usize;
        for (ix, &d) in index.iter().zip(&shape) {
            let i = usize::try_from(ix.eval(&leaf).ok()?).ok().filter(|i| *i < d)?;
            lin = lin * d + i;
        }
        known.0.get(lin).cloned()
    };
    go().unwrap_or(KnownElem::Unknown)
}

/// Evaluates a scalar program over known elements, symbolically where dims are involved.
fn eval(e: &Expr, args: &[KnownElem], at: &[i64], symbols: &SymTable) -> Vec<KnownElem> {
    let mut v: Vec<KnownElem> = Vec::with_capacity(e.nodes.len());
    for (node, dtype) in &e.nodes {
        let get = |i: u32| v.get(i as usize).cloned().unwrap_or(KnownElem::Unknown);
        let r = match node {
            ENode::Arg(i) => args.get(*i as usize).cloned().unwrap_or(KnownElem::Unknown),
            ENode::Const(s) => KnownElem::Scalar(*s),
            ENode::Dim(d) => KnownElem::Dim(d.subst(&|a| match a {
                Atom::Label(i) => at.get(*i as usize).map(|&x| Dim::from(x)),
                _ => None,
            })),
            ENode::Un(op, a) => un(*op, get(*a)),
            ENode::Bin(op, a, b) => bin(*op, get(*a), get(*b), symbols),
            ENode::Fma(a, b, c) => match (get(*a), get(*b), get(*c)) {
                (KnownElem::Scalar(a), KnownElem::Scalar(b), KnownElem::Scalar(c)) => {
                    KnownElem::Scalar(eval_fma(a, b, c))
                }
                _ => KnownElem::Unknown,
            },
            ENode::Select(c, a, b) => match decide(&get(*c), symbols) {
                Some(c) => get(if c { *a } else { *b }),
                None if get(*a) == get(*b) => get(*a),
                None => KnownElem::Unknown,
            },
            ENode::Cast(a) => convert(*dtype, get(*a)),
            ENode::Bitcast(_) => KnownElem::Unknown,
        };
        v.push(normal(r, *dtype, symbols));
    }
    e.roots.iter().map(|&r| v[r as usize].clone()).collect()
}

/// Constant dims become scalars; a dim that might not fit its type is not known.
fn normal(e: KnownElem, dtype: DType, symbols: &SymTable) -> KnownElem {
    match e {
        KnownElem::Dim(d) => match d.as_const() {
            Some(c) => KnownElem::Scalar(Scalar::from_int(dtype, i128::from(c))),
            None => {
                let (lo, hi) = symbols.range(&d);
                let min = Scalar::extreme(dtype, false).as_int().unwrap_or(0);
                let max = Scalar::extreme(dtype, true).as_int().unwrap_or(0);
                // 64-bit products are checked when sizes are bound, so only narrower types can wrap silently
                let fits = dtype.is_int() && (dtype.bits() == 64 || (lo >= min && hi <= max));
                if fits { KnownElem::Dim(d) } else { KnownElem::Unknown }
            }
        },
        KnownElem::Pred(p) => match p.decide_in(symbols) {
            Some(b) => KnownElem::Scalar(Scalar::bool(b)),
            None => KnownElem::Pred(p),
        },
        e => e,
    }
}

fn decide(e: &KnownElem, symbols: &SymTable) -> Option<bool> {
    match e {
        KnownElem::Scalar(s) => Some(s.is_true()),
        KnownElem::Pred(p) => p.decide_in(symbols),
        _ => None,
    }
}

fn un(op: Un, a: KnownElem) -> KnownElem {
    match (op, a) {
        (_, KnownElem::Scalar(s)) => KnownElem::Scalar(eval_un(op, s)),
        (Un::Neg, KnownElem::Dim(d)) => KnownElem::Dim(-d),
        (Un::Not, KnownElem::Pred(p)) => KnownElem::Pred(Pred::Not(Box::new(p))),
        _ => KnownElem::Unknown,
    }
}

fn bin(op: Bin, a: KnownElem, b: KnownElem, symbols: &SymTable) -> KnownElem {
    if let (KnownElem::Scalar(x), KnownElem::Scalar(y)) = (&a, &b) {
        return KnownElem::Scalar(eval_bin(op, *x, *y));
    }
    let pred = |e: &KnownElem| match e {
        KnownElem::Pred(p) => Some(p.clone()),
        KnownElem::Scalar(s) if s.dtype == DType::Bool => {
            Some(if s.is_true() { Pred::True } else { Pred::Not(Box::new(Pred::True)) })
        }
        _ => None,
    };
    if let (Some(p), Some(q)) = (pred(&a), pred(&b)) {
        return match op {
            Bin::And => KnownElem::Pred(Pred::And(vec![p, q])),
            Bin::Or => KnownElem::Pred(Pred::Or(vec![p, q])),
            _ => KnownElem::Unknown,
        };
    }
    let (Some(x), Some(y)) = (a.as_dim(), b.as_dim()) else { return KnownElem::Unknown };
    let nonneg = |d: &Dim| symbols.range(d).0 >= 0;
    let zero = Dim::from(0);
    let dim = match op {
        Bin::Add => x + y,
        Bin::Sub => x - y,
        Bin::Mul => x * y,
        Bin::Min => x.dmin(&y),
        Bin::Max => x.dmax(&y),
        Bin::Div if symbols.range(&y).0 >= 1 && nonneg(&x) => x.floordiv(&y),
        Bin::Div if symbols.range(&y).0 >= 1 => x.dmax(&zero).floordiv(&y) - (-x).dmax(&zero).floordiv(&y),
        Bin::Mod if symbols.range(&y).0 >= 1 => x.rem(&y),
        Bin::Rem if symbols.range(&y).0 >= 1 && nonneg(&x) => x.rem(&y),
        Bin::Eq => return KnownElem::Pred(Pred::Eq(x, y)),
        Bin::Lt => return KnownElem::Pred(Pred::Le(x + Dim::from(1), y)),
        Bin::Le => return KnownElem::Pred(Pred::Le(x, y)),
        _ => return KnownElem::Unknown,
    };
    KnownElem::Dim(dim)
}

fn convert(to: DType, a: KnownElem) -> KnownElem {
    match a {
        KnownElem::Scalar(s) if !s.dtype.is_storage_only() && !to.is_storage_only() => {
            KnownElem::Scalar(cast(to, s))
        }
        KnownElem::Dim(d) if to.is_int() => KnownElem::Dim(d),
        _ => KnownElem::Unknown,
    }
}
