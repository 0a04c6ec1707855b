//! Elementwise nodes of every arity, casts and quantization.

use super::{Maker, Step};
use tgc::ir::graph::Value;
use tgc::ir::ops::*;
use tgc::ir::types::{DType, Dim};

impl Maker {
    pub(super) fn unary(&mut self, x: Value) -> Step {
        let dtype = self.ty(x).dtype;
        if dtype == DType::Bool {
            return self.op(Not {}, &[x]);
        }
        let any: [Op; 4] = [Neg {}.into(), Abs {}.into(), Sign {}.into(), Relu {}.into()];
        let float: [Op; 18] = [
            Exp {}.into(),
            Log {}.into(),
            Sqrt {}.into(),
            Reciprocal {}.into(),
            Tan {}.into(),
            Tanh {}.into(),
            Tanh {}.into(),
            Erf {}.into(),
            Sigmoid {}.into(),
            Sigmoid {}.into(),
            Sin {}.into(),
            Cos {}.into(),
            Floor {}.into(),
            Ceil {}.into(),
            Round {}.into(),
            IsNan {}.into(),
            Gelu { tanh: false }.into(),
            Gelu { tanh: true }.into(),
        ];
        let op = if dtype.is_float() && self.rng.below(4) > 0 {
            self.rng.pick(&float).clone()
        } else {
            self.rng.pick(&any).clone()
        };
        self.op(op, &[x])
    }

    /// Something that broadcasts with `x`: a value made already, or a new one with some axes of 1 or missing.
    pub(super) fn beside(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        let mut same: Vec<Value> = self.values.clone();
        same.retain(|&v| self.ty(v).dtype == ty.dtype);
        match self.rng.below(6) {
            0 => return Some(*self.rng.pick(&same)),
            1 | 2 => {
                same.retain(|&v| self.ty(v).shape == ty.shape);
                return Some(*self.rng.pick(&same));
            }
            _ => {}
        }
        let mut shape = ty.shape;
        for d in &mut shape {
            if self.rng.once_in(3) {
                *d = Dim::from(1);
            }
        }
        let skip = if self.rng.coin() { 0 } else { self.rng.below(shape.len() + 1) };
        self.operand(ty.dtype, shape.split_off(skip))
    }

    pub(super) fn binary(&mut self, x: Value) -> Step {
        let dtype = self.ty(x).dtype;
        let y = self.beside(x)?;
        let arithmetic: [Op; 14] = [
            Add {}.into(),
            Add {}.into(),
            Sub {}.into(),
            Mul {}.into(),
            Mul {}.into(),
            Div {}.into(),
            Rem {}.into(),
            Modulo {}.into(),
            Pow {}.into(),
            Min {}.into(),
            Max {}.into(),
            Lt {}.into(),
            Le {}.into(),
            Eq {}.into(),
        ];
        let logic: [Op; 4] = [And {}.into(), Or {}.into(), Xor {}.into(), Eq {}.into()];
        let bits: [Op; 5] = [And {}.into(), Or {}.into(), Xor {}.into(), Shl {}.into(), Shr {}.into()];
        let op = match dtype {
            DType::Bool => self.rng.pick(&logic).clone(),
            d if d.is_int() && self.rng.once_in(3) => self.rng.pick(&bits).clone(),
            _ => self.rng.pick(&arithmetic).clone(),
        };
        // code generation refuses both (E-CG-010)
        let refused = dtype == DType::F64 && ["rem", "modulo"].contains(&op.name());
        let (a, b) = if self.rng.coin() { (x, y) } else { (y, x) };
        (!refused).then_some(())?;
        self.op(op, &[a, b])
    }

    pub(super) fn cast(&mut self, x: Value) -> Step {
        let to = *self.rng.pick(&[
            DType::F32,
            DType::F32,
            DType::F64,
            DType::F16,
            DType::BF16,
            DType::I32,
            DType::I64,
            DType::U8,
            DType::I8,
            DType::Bool,
        ]);
        (self.ty(x).dtype != to).then_some(())?;
        self.op(Cast { to }, &[x])
    }

    /// A select by a comparison, or by a bool of the graph.
    pub(super) fn chosen(&mut self, x: Value) -> Step {
        let y = self.beside(x)?;
        let bools: Vec<Value> =
            self.values.iter().copied().filter(|&v| self.ty(v).dtype == DType::Bool).collect();
        let c = if bools.is_empty() || self.rng.coin() {
            self.op(Lt {}, &[x, y])?
        } else {
            *self.rng.pick(&bools)
        };
        self.op(Select {}, &[c, x, y])
    }

    /// There, or there and back.
    pub(super) fn quantized(&mut self, x: Value) -> Step {
        let ty = self.ty(x);
        if !ty.dtype.is_float() {
            return None;
        }
        let to = *self.rng.pick(&[DType::U8, DType::I8, DType::I32]);
        let axis = self.rng.below(ty.rank().max(1));
        let fixed = ty.shape.get(axis).and_then(Dim::as_const);
        let axis = fixed.filter(|_| self.rng.coin()).map(|_| axis as i64);
        let shape = fixed.filter(|_| axis.is_some()).map(Dim::from);
        let scale = self.operand(ty.dtype, shape.into_iter().collect())?;
        let q = self.op(Quantize { axis, to }, &[x, scale])?;
        if self.rng.once_in(3) {
            return Some(q);
        }
        self.op(Dequantize { axis }, &[q, scale])
    }

    /// A value of no operand, of `x`'s shape.
    pub(super) fn made(&mut self, x: Value) -> Step {
        let shape = self.dims(x);
        let dtype = *self.rng.pick(&[DType::F32, DType::I64, DType::I32]);
        if shape.is_empty() || self.rng.once_in(3) {
            let scalar = shape.len() != 1 && self.rng.coin();
            let dims = if scalar { shape.into_iter().take(1).collect() } else { shape };
            return self.op(ConstDims { dims, dtype: DType::I64, scalar }, &[]);
        }
        let axis = self.rng.below(shape.len()) as i64;
        self.op(Iota { axis, shape, dtype }, &[])
    }
}
