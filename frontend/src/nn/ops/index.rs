//! Indexing as in Python: `x.i((0, 1.., NewAxis, &indices))`, and what it selects.

use super::arith::cast;
use super::arrange::picked;
use super::join::broadcast;
use super::shape::{moved, permuted, reshaped, sliced};
use super::tape::same;
use crate::nn::dim::Dim;
use crate::nn::error::report;
use crate::nn::tensor::Tensor;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::types::DType;

type At = &'static Location<'static>;

/// One place of an index: what is taken of an axis.
#[derive(Clone, Debug)]
pub struct Index(Kind);

#[derive(Clone, Debug)]
enum Kind {
    At(Dim),
    Slice { start: Option<Dim>, end: Option<Dim>, step: i64 },
    New,
    Rest,
    Tensor(Tensor),
}

/// A new axis of extent 1, as an [`Index`]: Python's `None`.
#[derive(Clone, Copy, Debug)]
pub struct NewAxis;

/// All axes that the other indices leave, as an [`Index`]: Python's `...`.
#[derive(Clone, Copy, Debug)]
pub struct Ellipsis;

impl Index {
    /// Every `step`-th element of a range: `Index::step(1.., 2)` is Python's `1::2`. What is no range stays as it is.
    pub fn step(range: impl Into<Index>, step: i64) -> Index {
        match range.into().0 {
            Kind::Slice { start, end, .. } => Index(Kind::Slice { start, end, step }),
            other => Index(other),
        }
    }
}

/// The end of a range that holds `last`; -1 holds all.
fn past(last: Dim) -> Option<Dim> {
    if last.as_known() == Some(-1) { None } else { Some(last + 1) }
}

macro_rules! places {
    ($($t:ty),*) => { $(
        impl From<$t> for Index {
            fn from(i: $t) -> Index {
                Index(Kind::At(i.into()))
            }
        }
    )* };
}
places!(i32, i64, usize, Dim);

macro_rules! ranges {
    ($($range:ident $r:ident => $start:expr, $end:expr;)*) => { $(
        impl<T: Into<Dim> + Copy> From<$range<T>> for Index {
            fn from($r: $range<T>) -> Index {
                Index(Kind::Slice { start: $start, end: $end, step: 1 })
            }
        }
    )* };
}
ranges! {
    Range r => Some(r.start.into()), Some(r.end.into());
    RangeFrom r => Some(r.start.into()), None;
    RangeTo r => None, Some(r.end.into());
    RangeInclusive r => Some((*r.start()).into()), past((*r.end()).into());
    RangeToInclusive r => None, past(r.end.into());
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index(Kind::Slice { start: None, end: None, step: 1 })
    }
}

impl From<NewAxis> for Index {
    fn from(_: NewAxis) -> Index {
        Index(Kind::New)
    }
}

impl From<Ellipsis> for Index {
    fn from(_: Ellipsis) -> Index {
        Index(Kind::Rest)
    }
}

impl From<&Tensor> for Index {
    fn from(t: &Tensor) -> Index {
        Index(Kind::Tensor(t.clone()))
    }
}

impl From<Tensor> for Index {
    fn from(t: Tensor) -> Index {
        Index(Kind::Tensor(t))
    }
}

/// Indices as they are written: one, or a tuple of up to eight.
pub trait IntoIndex {
    /// One place each.
    fn into_index(self) -> Vec<Index>;
}

impl<T: Into<Index>> IntoIndex for T {
    fn into_index(self) -> Vec<Index> {
        vec![self.into()]
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),*))*) => { $(
        impl<$($t: Into<Index>),*> IntoIndex for ($($t,)*) {
            fn into_index(self) -> Vec<Index> {
                vec![$(self.$i.into()),*]
            }
        }
    )* };
}
tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

impl IntoIndex for &[Index] {
    fn into_index(self) -> Vec<Index> {
        self.to_vec()
    }
}

