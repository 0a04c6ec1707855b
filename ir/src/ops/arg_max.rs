//! `arg_max(x)`: index along an axis of the greatest (or smallest) element, the first of equal ones unless `last`. NaN
//! counts as greater than every number.
//!
//! Constraints: arg_max.c1 the axis is in range; arg_max.c2 the element type is a number or bool; arg_max.c3 the axis is
//! not empty.
//!
//! `%i = arg_max %x {axis = -1} : i64[n]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, reduce};
use crate::class::Reducer;
use crate::diag::Diag;
use crate::scalar::{Bin, Expr, Scalar, Un};
use crate::types::{DType, Dim, Fact, Pred};

crate::op_struct! {
    /// Position of an extreme element.
    pub struct ArgMax {
        /// The axis, negative counting from the end.
        axis: i64,
        /// Keep it with extent 1.
        keepdims: bool = false,
        /// The last of equal elements.
        last: bool = false,
        /// The smallest element instead.
        smallest: bool = false,
    }
}

/// `a > b` with NaN above all numbers and equal to itself.
fn above(e: &mut Expr, a: u32, b: u32) -> u32 {
    let more = e.bin(Bin::Lt, b, a);
    if !e.dtype(a).is_float() {
        return more;
    }
    let (na, nb) = (e.un(Un::IsNan, a), e.un(Un::IsNan, b));
    let number = e.un(Un::Not, nb);
    let only_a = e.bin(Bin::And, na, number);
    e.bin(Bin::Or, more, only_a)
}

impl ArgMax {
    /// `a` goes before `b` whatever their positions.
    fn better(&self, e: &mut Expr, a: u32, b: u32) -> u32 {
        if self.smallest { above(e, b, a) } else { above(e, a, b) }
    }

    /// Whether (value, index) pair `b` replaces pair `a`; an index below 0 is no element. Positions decide between equal
    /// values, so that the order in which pairs are joined does not matter.
    fn replaces(&self, e: &mut Expr, a: (u32, u32), b: (u32, u32)) -> u32 {
        let zero = e.constant(Scalar::from_int(DType::I64, 0));
        let (no_a, no_b) = (e.bin(Bin::Lt, a.1, zero), e.bin(Bin::Lt, b.1, zero));
        let (wins, loses) = (self.better(e, b.0, a.0), self.better(e, a.0, b.0));
        let order = if self.last { e.bin(Bin::Lt, a.1, b.1) } else { e.bin(Bin::Lt, b.1, a.1) };
        let not_worse = e.un(Un::Not, loses);
        let tie = e.bin(Bin::And, not_worse, order);
        let chosen = e.bin(Bin::Or, wins, tie);
        let chosen = e.bin(Bin::Or, no_a, chosen);
        let some_b = e.un(Un::Not, no_b);
        e.bin(Bin::And, some_b, chosen)
    }

    fn reducer(&self, d: DType) -> Reducer {
        let join = |input: u32| {
            let mut e = Expr::default();
            let (v, i) = (e.arg(0, d), e.arg(1, DType::I64));
            let (x, at) = (e.arg(input, d), e.arg(input + 1, DType::I64));
            let take = self.replaces(&mut e, (v, i), (x, at));
            e.roots = vec![e.select(take, x, v), e.select(take, at, i)];
            e
        };
        let mut finish = Expr::default();
        finish.arg(0, d);
        finish.roots = vec![finish.arg(1, DType::I64)];
        let none = Scalar::from_int(DType::I64, -1);
        Reducer { init: vec![Scalar::from_f64(d, 0.0), none], step: join(2), combine: join(2), finish }
    }
}

impl OpDef for ArgMax {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["x"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Op("ArgMax", 12, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        let axis = cx.axis(self.axis, t.rank())?;
        cx.check(!t.dtype.is_storage_only(), "arg_max.c2", "the element type must be a number or bool")?;
        let some = Pred::Le(Dim::from(1), t.shape[axis].clone());
        cx.require(some, "the axis must not be empty [arg_max.c3]")?;
        reduce::infer(cx, &[self.axis], self.keepdims, DType::I64)
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        reduce::with_reducer(cx, &[self.axis], self.keepdims, self.reducer(cx.ins[0].dtype))
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Zero
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(op: &ArgMax, v: &[f64], split: usize) -> i128 {
        let r = op.reducer(DType::F32);
        let run = |from: usize, part: &[f64]| {
            part.iter().enumerate().fold(r.init.clone(), |s, (i, &x)| {
                let args = [
                    s[0],
                    s[1],
                    Scalar::from_f64(DType::F32, x),
                    Scalar::from_int(DType::I64, (from + i) as i128),
                ];
                r.step.eval(&|i| args[i as usize], &|_| None).unwrap()
            })
        };
        // joined in the wrong order on purpose: positions must decide
        let (late, early) = (run(split, &v[split..]), run(0, &v[..split]));
        let args = [late[0], late[1], early[0], early[1]];
        let s = r.combine.eval(&|i| args[i as usize], &|_| None).unwrap();
        r.finish.eval(&|i| s[i as usize], &|_| None).unwrap()[0].as_int().unwrap()
    }

    #[test]
    fn ties_nan_and_empty_partials() {
        let max = ArgMax { axis: 0, keepdims: false, last: false, smallest: false };
        let (last, min) = (ArgMax { last: true, ..max.clone() }, ArgMax { smallest: true, ..max.clone() });
        for split in 0..=4 {
            assert_eq!(find(&max, &[1.0, 3.0, 3.0, 2.0], split), 1);
            assert_eq!(find(&last, &[1.0, 3.0, 3.0, 2.0], split), 2);
            assert_eq!(find(&min, &[2.0, 1.0, 1.0, 3.0], split), 1);
            assert_eq!(find(&max, &[1.0, f64::NAN, f64::INFINITY, f64::NAN], split), 1);
            assert_eq!(find(&last, &[1.0, f64::NAN, 7.0, f64::NAN], split), 3);
            assert_eq!(find(&min, &[f64::NAN, 2.0, f64::INFINITY, 5.0], split), 1);
            assert_eq!(find(&max, &[f64::NEG_INFINITY; 4], split), 0);
        }
    }
}
