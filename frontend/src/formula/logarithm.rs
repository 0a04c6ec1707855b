//! `log(1 + x)`, `e^x - 1` and the softplus, with their digits near 0.

use super::{Build, R, like, scaled};
use tgc_ir::ops::{Abs, Add, Div, Eq, Exp, Log, Lt, Max, Mul, Neg, Select, Sub, Tanh};

/// `log(1 + e)` of a finite e: e where 1 + e rounds to 1, else log(u) * e / (u - 1) with u = 1 + e, which keeps the digits
/// that 1 + e loses.
pub(crate) fn log_1p<B: Build>(b: &mut B, e: B::V) -> R<B> {
    let (zero, one) = (like(b, e, 0.0)?, like(b, e, 1.0)?);
    let u = b.op(Add {}, &[e, one])?;
    let d = b.op(Sub {}, &[u, one])?;
    let tiny = b.op(Eq {}, &[d, zero])?;
    let safe = b.op(Select {}, &[tiny, one, d])?;
    let l = b.op(Log {}, &[u])?;
    let q = b.op(Div {}, &[e, safe])?;
    let l = b.op(Mul {}, &[l, q])?;
    b.op(Select {}, &[tiny, e, l])
}

/// [`log_1p`] of any number.
pub(crate) fn log_1p_any<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let inf = like(b, x, f64::INFINITY)?;
    let (y, far) = (log_1p(b, x)?, b.op(Eq {}, &[x, inf])?);
    b.op(Select {}, &[far, x, y])
}

/// `e^x - 1`: near 0 by `tanh(x / 2) * (e^x + 1)`.
pub(crate) fn exp_m1<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let one = like(b, x, 1.0)?;
    let e = b.op(Exp {}, &[x])?;
    let far = b.op(Sub {}, &[e, one])?;
    let half = scaled(b, x, 0.5)?;
    let (t, s) = (b.op(Tanh {}, &[half])?, b.op(Add {}, &[e, one])?);
    let near = b.op(Mul {}, &[t, s])?;
    let size = b.op(Abs {}, &[x])?;
    let small = b.op(Lt {}, &[size, one])?;
    b.op(Select {}, &[small, near, far])
}

/// `max(x, 0) + log(1 + exp(-|x|))`.
pub(crate) fn softplus<B: Build>(b: &mut B, x: B::V) -> R<B> {
    let zero = like(b, x, 0.0)?;
    let a = b.op(Abs {}, &[x])?;
    let a = b.op(Neg {}, &[a])?;
    let e = b.op(Exp {}, &[a])?;
    let l = log_1p(b, e)?;
    let m = b.op(Max {}, &[x, zero])?;
    b.op(Add {}, &[m, l])
}
