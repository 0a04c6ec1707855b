//! Views, indexed reads and writes.

use super::{Maker, Step};
use tgc::ir::graph::Value;
use tgc::ir::ops::*;
use tgc::ir::scalar::Scalar;
use tgc::ir::types::{DType, Dim};

impl Maker {
    pub(super) fn view(&mut self, x: Value) -> Step {
        let shape = self.dims(x);
        let rank = shape.len();
        match self.rng.below(5) {
            0 | 1 => {
                let mut perm: Vec<i64> = (0..rank as i64).collect();
                (1..rank).rev().for_each(|i| perm.swap(i, self.rng.below(i + 1)));
                self.op(Transpose { perm }, &[x])
            }
            2 => self.expanded(x, shape),
            _ => self.reshaped(x, shape),
        }
    }

    fn reshaped(&mut self, x: Value, mut shape: Vec<Dim>) -> Step {
        let rank = shape.len();
        match self.rng.below(4) {
            0 if rank >= 2 => {
                let at = self.rng.below(rank - 1);
                let d = shape.remove(at + 1);
                shape[at] = shape[at].clone() * d;
            }
            1 => {
                let parts = |d: &Dim| {
                    [2, 3, 4].into_iter().find(|p| d.as_const().is_some_and(|c| c > 0 && c % p == 0))
                };
                let (at, part) = shape.iter().enumerate().find_map(|(i, d)| Some((i, parts(d)?)))?;
                shape[at] = shape[at].div_exact(&Dim::from(part))?;
                shape.insert(at + self.rng.below(2), Dim::from(part));
            }
            2 => shape = vec![shape.into_iter().product()],
            _ => match shape.iter().position(|d| d.is(1)) {
                Some(at) if self.rng.coin() => drop(shape.remove(at)),
                _ => shape.insert(self.rng.below(rank + 1), Dim::from(1)),
            },
        }
        self.op(Reshape { shape }, &[x])
    }

    fn expanded(&mut self, x: Value, mut shape: Vec<Dim>) -> Step {
        for d in &mut shape {
            if d.is(1) && self.rng.coin() {
                *d = self.dim();
            }
        }
        if self.rng.coin() {
            let d = self.dim();
            shape.insert(0, d);
        }
        self.op(Expand { shape }, &[x])
    }

    /// A slice or something around it.
    pub(super) fn part(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        if self.rng.once_in(3) {
            let before = self.rng.each(ty.rank(), 0, 3).into_iter().map(Dim::from).collect();
            let after = self.rng.each(ty.rank(), 0, 2).into_iter().map(Dim::from).collect();
            return self.op(Pad { before, after, value: Scalar::from_f64(ty.dtype, 1.5) }, &[x]);
        }
        let (mut starts, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for d in ty.shape {
            let Some(c) = d.as_const().filter(|c| *c >= 3) else {
                // of a symbol all, all but the first (a guard), or all backwards
                let (start, size, step) = match self.rng.below(8) {
                    0 => (Dim::from(1), d - Dim::from(1), 1),
                    1 => (d.clone() - Dim::from(1), d, -1),
                    _ => (Dim::from(0), d, 1),
                };
                starts.push(start);
                sizes.push(size);
                steps.push(step);
                continue;
            };
            let (start, step) =
                *self.rng.pick(&[(0i64, 1i64), (0, 1), (1, 1), (1, 2), (c - 1, -1), (c - 1, -2)]);
            let room = if step > 0 { c - start } else { start + 1 };
            starts.push(Dim::from(start));
            sizes.push(Dim::from((room + step.abs() - 1) / step.abs()));
            steps.push(step);
        }
        self.op(Slice { starts, sizes, steps }, &[x])
    }

    pub(super) fn joined(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        if ty.rank() == 0 {
            return None;
        }
        let axis = self.rng.below(ty.rank());
        let fits = |m: &Maker, v: Value| {
            let t = m.ty(v);
            let alike = t.dtype == ty.dtype && t.rank() == ty.rank();
            alike && (0..ty.rank()).all(|i| i == axis || t.shape[i] == ty.shape[i])
        };
        let mut parts: Vec<Value> = self.values.iter().copied().filter(|&v| fits(self, v)).collect();
        parts.truncate(3);
        if parts.len() < 2 || self.rng.coin() {
            let mut shape = ty.shape.clone();
            shape[axis] = self.dim();
            let y = self.operand(ty.dtype, shape)?;
            parts = if self.rng.coin() { vec![x, y] } else { vec![y, x, y] };
        }
        self.op(Concat { axis: axis as i64 }, &parts)
    }

    pub(super) fn indexed(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        if ty.rank() == 0 {
            return None;
        }
        let axis = self.rng.below(ty.rank());
        let d = ty.shape[axis].clone();
        let mut shape = ty.shape.clone();
        match self.rng.below(4) {
            0 => {
                let rank = self.rng.below(3);
                let at: Vec<Dim> = (0..rank).map(|_| self.dim()).collect();
                self.fits(&at).then_some(())?;
                let at = self.index(at, d);
                self.op(Gather { axis: axis as i64 }, &[x, at])
            }
            1 => {
                shape[axis] = self.dim();
                self.fits(&shape).then_some(())?;
                let at = self.index(shape, d);
                self.op(GatherElements { axis: axis as i64 }, &[x, at])
            }
            2 => {
                shape[axis] = Dim::from(1 + self.rng.below(3));
                let at = self.index(shape.clone(), d);
                let updates = self.operand(ty.dtype, shape)?;
                // code generation refuses to combine halves (E-CG-002)
                let half = matches!(ty.dtype, DType::F16 | DType::BF16);
                let all = ["none", "add", "mul", "max", "min"];
                let reduction = self.rng.pick(&all[..if half { 1 } else { 5 }]).to_string();
                self.op(ScatterElements { axis: axis as i64, reduction }, &[x, at, updates])
            }
            _ => {
                let part = 1 + self.rng.below(3) as i64;
                shape[axis] = Dim::from(part);
                let start = self.index(vec![], d - Dim::from(part - 1));
                let update = self.operand(ty.dtype, shape)?;
                self.op(UpdateSlice { axis: axis as i64 }, &[x, start, update])
            }
        }
    }
}
