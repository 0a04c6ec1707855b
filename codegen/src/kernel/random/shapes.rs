//! Whole random kernels by kind.

use super::pieces::{TYPES, extents, identity, set, stage};
use super::{Content, Gen};
use crate::kernel::{Buf, Item, Kind, Load, Local, LocalAxis, Mode, Role, Stage};
use tgc_ir::class::Combine;
use tgc_ir::scalar::{Bin, Scalar, Un};
use tgc_ir::types::{DType, Dim, Pred};

pub(super) const SHAPES: [fn(&mut Gen); 10] =
    [map, map, reduce, reduce, contract, window, softmax, halo, scan, scatter];

const LANES: [u32; 5] = [1, 2, 8, 16, 64];

impl Gen {
    fn push(&mut self, s: Stage) {
        self.k.body.push(Item::Stage(s));
    }

    fn local(&mut self, dtype: DType, axes: Vec<LocalAxis>) -> Buf {
        self.k.locals.push(Local { name: format!("t{}", self.k.locals.len()), dtype, axes });
        Buf::Local(self.k.locals.len() as u32 - 1)
    }
}

fn tile(grid: u32) -> LocalAxis {
    LocalAxis::Tile { grid, lo: 0, hi: 0 }
}

fn proved(from: Buf, index: Vec<Dim>) -> Load {
    Load { from, index, mode: Mode::Proved }
}

/// One or two outputs computed pointwise, one of them possibly transposed or with an inner label.
fn map(g: &mut Gen) {
    let n = g.r.below(4);
    let grid = g.grid(n);
    let mut s = stage("map", &grid, Kind::Map);
    let mut axes = grid.clone();
    if g.r.once_in(3) {
        let (l, d) = (g.label(), Dim::from(1 + g.r.below(9)));
        s.inner.push((l, d.clone()));
        axes.push((l, d));
    }
    for i in 0..1 + g.r.below(2) as u32 {
        let to = g.r.pick(&TYPES);
        let v = g.value_of(&mut s, &axes, to);
        s.expr.roots.push(v);
        let mut out = axes.clone();
        if g.r.once_in(4) {
            out.reverse();
        }
        let y = g.arg(Role::Out, to, extents(&out), Content::Any);
        s.stores.push(set(y, identity(&out), i));
    }
    g.push(s);
}

fn reduce(g: &mut Gen) {
    let n = g.r.below(3);
    let grid = g.grid(n);
    let to = g.r.pick(&TYPES);
    let input = g.r.pick(&TYPES);
    let (reducer, result) = g.reducer(input);
    let lanes = g.r.pick(&LANES);
    let mut s = stage("reduce", &grid, Kind::Reduce { reducer, lanes });
    for _ in 0..g.r.below(3) {
        let d = if g.r.once_in(3) { Dim::from(1 + g.r.below(5)) } else { g.extent() };
        s.red.push((g.label(), d));
    }
    let axes: Vec<_> = grid.iter().chain(&s.red).cloned().collect();
    let v = g.value_of(&mut s, &axes, input);
    s.expr.roots = vec![v];
    g.post(&mut s, &grid, result, to);
    let to = if s.post.is_some() { to } else { result };
    let y = g.arg(Role::Out, to, extents(&grid), Content::Any);
    s.stores.push(set(y, identity(&grid), 0));
    g.push(s);
}

/// A matrix product, sometimes batched, of wide or narrow operands.
fn contract(g: &mut Gen) {
    let n = 1 + g.r.below(3);
    let grid = g.grid(n);
    let acc = g.r.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::I32, DType::U8]);
    let chunk = g.r.pick(&[3, 16, 1024]);
    let mut s = stage("matmul", &grid, Kind::Contract { chunk });
    let d = g.extent();
    s.red.push((g.label(), d));
    let k = s.red[0].clone();
    let keep = g.r.below(grid.len() + 1);
    let a: Vec<_> = grid[..keep].iter().cloned().chain([k.clone()]).collect();
    let b: Vec<_> = [k].into_iter().chain(grid[keep.min(grid.len())..].iter().cloned()).collect();
    for axes in [a, b] {
        let dtype = if g.r.once_in(3) { g.r.pick(&TYPES) } else { acc };
        let from = g.arg(Role::In, dtype, extents(&axes), Content::Any);
        s.loads.push(proved(from, identity(&axes)));
        let x = s.expr.arg(s.loads.len() as u32 - 1, dtype);
        let x = s.expr.cast(acc, x);
        s.expr.roots.push(x);
    }
    let to = if g.r.once_in(2) { acc } else { g.r.pick(&TYPES) };
    g.post(&mut s, &grid, acc, to);
    let to = if s.post.is_some() { to } else { acc };
    let y = g.arg(Role::Out, to, extents(&grid), Content::Any);
    s.stores.push(set(y, identity(&grid), 0));
    g.push(s);
}

