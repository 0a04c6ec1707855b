//! Products of matrices and vectors.

use super::arith::{cast, pair};
use super::shape::reshaped;
use super::tape::{computed, formula};
use crate::formula::einsum;
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::tensor::{Operand, Tensor, promote_types};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::ops;

type At = &'static Location<'static>;

/// The ranks that a product wants; others are reported.
#[track_caller]
fn ranks(what: &str, operands: &[(&Tensor, usize)], at: At) -> bool {
    if operands.iter().any(|(t, _)| t.failed()) {
        return false;
    }
    let fits = operands.iter().all(|(t, r)| t.dim() == *r);
    if !fits {
        let found: Vec<String> = operands.iter().map(|(t, _)| format!("{t:#}")).collect();
        let wanted: Vec<String> = operands.iter().map(|(_, r)| r.to_string()).collect();
        let m = format!("{what} of {}", found.join(", "));
        let help = format!("the operands have ranks {}; matmul broadcasts", wanted.join(", "));
        report(Diag::error("E-NN-102", m).help(help), at);
    }
    fits
}

impl Tensor {
    /// Matrix product by numpy's rule: the last two axes multiply, the others broadcast; rank 1 is a row or a column.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        pair(ops::Matmul {}, self, other, Location::caller())
    }

    /// Product of two matrices.
    #[track_caller]
    pub fn mm(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        if ranks("mm", &[(self, 2), (other, 2)], at) { self.matmul(other) } else { Tensor::FAILED }
    }

    /// Products of matrices [n, .., ..] by pairs.
    #[track_caller]
    pub fn bmm(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        if ranks("bmm", &[(self, 3), (other, 3)], at) { self.matmul(other) } else { Tensor::FAILED }
    }

    /// Product of a matrix and a vector.
    #[track_caller]
    pub fn mv(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        if ranks("mv", &[(self, 2), (other, 1)], at) { self.matmul(other) } else { Tensor::FAILED }
    }

    /// Sum of the products of two vectors' elements.
    #[track_caller]
    pub fn dot(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        if ranks("dot", &[(self, 1), (other, 1)], at) { self.matmul(other) } else { Tensor::FAILED }
    }

    /// [`Tensor::dot`]: there are no complex numbers.
    #[track_caller]
    pub fn vdot(&self, other: &Tensor) -> Tensor {
        self.dot(other)
    }

    /// Dot products of the last axes, of every line with every other; with a number, the product.
    #[track_caller]
    pub fn inner(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        if self.failed() || other.failed() || self.dim() == 0 || other.dim() == 0 {
            return self.mul(other);
        }
        let (mut shape, more) = (self.shape(), other.shape());
        let last = shape.pop().unwrap_or(Dim::FAILED);
        let (x, y) = (self.reshape((-1, last)), other.reshape((-1, last)));
        shape.extend(&more[..more.len() - 1]);
        reshaped(&x.matmul(&y.t()), &shape, at)
    }

    /// All products of two vectors' elements.
    #[track_caller]
    pub fn outer(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        match ranks("outer", &[(self, 1), (other, 1)], at) {
            true => self.unsqueeze(1).mul(other.unsqueeze(0)),
            false => Tensor::FAILED,
        }
    }

    /// [`Tensor::outer`].
    #[track_caller]
    pub fn ger(&self, other: &Tensor) -> Tensor {
        self.outer(other)
    }

    /// `beta * self + alpha * (a @ b)` of matrices. With beta 0 the tensor itself does not count.
    #[track_caller]
    pub fn addmm(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Tensor {
        plus(self, &a.mm(b), beta, alpha)
    }

    /// `beta * self + alpha * (a @ b)` of a matrix and a vector.
    #[track_caller]
    pub fn addmv(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Tensor {
        plus(self, &a.mv(b), beta, alpha)
    }

    /// `beta * self + alpha * outer(a, b)`.
    #[track_caller]
    pub fn addr(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Tensor {
        plus(self, &a.outer(b), beta, alpha)
    }

    /// `beta * self + alpha * (a @ b)` by pairs of matrices.
    #[track_caller]
    pub fn baddbmm(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Tensor {
        plus(self, &a.bmm(b), beta, alpha)
    }

    /// `beta * self + alpha * (the sum of the products of pairs of matrices)`.
    #[track_caller]
    pub fn addbmm(&self, a: &Tensor, b: &Tensor, beta: f64, alpha: f64) -> Tensor {
        plus(self, &a.bmm(b).sum(&[0], false), beta, alpha)
    }

    /// Sums of products over pairs of axes, as many of each tensor; the axes left come in order.
    #[track_caller]
    pub fn tensordot(&self, other: &Tensor, dims: &[i64], others: &[i64]) -> Tensor {
        let at = Location::caller();
        if dims.len() != others.len() {
            let m = format!("tensordot over {dims:?} and {others:?}");
            report(Diag::error("E-NN-103", m).help("give as many axes of each"), at);
            return Tensor::FAILED;
        }
        let none = dims.is_empty();
        let found = |t: &Tensor, d: &[i64]| if none { Some(Vec::new()) } else { t.axes(d, at) };
        if self.failed() || other.failed() {
            return Tensor::FAILED;
        }
        let (Some(mine), Some(theirs)) = (found(self, dims), found(other, others)) else {
            return Tensor::FAILED;
        };
        let letter = |i: usize| char::from(b'a' + (i % 26) as u8);
        let a: Vec<usize> = (0..self.dim()).collect();
        let mut next = self.dim();
        let mut b = vec![0; other.dim()];
        for (i, l) in b.iter_mut().enumerate() {
            match theirs.iter().position(|t| *t == i) {
                Some(k) => *l = mine[k],
                None => {
                    *l = next;
                    next += 1;
                }
            }
        }
        let out: String = a.iter().filter(|i| !mine.contains(i)).map(|i| letter(*i)).collect();
        let out = out + &b.iter().filter(|i| **i >= self.dim()).map(|i| letter(*i)).collect::<String>();
        let text = |l: &[usize]| l.iter().map(|i| letter(*i)).collect::<String>();
        let equation = format!("{},{}->{out}", text(&a), text(&b));
        Tensor::einsum(&equation, &[self, other])
    }

    /// Einstein's sum, such as `bij,bjk->bik`; `...` stands for axes that broadcast.
    #[track_caller]
    pub fn einsum(equation: &str, operands: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let text = equation.replace(' ', "");
        let Some(first) = operands.first() else {
            report(Diag::error("E-NN-104", "einsum of no tensors").help("give at least one"), at);
            return Tensor::FAILED;
        };
        if operands.iter().any(|t| t.failed()) {
            return Tensor::FAILED;
        }
        let ranks: Vec<usize> = operands.iter().map(|t| t.dim()).collect();
        let read = match einsum::equation(&text, &ranks) {
            Ok(read) => read,
            Err(why) => {
                let d = Diag::error("E-NN-104", format!("einsum `{equation}`: {why}"));
                report(d.help("one term of letters an operand, as in ij,jk->ik"), at);
                return Tensor::FAILED;
            }
        };
        let d = operands.iter().fold(first.dtype(), |d, t| promote_types(d, t.dtype()));
        let all: Vec<Tensor> = operands.iter().map(|t| cast(t, computed(d), at)).collect();
        let y = formula(&all.iter().collect::<Vec<_>>(), at, |t, x| einsum::einsum(t, &read, x));
        cast(&y, d, at)
    }

    /// Kronecker product: every element times the other tensor.
    #[track_caller]
    pub fn kron(&self, other: &Tensor) -> Tensor {
        let at = Location::caller();
        if self.failed() || other.failed() {
            return Tensor::FAILED;
        }
        let rank = self.dim().max(other.dim());
        let one = Dim::from(1);
        let side = |t: &Tensor| [vec![one; rank - t.dim()], t.shape()].concat();
        let (a, b) = (side(self), side(other));
        let (mut p, mut q, mut joined) = (Vec::new(), Vec::new(), Vec::new());
        for (m, n) in a.iter().zip(&b) {
            p.extend([*m, one]);
            q.extend([one, *n]);
            joined.push(*m * *n);
        }
        reshaped(&reshaped(self, &p, at).mul(reshaped(other, &q, at)), &joined, at)
    }

    /// Cross product of vectors of 3 elements along an axis.
    #[track_caller]
    pub fn cross(&self, other: &Tensor, dim: i64) -> Tensor {
        let at = Location::caller();
        let (Some(a), Some(b)) = (self.axis(dim, at), other.axis(dim, at)) else { return Tensor::FAILED };
        if [self.shape()[a], other.shape()[b]].iter().any(|n| n.as_known() != Some(3)) {
            let m = format!("cross of {self:#} and {other:#} along axis {dim}");
            report(Diag::error("E-NN-105", m).help("both have 3 elements on that axis"), at);
            return Tensor::FAILED;
        }
        let first = self.roll(&[-1], &[dim]).mul(other.roll(&[-2], &[dim]));
        let second = self.roll(&[-2], &[dim]).mul(other.roll(&[-1], &[dim]));
        first.sub(second)
    }

    /// Covariances of rows, each of which holds one variable's values; the divisor is their number less `correction`,
    /// which is 1 in PyTorch unless given.
    #[track_caller]
    pub fn cov(&self, correction: i64) -> Tensor {
        let at = Location::caller();
        if self.failed() || self.dim() > 2 {
            ranks("cov", &[(self, 2)], at);
            return Tensor::FAILED;
        }
        let x = super::arith::float(&self.atleast_2d(), at);
        let gap = x.sub(x.mean(&[1], true));
        let count = (x.size(1) - correction).max(0);
        let y = gap.matmul(&gap.t()).div(count);
        if self.dim() < 2 { y.reshape(()) } else { y }
    }

    /// Correlations of rows, each of which holds one variable's values.
    #[track_caller]
    pub fn corrcoef(&self) -> Tensor {
        let c = self.cov(1);
        if c.failed() || c.dim() < 2 {
            return c.div(&c);
        }
        let s = c.diagonal(0, 0, 1).sqrt();
        c.div(s.unsqueeze(1)).div(s.unsqueeze(0)).clamp(-1.0, 1.0)
    }

    /// Sum of a matrix' main diagonal.
    #[track_caller]
    pub fn trace(&self) -> Tensor {
        let at = Location::caller();
        match ranks("trace", &[(self, 2)], at) {
            true => self.diagonal(0, 0, 1).sum(&[], false),
            false => Tensor::FAILED,
        }
    }

    /// p-norms of the differences of all rows of two matrices; leading axes broadcast.
    #[track_caller]
    pub fn cdist(&self, other: &Tensor, p: f64) -> Tensor {
        self.unsqueeze(-2).sub(other.unsqueeze(-3)).norm(p, &[-1], false)
    }

    /// A square matrix times itself: `n` factors, 0 giving the identity.
    #[track_caller]
    pub fn matrix_power(&self, n: u32) -> Tensor {
        if n == 0 && !self.failed() {
            return Tensor::eye(self.size(-1), self.dtype()).expand_as(self);
        }
        let (mut y, mut square, mut left) = (None::<Tensor>, self.clone(), n);
        while left > 0 {
            if left % 2 == 1 {
                y = Some(match y {
                    None => square.clone(),
                    Some(y) => y.matmul(&square),
                });
            }
            left /= 2;
            if left > 0 {
                square = square.matmul(&square);
            }
        }
        y.unwrap_or_else(|| self.clone())
    }

    /// Product of several matrices, from left to right.
    #[track_caller]
    pub fn chain_matmul(matrices: &[&Tensor]) -> Tensor {
        let at = Location::caller();
        let [first, rest @ ..] = matrices else {
            report(Diag::error("E-NN-104", "chain_matmul of no tensors").help("give at least one"), at);
            return Tensor::FAILED;
        };
        let mut y = (*first).clone();
        for m in rest {
            y = y.matmul(m);
        }
        y
    }
}

/// `beta * x + alpha * y`.
#[track_caller]
fn plus(x: &Tensor, y: &Tensor, beta: f64, alpha: f64) -> Tensor {
    let at = Location::caller();
    let d = promote_types(x.dtype(), y.dtype());
    let factor = |f: f64, of: &Tensor| -> Option<Tensor> { (f != 1.0).then(|| cast(&f.operand(of), d, at)) };
    let y = match factor(alpha, y) {
        Some(f) => y.mul(f),
        None => y.clone(),
    };
    match (beta == 0.0, factor(beta, x)) {
        // a product by 0 would keep NaN
        (true, _) => Tensor::scalar(false).where_(x, y),
        (_, Some(f)) => x.mul(f).add(y),
        (_, None) => x.add(y),
    }
}
