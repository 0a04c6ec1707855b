//! Reductions, contractions, windows and running sums.

use super::{Maker, Step};
use tgc::ir::graph::Value;
use tgc::ir::ops::*;
use tgc::ir::types::{DType, Dim};

impl Maker {
    fn axes(&mut self, rank: usize) -> Vec<i64> {
        let mut axes: Vec<i64> = (0..rank as i64).filter(|_| self.rng.once_in(3)).collect();
        if axes.is_empty() && rank > 0 {
            axes.push(if self.rng.coin() { -1 } else { self.rng.below(rank) as i64 });
        }
        axes
    }

    pub(super) fn reduced(&mut self, x: Value) -> Step {
        let rank = self.ty(x).rank();
        if rank == 0 {
            return None;
        }
        let (axes, keepdims) = (self.axes(rank), self.rng.coin());
        match self.rng.below(8) {
            0 | 1 => self.op(ReduceSum { axes, keepdims }, &[x]),
            2 => self.op(ReduceMax { axes, keepdims }, &[x]),
            3 => self.op(ReduceMin { axes, keepdims }, &[x]),
            4 => self.op(ReduceProd { axes, keepdims }, &[x]),
            5 | 6 => self.op(ReduceMean { axes, keepdims }, &[x]),
            _ => {
                let (axis, last, smallest) = (axes[0], self.rng.coin(), self.rng.coin());
                self.op(ArgMax { axis, keepdims, last, smallest }, &[x])
            }
        }
    }

    /// `x` times a new value, a new value times `x`, or `x` times its transpose.
    pub(super) fn matmul(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        let rank = ty.rank();
        if rank == 0 || ty.dtype == DType::Bool {
            return None;
        }
        let kept = if self.rng.coin() { rank } else { rank.saturating_sub(2).min(1) };
        let mut shape = ty.shape[kept.min(rank.saturating_sub(2))..rank.saturating_sub(2)].to_vec();
        let last = ty.shape[rank - 1].clone();
        let left = rank >= 2 && self.rng.once_in(4);
        let (a, b, inner) = if rank >= 2 && self.rng.once_in(6) {
            let mut perm: Vec<i64> = (0..rank as i64).collect();
            perm.swap(rank - 1, rank - 2);
            let y = self.op(Transpose { perm }, &[x])?;
            (x, y, last)
        } else if left {
            let inner = ty.shape[rank - 2].clone();
            let rows = self.dim();
            shape.extend([rows, inner.clone()]);
            (self.operand(ty.dtype, shape)?, x, inner)
        } else {
            let columns = self.dim();
            shape.push(last.clone());
            if !self.rng.once_in(10) {
                shape.push(columns);
            }
            (x, self.operand(ty.dtype, shape)?, last)
        };
        let y = self.op(Matmul {}, &[a, b])?;
        self.affordable(&self.dims(y), &inner).then_some(y)
    }

    /// Channels of an image; None where they are not a number.
    fn channels(&self, x: Value, last: bool) -> Option<i64> {
        let shape = self.dims(x);
        let at = if last { shape.len().checked_sub(1)? } else { 1 };
        shape.get(at)?.as_const().filter(|c| *c > 0 && shape.len() >= 3)
    }

    pub(super) fn conv(&mut self, x: Value) -> Step {
        let last = self.rng.once_in(3);
        self.convolved(x, last)
    }

    pub(super) fn convolved(&mut self, x: Value, last: bool) -> Step {
        let ty = self.ty(x);
        let c = self.channels(x, last)?;
        let n = ty.rank() - 2;
        let groups = match self.rng.below(4) {
            0 => c,
            1 => [2, 3, 4].into_iter().find(|g| c % g == 0).unwrap_or(1),
            _ => 1,
        };
        let each = if groups == c && self.rng.coin() { 1 } else { *self.rng.pick(&[1i64, 2, 3, 4, 8, 17]) };
        let mut w = vec![Dim::from(groups * each), Dim::from(c / groups)];
        w.extend(self.rng.each(n, 1, 3).into_iter().map(Dim::from));
        let kernel: Dim = w[1..].iter().cloned().product();
        let w = self.operand(ty.dtype, w)?;
        let mut operands = vec![x, w];
        if self.rng.coin() {
            operands.push(self.operand(ty.dtype, vec![Dim::from(groups * each)])?);
        }
        let op = Conv {
            strides: self.rng.each(n, 1, 2),
            pads: self.rng.each(2 * n, 0, 3),
            dilations: self.rng.each(n, 1, 2),
            groups,
            channels_last: last,
        };
        let y = self.op(op, &operands)?;
        self.affordable(&self.dims(y), &kernel).then_some(y)
    }

    pub(super) fn pool(&mut self, x: Value) -> Step {
        let n = self.ty(x).rank().checked_sub(2).filter(|n| *n > 0)?;
        let (kernel, strides, pads) =
            (self.rng.each(n, 2, 2), self.rng.each(n, 1, 2), self.rng.each(2 * n, 0, 2));
        let dilations = if self.rng.once_in(4) { self.rng.each(n, 1, 2) } else { vec![1; n] };
        let (ceil, channels_last) = (self.rng.once_in(3), self.rng.once_in(3));
        if self.rng.coin() {
            return self.op(MaxPool { kernel, strides, pads, dilations, ceil, channels_last }, &[x]);
        }
        let count_include_pad = self.rng.coin();
        let op = AvgPool { kernel, strides, pads, dilations, ceil, count_include_pad, channels_last };
        self.op(op, &[x])
    }

    /// Along one axis: a running sum, a softmax.
    pub(super) fn along(&mut self, x: Value) -> Step {
        let rank = self.ty(x).rank();
        let axis = if self.rng.coin() { -1 } else { self.rng.below(rank) as i64 };
        match self.rng.below(4) {
            0 | 1 => self.op(Softmax { axis }, &[x]),
            2 => self.op(LogSoftmax { axis }, &[x]),
            _ => {
                let (exclusive, reverse) = (self.rng.coin(), self.rng.coin());
                self.op(CumSum { axis, exclusive, reverse }, &[x])
            }
        }
    }

    pub(super) fn normalized(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        if self.rng.coin() {
            let last = ty.shape.last()?.clone();
            let scale = self.operand(ty.dtype, vec![last.clone()])?;
            let mut operands = vec![x, scale];
            if self.rng.coin() {
                operands.push(self.operand(ty.dtype, vec![last])?);
            }
            return self.op(LayerNorm { axes: vec![-1], epsilon: 1e-5 }, &operands);
        }
        self.batch_normalized(x)
    }

    pub(super) fn batch_normalized(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        let mut operands = vec![x];
        for _ in 0..3 {
            operands.push(self.operand(ty.dtype, vec![ty.shape.get(1)?.clone()])?);
        }
        let v = self.operand(ty.dtype, vec![ty.shape[1].clone()])?;
        operands.push(self.op(Abs {}, &[v])?);
        self.op(BatchNorm { epsilon: 1e-3 }, &operands)
    }
}
