//! Dims as users hold them: copies of a number, or of a symbolic size of the current trace. Arithmetic gives dims again;
//! comparing gives a plain answer where the declared ranges decide it, and is an error where they do not.

use super::error;
use super::trace;
use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::types::{Dim as Size, Pred, SymInfo};

/// A size: known, or symbolic while tracing. Division rounds down, as in Python.
#[derive(Clone, Copy)]
pub struct Dim(pub(crate) Repr);

#[derive(Clone, Copy)]
pub(crate) enum Repr {
    Known(i64),
    /// An entry of a trace's table.
    Traced {
        trace: u64,
        index: u32,
    },
    /// A size of something that already failed.
    Failed,
}

macro_rules! known {
    ($($t:ty),*) => { $(
        impl From<$t> for Dim {
            fn from(n: $t) -> Dim {
                Dim(i64::try_from(n).map_or(Repr::Failed, Repr::Known))
            }
        }
    )* };
}
known!(i32, i64, usize, u32, u64);

impl Dim {
    pub(crate) const FAILED: Dim = Dim(Repr::Failed);

    /// The number. Symbolic sizes have none: calling this while tracing one is an error that names the dim.
    #[track_caller]
    pub fn to_usize(self) -> usize {
        let at = Location::caller();
        match self.0 {
            Repr::Known(n) if n >= 0 => n as usize,
            Repr::Known(n) => error::end(Diag::error("E-NN-010", format!("the size {n} is negative")), at),
            Repr::Failed => error::end(failed(), at),
            Repr::Traced { .. } => {
                let m =
                    format!("the number of the dim `{self}` is asked for, but it is symbolic in this trace");
                let d = Diag::error("E-NN-011", m)
                    .help("compute with the dim itself, or give the input a fixed size in its spec");
                error::end(d, at)
            }
        }
    }

    /// The number as f64, as [`Dim::to_usize`].
    #[track_caller]
    pub fn to_f64(self) -> f64 {
        self.to_usize() as f64
    }

    /// The number, if it is known without a trace.
    pub fn as_known(self) -> Option<i64> {
        match self.0 {
            Repr::Known(n) => Some(n),
            _ => None,
        }
    }

    /// The smaller of two.
    #[track_caller]
    pub fn min(self, o: impl Into<Dim>) -> Dim {
        compute(self, o.into(), Location::caller(), |a, b| Ok(a.dmin(b)))
    }

    /// The greater of two.
    #[track_caller]
    pub fn max(self, o: impl Into<Dim>) -> Dim {
        compute(self, o.into(), Location::caller(), |a, b| Ok(a.dmax(b)))
    }

    /// As the IR has it; an error for a dim of another trace.
    pub(crate) fn size(self) -> Result<Size, Option<Diag>> {
        match self.0 {
            Repr::Known(n) => Ok(Size::from(n)),
            Repr::Failed => Err(None),
            Repr::Traced { trace, index } => trace::with(
                |t| match t.id == trace {
                    true => t.dims.get(index as usize).cloned().ok_or(None),
                    false => Err(Some(stale())),
                },
                Err(Some(stale())),
            ),
        }
    }

    /// From the IR's form.
    pub(crate) fn of(size: &Size) -> Dim {
        match size.as_const() {
            Some(n) => Dim(Repr::Known(n)),
            None => trace::with(
                |t| {
                    let found = t.dims.iter().position(|d| d == size);
                    let index = found.unwrap_or_else(|| {
                        t.dims.push(size.clone());
                        t.dims.len() - 1
                    });
                    Dim(Repr::Traced { trace: t.id, index: index as u32 })
                },
                Dim::FAILED,
            ),
        }
    }
}

fn failed() -> Diag {
    Diag::error("E-NN-012", "a size of a tensor that could not be computed is needed here")
        .help("mend the errors above it first")
}

fn stale() -> Diag {
    Diag::error("E-NN-013", "a dim of another trace, or of one that has ended")
        .help("take sizes from tensors of this trace: x.size(0)")
}

#[track_caller]
fn compute(
    a: Dim,
    b: Dim,
    at: &'static Location<'static>,
    f: impl FnOnce(&Size, &Size) -> Result<Size, Diag>,
) -> Dim {
    let pair = a.size().and_then(|a| b.size().map(|b| (a, b)));
    match pair {
        Ok((a, b)) => match f(&a, &b) {
            Ok(d) => Dim::of(&trace::with(|t| t.simplify(&d), d.clone())),
            Err(d) => {
                error::report(d, at);
                Dim::FAILED
            }
        },
        Err(None) => Dim::FAILED,
        Err(Some(d)) => {
            error::report(d, at);
            Dim::FAILED
        }
    }
}

