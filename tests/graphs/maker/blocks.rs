//! Groups of nodes as models have them, which fusion, the layout pass and packing are made for.

use super::{Maker, Step};
use tgc::ir::graph::Value;
use tgc::ir::ops::*;
use tgc::ir::types::{DType, Dim};

impl Maker {
    pub(super) fn block(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        if !ty.dtype.is_float() {
            return self.op(Cast { to: DType::F32 }, &[x]);
        }
        match self.rng.below(4) {
            0 => self.attention(x),
            1 | 2 if ty.rank() >= 3 => self.stage(x),
            _ => self.layer(x),
        }
    }

    /// `f(x * w + bias)`, with the narrow type of its weight widened now and then.
    fn layer(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        let (k, n) = (ty.shape.last()?.clone(), self.extent());
        let narrow = ty.dtype == DType::F32 && self.rng.once_in(4);
        let mut w = self.operand(if narrow { DType::F16 } else { ty.dtype }, vec![k.clone(), n.clone()])?;
        if narrow {
            w = self.op(Cast { to: DType::F32 }, &[w])?;
        }
        let y = self.op(Matmul {}, &[x, w])?;
        self.affordable(&self.dims(y), &k).then_some(())?;
        let bias = self.operand(ty.dtype, vec![n])?;
        let y = self.op(Add {}, &[y, bias])?;
        self.activated(y)
    }

    fn activated(&mut self, x: Value) -> Step {
        let ops: [Op; 4] = [Relu {}.into(), Tanh {}.into(), Gelu { tanh: false }.into(), Sigmoid {}.into()];
        let op = self.rng.pick(&ops).clone();
        self.op(op, &[x])
    }

    /// `softmax(q * k^T / c) * v` with three products of `x`, or `x` as all three.
    fn attention(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        let rank = ty.rank();
        if rank < 2 {
            return None;
        }
        let mut three = [x; 3];
        let mut width = ty.shape[rank - 1].clone();
        if self.rng.coin() {
            let inner = width;
            width = Dim::from(*self.rng.pick(&[4i64, 8, 16, 17]));
            for v in &mut three {
                let w = self.operand(ty.dtype, vec![inner.clone(), width.clone()])?;
                *v = self.op(Matmul {}, &[x, w])?;
                self.affordable(&self.dims(*v), &inner).then_some(())?;
            }
        }
        let mut perm: Vec<i64> = (0..rank as i64).collect();
        perm.swap(rank - 1, rank - 2);
        let k = self.op(Transpose { perm }, &[three[1]])?;
        let scores = self.op(Matmul {}, &[three[0], k])?;
        self.affordable(&self.dims(scores), &width).then_some(())?;
        let c = self.number(ty.dtype, 0.25)?;
        let scaled = self.op(Mul {}, &[scores, c])?;
        let p = self.op(Softmax { axis: -1 }, &[scaled])?;
        let y = self.op(Matmul {}, &[p, three[2]])?;
        self.affordable(&self.dims(y), &ty.shape[rank - 2]).then_some(y)
    }

    /// Convolution, normalisation, activation, and the way around them where it fits.
    fn stage(&mut self, x: Value) -> Step {
        let mut y = self.convolved(x, false)?;
        if self.rng.coin() {
            y = self.batch_normalized(y)?;
        }
        y = self.activated(y)?;
        if self.ty(x) == self.ty(y) {
            y = self.op(Add {}, &[x, y])?;
        }
        if self.rng.coin() { Some(y) } else { self.pool(y) }
    }
}