/// A one-dimensional convolution with padding, stride and dilation.
fn window(g: &mut Gen) {
    let (oc, ow) = (Dim::from(1 + g.r.below(9)), g.extent());
    g.k.grid = vec![oc.clone(), ow.clone()];
    g.next_label = 2;
    let grid = g.axes();
    let [stride, dilation] = [1 + g.r.below(2) as i64, 1 + g.r.below(2) as i64];
    let (pad, kw, ic) = (g.r.below(3) as i64, 1 + g.r.below(4) as i64, Dim::from(1 + g.r.below(4)));
    let mut s = stage("conv", &grid, Kind::Contract { chunk: g.r.pick(&[2, 1024]) });
    let (c, k) = (g.label(), g.label());
    s.red = vec![(c, ic.clone()), (k, Dim::from(kw))];
    let at = Dim::label(1) * Dim::from(stride) + Dim::label(k) * Dim::from(dilation) - Dim::from(pad);
    let width = (ow - Dim::from(1)) * Dim::from(stride) + Dim::from((kw - 1) * dilation + 1 - 2 * pad);
    let width = width.dmax(&Dim::from(0));
    let x = g.arg(Role::In, DType::F32, vec![ic.clone(), width.clone()], Content::Any);
    let w = g.arg(Role::Const, DType::F32, vec![oc, ic, Dim::from(kw)], Content::Any);
    let inside = Pred::in_box(&at, &Dim::from(0), &width);
    let zero = Scalar::from_f64(DType::F32, 0.0);
    s.loads.push(Load { from: x, index: vec![Dim::label(c), at], mode: Mode::Fill(inside, zero) });
    s.loads.push(proved(w, vec![Dim::label(0), Dim::label(c), Dim::label(k)]));
    s.expr.roots = vec![s.expr.arg(0, DType::F32), s.expr.arg(1, DType::F32)];
    g.post(&mut s, &grid, DType::F32, DType::F32);
    let y = g.arg(Role::Out, DType::F32, extents(&grid), Content::Any);
    s.stores.push(set(y, identity(&grid), 0));
    g.push(s);
}

/// Row maximum, exponentials, their sum and the quotient, through locals.
fn softmax(g: &mut Gen) {
    let axes_wanted = 1 + g.r.below(2);
    let grid = g.grid(axes_wanted);
    let rows: Vec<LocalAxis> = grid.iter().map(|a| tile(a.0)).collect();
    let (dtype, n) = (g.r.pick(&[DType::F32, DType::F64, DType::F16]), g.extent());
    let x = g.arg(Role::In, dtype, extents(&grid).into_iter().chain([n.clone()]).collect(), Content::Any);
    let y = g.arg(Role::Out, dtype, extents(&grid).into_iter().chain([n.clone()]).collect(), Content::Any);
    let acc = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let top = g.local(acc, rows.clone());
    let powers = g.local(acc, rows.iter().cloned().chain([LocalAxis::Full(n.clone())]).collect());
    let total = g.local(acc, rows);
    let at = |l: u32| -> Vec<Dim> { identity(&grid).into_iter().chain([Dim::label(l)]).collect() };
    for (name, op) in [("max", Bin::Max), ("sum", Bin::Add)] {
        let max = op == Bin::Max;
        let init = if max { Scalar::extreme(acc, false) } else { Scalar::from_int(acc, 0) };
        let reducer = tgc_ir::class::Reducer::simple(op, acc, acc, init, acc);
        let mut s = stage(name, &grid, Kind::Reduce { reducer, lanes: g.r.pick(&LANES) });
        s.red = vec![(g.label(), n.clone())];
        s.loads.push(proved(if max { x } else { powers }, at(s.red[0].0)));
        let v = s.expr.arg(0, if max { dtype } else { acc });
        s.expr.roots = vec![s.expr.cast(acc, v)];
        s.stores.push(set(if max { top } else { total }, identity(&grid), 0));
        g.push(s);
        let mut s = stage(if max { "exp" } else { "divide" }, &grid, Kind::Map);
        s.inner = vec![(g.label(), n.clone())];
        let l = s.inner[0].0;
        s.loads.push(proved(if max { x } else { powers }, at(l)));
        s.loads.push(proved(if max { top } else { total }, identity(&grid)));
        let v = s.expr.arg(0, if max { dtype } else { acc });
        let (v, t) = (s.expr.cast(acc, v), s.expr.arg(1, acc));
        let r = s.expr.bin(if max { Bin::Sub } else { Bin::Div }, v, t);
        let r = if max { s.expr.un(Un::Exp, r) } else { s.expr.cast(dtype, r) };
        s.expr.roots = vec![r];
        s.stores.push(set(if max { powers } else { y }, at(l), 0));
        g.push(s);
    }
}