impl Tensor {
    /// Python's `x[..]`: numbers and dims (the axis goes away), ranges with negative ends, [`NewAxis`], [`Ellipsis`],
    /// index tensors, which broadcast together, and boolean masks.
    ///
    /// Known numbers in ranges are cut to the axis as in Python; symbolic ends are taken as they are, and must fit.
    #[track_caller]
    pub fn i(&self, index: impl IntoIndex) -> Tensor {
        let at = Location::caller();
        let index = index.into_index();
        if self.failed() {
            return Tensor::FAILED;
        }
        let Some(index) = filled(self, index, at) else { return Tensor::FAILED };
        let mut x = self.clone();
        let mut axis = 0;
        let mut tensors = Vec::new();
        for place in index {
            match place.0 {
                Kind::At(i) => x = x.select(axis as i64, i),
                Kind::New => {
                    x = x.unsqueeze(axis as i64);
                    axis += 1;
                }
                Kind::Slice { start, end, step } => {
                    x = ranged(&x, axis, start, end, step, at);
                    axis += 1;
                }
                Kind::Tensor(t) if t.dim() == 0 && t.dtype() != DType::Bool => x = picked(&x, axis, &t, at),
                Kind::Tensor(t) => {
                    if !masks(&x, axis, &t, at) {
                        return Tensor::FAILED;
                    }
                    let lines = if t.dtype() == DType::Bool { t.nonzero().columns(t.dim()) } else { vec![t] };
                    for line in lines {
                        tensors.push((axis, line));
                        axis += 1;
                    }
                }
                Kind::Rest => {}
            }
            if x.failed() {
                return Tensor::FAILED;
            }
        }
        gathered(&x, tensors, at)
    }

    /// Columns of a matrix, whose number is known.
    #[track_caller]
    fn columns(&self, n: usize) -> Vec<Tensor> {
        let mut out = Vec::with_capacity(n);
        for i in 0..n {
            out.push(if self.failed() { Tensor::FAILED } else { self.select(1, i) });
        }
        out
    }
}

/// Whether a mask has the sizes of the axes it stands for.
#[track_caller]
fn masks(x: &Tensor, axis: usize, mask: &Tensor, at: At) -> bool {
    let whole = x.shape().into_iter().skip(axis);
    let pairs: Vec<(Dim, Dim)> = mask.shape().into_iter().zip(whole).collect();
    mask.dtype() != DType::Bool
        || pairs.into_iter().all(|(m, n)| same(m, n, "a mask must have the sizes of the axes it indexes", at))
}

/// How many axes an index uses up.
fn uses(i: &Index) -> usize {
    match &i.0 {
        Kind::At(_) | Kind::Slice { .. } => 1,
        Kind::New | Kind::Rest => 0,
        Kind::Tensor(t) => {
            if t.dtype() == DType::Bool {
                t.dim()
            } else {
                1
            }
        }
    }
}

/// The index with full ranges for the axes it leaves out. Wrong ones are reported.
#[track_caller]
fn filled(x: &Tensor, mut index: Vec<Index>, at: At) -> Option<Vec<Index>> {
    let used: usize = index.iter().map(uses).sum();
    let rests = index.iter().filter(|i| matches!(i.0, Kind::Rest)).count();
    let wrong = |m: String, help: &str| {
        report(Diag::error("E-NN-096", m).note(format!("the tensor is {x:#}")).help(help), at);
        None
    };
    if rests > 1 {
        return wrong("an index has more than one Ellipsis".into(), "give one at most");
    }
    for i in &index {
        if let Kind::Tensor(t) = &i.0 {
            if t.failed() {
                return None;
            }
            if t.dtype().is_float() {
                let help = "index tensors are integers or bool: cast with long()";
                return wrong(format!("an index is a tensor of {}", t.dtype()), help);
            }
            if t.dtype() == DType::Bool && t.dim() == 0 {
                return wrong("an index is a bool of rank 0".into(), "give a mask of rank 1 or more");
            }
        }
    }
    let Some(left) = x.dim().checked_sub(used) else {
        return wrong(format!("an index of {used} axes for a tensor of rank {}", x.dim()), "give fewer");
    };
    let full = || Index(Kind::Slice { start: None, end: None, step: 1 });
    let place = index.iter().position(|i| matches!(i.0, Kind::Rest)).unwrap_or(index.len());
    let end = (place + 1).min(index.len());
    index.splice(place..end, (0..left).map(|_| full()));
    Some(index)
}

