//! Parts of random kernels: index maps, scalar programs, reducers, whole stages.

use super::{Content, Gen};
use crate::kernel::{Buf, Kind, Load, Mode, Role, Stage, Store};
use tgc_ir::class::{Combine, Reducer};
use tgc_ir::scalar::{Bin, Expr, Scalar, Un};
use tgc_ir::types::{DType, Dim, Pred};

pub(super) const TYPES: [DType; 12] = [
    DType::F32,
    DType::F32,
    DType::F32,
    DType::F64,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::Bool,
    DType::F16,
    DType::BF16,
    DType::I16,
    DType::U32,
];

type Axis = (u32, Dim);

/// A stage without anything in it.
pub(super) fn stage(name: &str, over: &[Axis], kind: Kind) -> Stage {
    Stage {
        name: name.into(),
        when: Pred::True,
        over: over.iter().map(|a| a.0).collect(),
        inner: Vec::new(),
        red: Vec::new(),
        kind,
        loads: Vec::new(),
        expr: Expr::default(),
        post: None,
        stores: Vec::new(),
    }
}

pub(super) fn identity(axes: &[Axis]) -> Vec<Dim> {
    axes.iter().map(|a| Dim::label(a.0)).collect()
}

pub(super) fn extents(axes: &[Axis]) -> Vec<Dim> {
    axes.iter().map(|a| a.1.clone()).collect()
}

pub(super) fn set(to: Buf, index: Vec<Dim>, value: u32) -> Store {
    Store { to, index, value, op: Combine::Set, site: 0 }
}

