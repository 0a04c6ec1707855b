//! Pools that give a wanted number of elements: window `i` of `o` is from `floor(i n / o)` to `ceil((i + 1) n / o)`. Windows
//! are the product of those of each axis, so that one axis after another is reduced.

use super::{At, batched, refuse, unbatched};
use crate::nn::dim::Dim;
use crate::nn::ops::shape::{reshaped, sliced};
use crate::nn::tensor::Tensor;
use std::panic::Location;

#[derive(Clone, Copy)]
enum Kind {
    Mean,
    Max,
}

impl Kind {
    #[track_caller]
    fn reduce(self, x: &Tensor, axes: &[i64], keepdim: bool) -> Tensor {
        match self {
            Kind::Mean => x.mean(axes, keepdim),
            Kind::Max => x.amax(axes, keepdim),
        }
    }
}

/// Means of x [n, c, space..] so that the space has the wanted sizes; None keeps an axis.
#[track_caller]
pub fn adaptive_avg_pool<const N: usize>(x: &Tensor, size: [Option<i64>; N]) -> Tensor {
    let at = Location::caller();
    let Some((x, lone)) = batched(x, N + 2, &format!("adaptive_avg_pool{N}d"), at) else {
        return Tensor::FAILED;
    };
    unbatched(pooled(&x, &size, Kind::Mean, at), lone)
}

/// Maxima of x [n, c, space..] so that the space has the wanted sizes; None keeps an axis.
#[track_caller]
pub fn adaptive_max_pool<const N: usize>(x: &Tensor, size: [Option<i64>; N]) -> Tensor {
    let at = Location::caller();
    let Some((x, lone)) = batched(x, N + 2, &format!("adaptive_max_pool{N}d"), at) else {
        return Tensor::FAILED;
    };
    unbatched(pooled(&x, &size, Kind::Max, at), lone)
}

#[track_caller]
fn pooled(x: &Tensor, size: &[Option<i64>], kind: Kind, at: At) -> Tensor {
    let single: Vec<i64> = (0..size.len()).filter(|i| size[*i] == Some(1)).map(|i| i as i64 + 2).collect();
    let mut y = if single.is_empty() { x.clone() } else { kind.reduce(x, &single, true) };
    for (i, o) in size.iter().enumerate() {
        if let Some(o) = o.filter(|o| *o != 1) {
            y = along_axis(&y, i + 2, o, kind, at);
        }
    }
    y
}

#[track_caller]
fn along_axis(x: &Tensor, axis: usize, o: i64, kind: Kind, at: At) -> Tensor {
    if x.failed() {
        return Tensor::FAILED;
    }
    let n = x.shape()[axis];
    if o < 1 {
        let m = format!("an adaptive pool to {o} elements of {x:#}");
        return refuse("E-NN-089", m, "give 1 or more", at);
    }
    let divided = n.size().ok().and_then(|s| s.div_exact(&o.into()));
    if let Some(each) = divided {
        let mut shape = x.shape();
        shape.splice(axis..=axis, [Dim::from(o), Dim::of(&each)]);
        return kind.reduce(&reshaped(x, &shape, at), &[axis as i64 + 1], false);
    }
    let Some(n) = n.as_known() else {
        let m = format!("an adaptive pool to {o} elements of an axis of `{n}`");
        let help = "its windows have different extents: give the axis a fixed size, a multiple of the result's, or \
                    pool to 1";
        return refuse("E-NN-089", m, help, at);
    };
    let mut parts = Vec::new();
    for i in 0..o {
        let (start, end) = (i * n / o, ((i + 1) * n + o - 1) / o);
        let part = sliced(x, axis, Dim::from(start), Dim::from(end - start), 1, at);
        parts.push(kind.reduce(&part, &[axis as i64], true));
    }
    Tensor::cat(&parts.iter().collect::<Vec<_>>(), axis as i64)
}

macro_rules! named {
    ($($name:ident $of:ident $n:literal $doc:literal;)*) => { $(
        #[doc = $doc]
        #[track_caller]
        pub fn $name(x: &Tensor, size: [Option<i64>; $n]) -> Tensor {
            $of(x, size)
        }
    )* };
}
named! {
    adaptive_avg_pool1d adaptive_avg_pool 1 "[`adaptive_avg_pool`] over one axis.";
    adaptive_avg_pool2d adaptive_avg_pool 2 "[`adaptive_avg_pool`] over two axes.";
    adaptive_avg_pool3d adaptive_avg_pool 3 "[`adaptive_avg_pool`] over three axes.";
    adaptive_max_pool1d adaptive_max_pool 1 "[`adaptive_max_pool`] over one axis.";
    adaptive_max_pool2d adaptive_max_pool 2 "[`adaptive_max_pool`] over two axes.";
    adaptive_max_pool3d adaptive_max_pool 3 "[`adaptive_max_pool`] over three axes.";
}