/// A bound of a range as an index from 0: negative ones count from the end, and known ones are cut to the axis.
fn bound(d: Option<Dim>, n: Dim, default: Dim) -> Dim {
    match d.map(|d| (d, d.as_known())) {
        None => default,
        Some((_, Some(k))) if k < 0 => (n + k).max(0),
        Some((_, Some(k))) => n.min(k),
        Some((d, None)) => d,
    }
}

#[track_caller]
fn ranged(x: &Tensor, axis: usize, start: Option<Dim>, end: Option<Dim>, step: i64, at: At) -> Tensor {
    if step < 1 {
        let d = Diag::error("E-NN-097", format!("a range with steps of {step}"));
        report(d.help("steps are 1 or more; flip reverses an axis"), at);
        return Tensor::FAILED;
    }
    let n = x.shape()[axis];
    if start.is_none() && end.is_none() && step == 1 {
        return x.clone();
    }
    let (from, to) = (bound(start, n, 0.into()), bound(end, n, n));
    let symbolic = |d: Option<Dim>| d.is_some_and(|d| d.as_known().is_none());
    let mut len = to - from;
    if !(symbolic(start) || symbolic(end)) {
        len = len.max(0);
    }
    let len = if step == 1 { len } else { (len + (step - 1)) / step };
    let from = if len.as_known() == Some(0) { 0.into() } else { from };
    sliced(x, axis, from, len, step, at)
}

/// Elements at index tensors, each of an axis of its own. The axes of the indices, broadcast together, take the place of
/// theirs, or come first if other axes lie between.
#[track_caller]
fn gathered(x: &Tensor, tensors: Vec<(usize, Tensor)>, at: At) -> Tensor {
    let axes: Vec<usize> = tensors.iter().map(|t| t.0).collect();
    let (Some(&first), [rest @ .., last]) = (axes.first(), &tensors[..]) else { return x.clone() };
    if rest.is_empty() {
        return picked(x, first, &cast(&last.1, DType::I64, at), at);
    }
    let lines: Vec<&Tensor> = tensors.iter().map(|t| &t.1).collect();
    let Some(lines) = broadcast(&lines, at) else { return Tensor::FAILED };
    let shape = x.shape();
    let front: Vec<usize> = (0..axes.len()).collect();
    let y = permuted(x, &moved(shape.len(), &axes, &front), at);
    let mut flat = vec![axes.iter().fold(Dim::from(1), |n, a| n * shape[*a])];
    flat.extend(y.shape().into_iter().skip(axes.len()));
    let y = reshaped(&y, &flat, at);
    let mut place: Option<Tensor> = None;
    for (a, line) in axes.iter().zip(&lines) {
        // reading the axis' own places checks the range and gives negative indices their place
        let line = picked(&Tensor::arange(shape[*a]), 0, line, at);
        place = Some(match place {
            None => line,
            Some(p) => p.mul(shape[*a]).add(line),
        });
    }
    let Some(place) = place else { return Tensor::FAILED };
    let y = picked(&y, 0, &place, at);
    let together = axes.windows(2).all(|w| w[0] + 1 == w[1]);
    if y.failed() || !together || first == 0 {
        return y;
    }
    let from: Vec<usize> = (0..place.dim()).collect();
    let to: Vec<usize> = from.iter().map(|i| i + first).collect();
    permuted(&y, &moved(y.dim(), &from, &to), at)
}