/// Floor division, by a divisor that is known to be positive.
fn divided(a: &Size, b: &Size, remainder: bool) -> Result<Size, Diag> {
    let positive = trace::with(|t| t.range(b).0 >= 1, b.as_const().is_some_and(|n| n >= 1));
    if !positive {
        let m = format!("`{a}` is divided by `{b}`, which may be 0 or negative");
        return Err(Diag::error("E-NN-014", m)
            .help("give the dim a range that begins at 1: dim(\"n\").range(1..=64)"));
    }
    Ok(if remainder { a.rem(b) } else { a.floordiv(b) })
}

macro_rules! operators {
    ($($trait:ident :: $method:ident => $f:expr;)*) => { $(
        impl<T: Into<Dim>> $trait<T> for Dim {
            type Output = Dim;
            #[track_caller]
            fn $method(self, o: T) -> Dim {
                let at = Location::caller();
                compute(self, o.into(), at, $f)
            }
        }
        operators!(@left $trait $method i32 i64 usize);
    )* };
    (@left $trait:ident $method:ident $($t:ty)*) => { $(
        impl $trait<Dim> for $t {
            type Output = Dim;
            #[track_caller]
            fn $method(self, o: Dim) -> Dim {
                $trait::$method(Dim::from(self), o)
            }
        }
    )* };
}
operators! {
    Add::add => |a, b| Ok(a.clone() + b.clone());
    Sub::sub => |a, b| Ok(a.clone() - b.clone());
    Mul::mul => |a, b| Ok(a.clone() * b.clone());
    Div::div => |a, b| divided(a, b, false);
    Rem::rem => |a, b| divided(a, b, true);
}

impl Neg for Dim {
    type Output = Dim;
    #[track_caller]
    fn neg(self) -> Dim {
        0 - self
    }
}

/// The answer where it is known.
#[track_caller]
fn decide(
    a: Dim,
    b: Dim,
    sign: &str,
    at: &'static Location<'static>,
    pred: impl FnOnce(Size, Size) -> Pred,
) -> bool {
    let (x, y) = match (a.size(), b.size()) {
        (Ok(x), Ok(y)) => (x, y),
        (Err(Some(d)), _) | (_, Err(Some(d))) => error::end(d, at),
        _ => error::end(failed(), at),
    };
    let pred = pred(x, y);
    let answer = trace::with(|t| pred.decide_in(t.symbols()), pred.eval(&|_| None).ok());
    answer.unwrap_or_else(|| {
        let known = trace::with(|t| t.ranges(&pred), Vec::new());
        let m = format!("`{a} {sign} {b}` is asked, and the answer depends on the sizes of a run");
        let mut d = Diag::error("E-NN-015", m).help(
            "give the dim a range or a fixed size in its spec that decides it, or write both cases with cond",
        );
        for line in known {
            d = d.note(line);
        }
        error::end(d, at)
    })
}

macro_rules! comparisons {
    ($($t:ty),*) => { $(
        impl PartialEq<$t> for Dim {
            #[track_caller]
            fn eq(&self, o: &$t) -> bool {
                decide(*self, Dim::from(*o), "==", Location::caller(), Pred::Eq)
            }
        }
        impl PartialOrd<$t> for Dim {
            #[track_caller]
            fn partial_cmp(&self, o: &$t) -> Option<Ordering> {
                let at = Location::caller();
                let (a, b) = (*self, Dim::from(*o));
                Some(if decide(a, b, "<", at, |x, y| Pred::Le(x + Size::from(1), y)) {
                    Ordering::Less
                } else if decide(a, b, "==", at, Pred::Eq) {
                    Ordering::Equal
                } else {
                    Ordering::Greater
                })
            }
            #[track_caller]
            fn lt(&self, o: &$t) -> bool {
                decide(*self, Dim::from(*o), "<", Location::caller(), |a, b| Pred::Le(a + Size::from(1), b))
            }
            #[track_caller]
            fn le(&self, o: &$t) -> bool {
                decide(*self, Dim::from(*o), "<=", Location::caller(), Pred::Le)
            }
            #[track_caller]
            fn gt(&self, o: &$t) -> bool {
                decide(*self, Dim::from(*o), ">", Location::caller(), |a, b| Pred::Le(b + Size::from(1), a))
            }
            #[track_caller]
            fn ge(&self, o: &$t) -> bool {
                decide(*self, Dim::from(*o), ">=", Location::caller(), |a, b| Pred::Le(b, a))
            }
        }
    )* };
}
comparisons!(Dim, i32, i64, usize);

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size() {
            Ok(d) => write!(f, "{d}"),
            Err(_) => f.write_str("?"),
        }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A dim of an input's spec: a fixed size, or a named symbolic one with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct DimSpec {
    pub(crate) name: Option<String>,
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