/// A buffer with a halo filled by shifted copies, then a sum of neighbours.
fn halo(g: &mut Gen) {
    let grid = g.grid(1);
    let Some((_, d)) = grid.first().cloned() else { return map(g) };
    let dtype = g.r.pick(&[DType::F32, DType::I32, DType::U8]);
    let (lo, hi) = (g.r.below(3) as u32, g.r.below(3) as u32);
    let t = g.local(dtype, vec![LocalAxis::Tile { grid: 0, lo, hi }]);
    let x = g.arg(Role::In, dtype, vec![d.clone()], Content::Any);
    let fill = g.element(dtype, &Content::Any);
    let shifts: Vec<i64> = (-i64::from(lo)..=i64::from(hi)).collect();
    for o in &shifts {
        let mut s = stage("copy", &grid, Kind::Map);
        let at = Dim::label(0) + Dim::from(*o);
        let inside = Pred::in_box(&at, &Dim::from(0), &d);
        s.loads.push(Load { from: x, index: vec![at.clone()], mode: Mode::Fill(inside, fill) });
        s.expr.roots = vec![s.expr.arg(0, dtype)];
        s.stores.push(set(t, vec![at], 0));
        g.push(s);
    }
    let mut s = stage("sum", &grid, Kind::Map);
    let mut sum = None;
    for (i, o) in shifts.iter().enumerate() {
        s.loads.push(proved(t, vec![Dim::label(0) + Dim::from(*o)]));
        let v = s.expr.arg(i as u32, dtype);
        sum = Some(sum.map_or(v, |a| s.expr.bin(Bin::Add, a, v)));
    }
    s.expr.roots.extend(sum);
    let y = g.arg(Role::Out, dtype, vec![d], Content::Any);
    s.stores.push(set(y, vec![Dim::label(0)], 0));
    g.push(s);
}