impl Gen {
    /// A load of a new input at some map of the labels.
    pub(crate) fn read(&mut self, axes: &[Axis], dtype: DType) -> Load {
        let mut order: Vec<&Axis> = axes.iter().collect();
        if self.r.once_in(3) {
            order.reverse();
        }
        if self.r.once_in(4) && order.len() > 1 {
            let drop = self.r.below(order.len());
            order.remove(drop);
        }
        let (mut index, mut dims, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
        if self.r.once_in(6) {
            let flat = order.iter().fold(Dim::from(0), |s, (l, d)| s * d.clone() + Dim::label(*l));
            let c = Dim::from(self.r.pick(&[2i64, 3, 4, 7]));
            let size: Dim = order.iter().map(|a| a.1.clone()).product();
            if self.r.once_in(2) {
                index = vec![flat.floordiv(&c), flat.rem(&c)];
                dims = vec![(size + c.clone() - Dim::from(1)).floordiv(&c), c];
            } else {
                (index, dims) = (vec![flat], vec![size]);
            }
        } else {
            for (l, d) in order {
                let (i, e, p) = self.map(*l, d);
                index.push(i);
                dims.push(e);
                conditions.extend(p);
            }
        }
        let role = if self.r.once_in(4) { Role::Const } else { Role::In };
        let from = self.arg(role, dtype, dims, Content::Any);
        let mode = match (conditions.is_empty(), self.r.below(10)) {
            (false, 0) => {
                self.k.sites.push("padding".into());
                Mode::Trap(self.k.sites.len() as u32, Pred::all(conditions))
            }
            (false, _) => Mode::Fill(Pred::all(conditions), self.element(dtype, &Content::Any)),
            (true, _) => Mode::Proved,
        };
        Load { from, index, mode }
    }

    /// Index, extent and condition of one axis read at a label.
    fn map(&mut self, l: u32, d: &Dim) -> (Dim, Dim, Option<Pred>) {
        let (at, one) = (Dim::label(l), Dim::from(1));
        let c = Dim::from(self.r.pick(&[2i64, 3, 4]));
        match self.r.below(12) {
            0 => (Dim::from(0), one, None),
            1 => {
                let o = Dim::from(self.r.below(3));
                (at * c.clone() + o.clone(), d.clone() * c + o, None)
            }
            2 => (d.clone() - one - at, d.clone(), None),
            3 => (at.floordiv(&c), (d.clone() + c.clone() - one).floordiv(&c), None),
            4 => (at.rem(&c), c, None),
            5 | 6 => {
                let o = Dim::from(self.r.below(7) as i64 - 3);
                let i = if self.r.once_in(3) { at * c + o } else { at + o };
                (i.clone(), d.clone(), Some(Pred::in_box(&i, &Dim::from(0), d)))
            }
            7 => {
                let o = Dim::from(self.r.below(4));
                (at + o.clone(), d.clone() + o + Dim::from(self.r.below(2)), None)
            }
            _ => (at, d.clone(), None),
        }
    }

    /// A gather: an index load, its wrapped value, and the load of data at it. Appends nodes to the stage.
    pub(crate) fn gather(&mut self, s: &mut Stage, axes: &[Axis]) -> u32 {
        let kind = self.r.pick(&[DType::I64, DType::I32]);
        let bound = self.extent();
        let bad = !self.bad && self.r.once_in(6);
        self.bad |= bad;
        let part = &axes[..axes.len().min(1 + self.r.below(2))];
        let from = self.arg(Role::In, kind, extents(part), Content::Index(bound.clone(), bad));
        s.loads.push(Load { from, index: identity(part), mode: Mode::Proved });
        let e = &mut s.expr;
        let i = e.arg(s.loads.len() as u32 - 1, kind);
        let i = e.cast(DType::I64, i);
        let zero = e.constant(Scalar::from_int(DType::I64, 0));
        let negative = e.bin(Bin::Lt, i, zero);
        let n = e.dim(bound.clone());
        let wrapped = e.bin(Bin::Add, i, n);
        let i = e.select(negative, wrapped, i);
        self.k.sites.push("gather: index out of range".into());
        let site = self.k.sites.len() as u32;
        let dtype = self.r.pick(&TYPES);
        let (mut index, mut dims) = (vec![Dim::val(i)], vec![bound]);
        if let Some((l, d)) = axes.last().filter(|_| self.r.once_in(2)) {
            index.push(Dim::label(*l));
            dims.push(d.clone());
        }
        let from = self.arg(Role::In, dtype, dims, Content::Any);
        s.loads.push(Load { from, index, mode: Mode::Trap(site, Pred::True) });
        s.expr.arg(s.loads.len() as u32 - 1, dtype)
    }

    /// Appends `n` random operations over `pool` to a program and returns a node of type `to`.
    pub(crate) fn compute(
        &mut self,
        e: &mut Expr,
        mut pool: Vec<u32>,
        axes: &[Axis],
        n: usize,
        to: DType,
    ) -> u32 {
        if let Some((l, _)) = axes.first().filter(|_| self.r.once_in(3)) {
            let d = e.dim(Dim::label(*l) * Dim::from(3) - Dim::from(1));
            pool.push(d);
        }
        if pool.is_empty() {
            let v = self.element(to, &Content::Any);
            pool.push(e.constant(v));
        }
        for _ in 0..n {
            let last = pool.len() - 1;
            let a = if self.r.once_in(2) { pool[last] } else { pool[self.r.below(last + 1)] };
            let node = self.operation(e, &pool, a);
            pool.push(node);
        }
        let last = pool[pool.len() - 1];
        e.cast(to, last)
    }

    fn operation(&mut self, e: &mut Expr, pool: &[u32], a: u32) -> u32 {
        let d = e.dtype(a);
        let b = pool[self.r.below(pool.len())];
        let b = e.cast(d, b);
        match self.r.below(10) {
            0 => {
                let to = self.r.pick(&TYPES);
                e.cast(to, a)
            }
            1 => {
                let c = e.bin(if self.r.once_in(2) { Bin::Lt } else { Bin::Le }, a, b);
                let v = self.element(d, &Content::Any);
                let v = e.constant(v);
                e.select(c, a, v)
            }
            2 if d != DType::Bool => {
                let v = self.element(d, &Content::Any);
                let v = e.constant(v);
                e.fma(a, b, v)
            }
            3 | 4 => {
                let float = [
                    Un::Neg,
                    Un::Abs,
                    Un::Exp,
                    Un::Log,
                    Un::Sqrt,
                    Un::Tanh,
                    Un::Erf,
                    Un::Floor,
                    Un::Ceil,
                    Un::Round,
                    Un::Trunc,
                    Un::IsNan,
                    Un::Sin,
                    Un::Cos,
                ];
                let op = match d {
                    DType::F64 => {
                        self.r.pick(&[Un::Neg, Un::Abs, Un::Sqrt, Un::Floor, Un::Round, Un::Trunc, Un::Exp])
                    }
                    d if d.is_float() => self.r.pick(&float),
                    DType::Bool => Un::Not,
                    _ => self.r.pick(&[Un::Neg, Un::Abs, Un::Not]),
                };
                // their programs are long: a few are enough
                let rare = matches!(op, Un::Sin | Un::Cos) && !self.r.once_in(4);
                e.un(if rare { Un::Neg } else { op }, a)
            }
            _ => {
                let float =
                    [Bin::Add, Bin::Sub, Bin::Mul, Bin::Mul, Bin::Div, Bin::Min, Bin::Max, Bin::Eq, Bin::Lt];
                let int = [
                    Bin::Add,
                    Bin::Sub,
                    Bin::Mul,
                    Bin::Div,
                    Bin::Rem,
                    Bin::Mod,
                    Bin::Min,
                    Bin::Max,
                    Bin::And,
                    Bin::Or,
                    Bin::Xor,
                    Bin::Shl,
                    Bin::Shr,
                    Bin::Eq,
                    Bin::Le,
                ];
                let op = match d {
                    DType::Bool => {
                        self.r.pick(&[Bin::And, Bin::Or, Bin::Xor, Bin::Eq, Bin::Lt, Bin::Min, Bin::Max])
                    }
                    d if d.is_float() => self.r.pick(&float),
                    _ => self.r.pick(&int),
                };
                e.bin(op, a, b)
            }
        }
    }

    /// Random loads at the labels (gathers among them) and operations on them; returns the node of type `to`.
    pub(crate) fn value_of(&mut self, s: &mut Stage, axes: &[Axis], to: DType) -> u32 {
        let mut pool = Vec::new();
        for _ in 0..1 + self.r.below(3) {
            if self.r.once_in(8) && !axes.is_empty() {
                pool.push(self.gather(s, axes));
                continue;
            }
            let dtype = if self.r.once_in(2) { to } else { self.r.pick(&TYPES) };
            let l = self.read(axes, dtype);
            s.loads.push(l);
            pool.push(s.expr.arg(s.loads.len() as u32 - 1, dtype));
        }
        let n = self.r.below(6);
        let mut e = std::mem::take(&mut s.expr);
        let v = self.compute(&mut e, pool, axes, n, to);
        s.expr = e;
        v
    }

    /// A reducer of one input of type `d`; second, its result type.
    pub(crate) fn reducer(&mut self, d: DType) -> (Reducer, DType) {
        if self.r.once_in(4) && d != DType::Bool {
            return (arg_max(d), DType::I64);
        }
        let op = match d {
            DType::Bool => self.r.pick(&[Bin::And, Bin::Or, Bin::Max]),
            _ => self.r.pick(&[Bin::Add, Bin::Add, Bin::Max, Bin::Min, Bin::Mul]),
        };
        let acc = if matches!(d, DType::F16 | DType::BF16) { DType::F32 } else { d };
        let init = match op {
            Bin::Max => Scalar::extreme(acc, false),
            Bin::Min => Scalar::extreme(acc, true),
            Bin::Mul | Bin::And => Scalar::from_int(acc, 1),
            _ => Scalar::from_int(acc, 0),
        };
        (Reducer::simple(op, d, acc, init, d), d)
    }

    /// Sometimes a program after a reduction that also reads something at the point labels; result type `to`.
    pub(crate) fn post(&mut self, s: &mut Stage, axes: &[Axis], result: DType, to: DType) {
        if result == to && self.r.once_in(2) {
            return;
        }
        let mut e = Expr::default();
        let mut pool = vec![e.arg(0, result)];
        if self.r.once_in(2) {
            let dtype = self.r.pick(&TYPES);
            let l = self.read(axes, dtype);
            s.loads.push(l);
            pool.push(e.arg(s.loads.len() as u32, dtype));
        }
        pool.reverse();
        let n = self.r.below(4);
        e.roots = vec![self.compute(&mut e, pool, axes, n, to)];
        s.post = Some(e);
    }
}

/// First position of the greatest element; state (value, position).
fn arg_max(d: DType) -> Reducer {
    let better = |e: &mut Expr, v: u32, p: u32, w: u32, q: u32| {
        let (gt, eq, first) = (e.bin(Bin::Lt, v, w), e.bin(Bin::Eq, v, w), e.bin(Bin::Lt, q, p));
        let tie = e.bin(Bin::And, eq, first);
        let take = e.bin(Bin::Or, gt, tie);
        e.roots = vec![e.select(take, w, v), e.select(take, q, p)];
    };
    let mut step = Expr::default();
    let (v, p, w, q) = (step.arg(0, d), step.arg(1, DType::I64), step.arg(2, d), step.arg(3, DType::I64));
    better(&mut step, v, p, w, q);
    let mut combine = Expr::default();
    let (v, p) = (combine.arg(0, d), combine.arg(1, DType::I64));
    let (w, q) = (combine.arg(2, d), combine.arg(3, DType::I64));
    better(&mut combine, v, p, w, q);
    let mut finish = Expr::default();
    finish.roots = vec![finish.arg(1, DType::I64)];
    let init = vec![Scalar::extreme(d, false), Scalar::from_int(DType::I64, i128::from(i64::MAX))];
    Reducer { init, step, combine, finish }
}