/// A symbolic dim called `name`, 1 or more. Specs that use the name again mean the same dim.
pub fn dim(name: &str) -> DimSpec {
    DimSpec { name: Some(name.to_string()), lo: 1, hi: SymInfo::default().hi }
}

impl DimSpec {
    /// The sizes it may have, both ends included: `1..=64`.
    pub fn range(self, sizes: std::ops::RangeInclusive<i64>) -> DimSpec {
        DimSpec { lo: *sizes.start(), hi: *sizes.end(), ..self }
    }
}

impl From<&str> for DimSpec {
    fn from(name: &str) -> DimSpec {
        dim(name)
    }
}

impl From<&DimSpec> for DimSpec {
    fn from(d: &DimSpec) -> DimSpec {
        d.clone()
    }
}

macro_rules! fixed {
    ($($t:ty),*) => { $(
        impl From<$t> for DimSpec {
            fn from(n: $t) -> DimSpec {
                let n = i64::try_from(n).unwrap_or(-1);
                DimSpec { name: None, lo: n, hi: n }
            }
        }
    )* };
}
fixed!(i32, i64, usize);

/// Shapes as they are written: tuples that mix dims and numbers, arrays, slices, vectors, one number.
pub trait IntoShape {
    /// One dim an axis.
    fn into_shape(self) -> Vec<Dim>;
}

/// Dims of a spec as they are written, as [`IntoShape`], with names.
pub trait IntoSpecs {
    /// One dim an axis.
    fn into_specs(self) -> Vec<DimSpec>;
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),*))*) => { $(
        impl<$($t: Into<Dim>),*> IntoShape for ($($t,)*) {
            fn into_shape(self) -> Vec<Dim> {
                vec![$(self.$i.into()),*]
            }
        }
        impl<$($t: Into<DimSpec>),*> IntoSpecs for ($($t,)*) {
            fn into_specs(self) -> Vec<DimSpec> {
                vec![$(self.$i.into()),*]
            }
        }
    )* };
}
tuples! {
    ()
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

macro_rules! single {
    ($($t:ty),*) => { $(
        impl IntoShape for $t {
            fn into_shape(self) -> Vec<Dim> {
                vec![self.into()]
            }
        }
    )* };
}
single!(Dim, i32, i64, usize);

impl<T: Into<Dim> + Copy> IntoShape for &[T] {
    fn into_shape(self) -> Vec<Dim> {
        self.iter().map(|d| (*d).into()).collect()
    }
}

impl<T: Into<Dim> + Copy> IntoShape for &Vec<T> {
    fn into_shape(self) -> Vec<Dim> {
        self.as_slice().into_shape()
    }
}

impl<T: Into<Dim> + Copy, const N: usize> IntoShape for &[T; N] {
    fn into_shape(self) -> Vec<Dim> {
        self.as_slice().into_shape()
    }
}

impl<T: Into<Dim>, const N: usize> IntoShape for [T; N] {
    fn into_shape(self) -> Vec<Dim> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<Dim>> IntoShape for Vec<T> {
    fn into_shape(self) -> Vec<Dim> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! single_spec {
    ($($t:ty),*) => { $(
        impl IntoSpecs for $t {
            fn into_specs(self) -> Vec<DimSpec> {
                vec![self.into()]
            }
        }
    )* };
}
single_spec!(&str, i32, i64, usize, DimSpec);

impl<T: Into<DimSpec>, const N: usize> IntoSpecs for [T; N] {
    fn into_specs(self) -> Vec<DimSpec> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<T: Into<DimSpec>> IntoSpecs for Vec<T> {
    fn into_specs(self) -> Vec<DimSpec> {
        self.into_iter().map(Into::into).collect()
    }
}