/// A running operation along an axis, with the state in a local and the last elements in a ring.
fn scan(g: &mut Gen) {
    let axes_wanted = g.r.below(3);
    let grid = g.grid(axes_wanted);
    let rows: Vec<LocalAxis> = grid.iter().map(|a| tile(a.0)).collect();
    let dtype = g.r.pick(&[DType::F32, DType::F64, DType::I64, DType::I16]);
    let state = g.local(dtype, rows.clone());
    let ring = g.local(dtype, rows.into_iter().chain([LocalAxis::Ring(2)]).collect());
    let mut s = stage("init", &grid, Kind::Map);
    s.expr.roots = vec![s.expr.constant(Scalar::from_int(dtype, 1))];
    s.stores.push(set(state, identity(&grid), 0));
    g.push(s);
    let mut s = stage("init ring", &grid, Kind::Map);
    s.inner = vec![(g.label(), Dim::from(2))];
    s.expr.roots = vec![s.expr.constant(Scalar::from_int(dtype, 2))];
    let at = identity(&grid).into_iter().chain([Dim::label(s.inner[0].0)]).collect();
    s.stores.push(set(ring, at, 0));
    g.push(s);
    let (t, n) = (g.label(), g.extent());
    let at =
        |o: i64| -> Vec<Dim> { identity(&grid).into_iter().chain([Dim::label(t) + Dim::from(o)]).collect() };
    let shape: Vec<Dim> = extents(&grid).into_iter().chain([n.clone()]).collect();
    let x = g.arg(Role::In, dtype, shape.clone(), Content::Any);
    let y = g.arg(Role::Out, dtype, shape, Content::Any);
    let mut step = stage("step", &grid, Kind::Map);
    step.loads = vec![proved(state, identity(&grid)), proved(x, at(0)), proved(ring, at(-1))];
    let [a, b, c] = [0, 1, 2].map(|i| step.expr.arg(i, dtype));
    let op = g.r.pick(&[Bin::Add, Bin::Max, Bin::Mul]);
    let v = step.expr.bin(op, a, b);
    let w = step.expr.bin(Bin::Sub, v, c);
    step.expr.roots = vec![v, w];
    step.stores = vec![set(state, identity(&grid), 0), set(y, at(0), 1)];
    let mut keep = stage("keep", &grid, Kind::Map);
    keep.loads = vec![proved(x, at(0))];
    keep.expr.roots = vec![keep.expr.arg(0, dtype)];
    keep.stores = vec![set(ring, at(0), 0)];
    if g.r.once_in(2) {
        keep.when = Pred::Eq(Dim::label(t).rem(&Dim::from(3)), Dim::from(0));
    }
    let body = vec![Item::Stage(step), Item::Stage(keep)];
    g.k.body.push(Item::Loop { var: t, lo: Dim::from(0), hi: n, body });
}

/// A copy, then updates at positions that are data.
fn scatter(g: &mut Gen) {
    let axes_wanted = g.r.below(2);
    let grid = g.grid(axes_wanted);
    let dtype = g.r.pick(&[DType::F32, DType::I32, DType::U8, DType::F64]);
    let (n, updates) = (g.extent(), g.extent());
    let shape: Vec<Dim> = extents(&grid).into_iter().chain([n.clone()]).collect();
    let x = g.arg(Role::In, dtype, shape.clone(), Content::Any);
    let bad = g.r.once_in(4);
    let i = g.arg(Role::In, DType::I64, vec![updates.clone()], Content::Index(n.clone(), bad));
    let u =
        g.arg(Role::In, dtype, extents(&grid).into_iter().chain([updates.clone()]).collect(), Content::Any);
    let y = g.arg(Role::Out, dtype, shape, Content::Any);
    let at = |d: Dim| -> Vec<Dim> { identity(&grid).into_iter().chain([d]).collect() };
    let mut s = stage("copy", &grid, Kind::Map);
    let l = g.label();
    s.inner = vec![(l, n.clone())];
    s.loads.push(proved(x, at(Dim::label(l))));
    s.expr.roots = vec![s.expr.arg(0, dtype)];
    s.stores.push(set(y, at(Dim::label(l)), 0));
    g.push(s);
    let mut s = stage("scatter", &grid, Kind::Map);
    let l = g.label();
    s.inner = vec![(l, updates)];
    s.loads = vec![proved(i, vec![Dim::label(l)]), proved(u, at(Dim::label(l)))];
    let e = &mut s.expr;
    let i = e.arg(0, DType::I64);
    let zero = e.constant(Scalar::from_int(DType::I64, 0));
    let (negative, n) = (e.bin(Bin::Lt, i, zero), e.dim(n));
    let wrapped = e.bin(Bin::Add, i, n);
    let i = e.select(negative, wrapped, i);
    e.roots = vec![e.arg(1, dtype)];
    g.k.sites.push("scatter: index out of range".into());
    let mut st = set(y, at(Dim::val(i)), 0);
    st.op = g.r.pick(&[Combine::Set, Combine::Add, Combine::Mul, Combine::Min, Combine::Max]);
    st.site = g.k.sites.len() as u32;
    s.stores.push(st);
    g.push(s);
}
