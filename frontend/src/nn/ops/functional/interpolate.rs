//! Resampling of space, one axis after another: nearest by gathering, linear and cubic as a weighted sum of gathers.
//! Positions are computed in f32 as PyTorch does, so that what lies between two elements is decided alike.

use super::{At, along, any_failed, bounded, refuse};
use crate::nn::dim::Dim;
use crate::nn::exec::apply;
use crate::nn::ops::arith::cast;
use crate::nn::ops::shape::{expanded, reshaped};
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

/// How elements are made of their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// The element that the beginning of the new one falls in.
    #[default]
    Nearest,
    /// The element that the middle of the new one falls in.
    NearestExact,
    /// Linear along each axis: also PyTorch's bilinear and trilinear.
    Linear,
    /// Cubic along each axis, coefficient -0.75.
    Bicubic,
}

/// Arguments of [`interpolate`]: either sizes or factors, one for each axis of space.
#[derive(Clone, Debug, Default)]
pub struct Interpolate {
    /// The new sizes.
    pub size: Option<Vec<Dim>>,
    /// The factors of the sizes.
    pub scale_factor: Option<Vec<f64>>,
    /// How.
    pub mode: Interpolation,
    /// The outermost elements stay in place (linear and cubic only).
    pub align_corners: bool,
}

/// One axis: its old and new size, and the distance of new elements in old ones, if given by a factor.
struct Along {
    axis: usize,
    from: Dim,
    to: Dim,
    factor: Option<f64>,
}

/// x [n, c, space..] resampled.
#[track_caller]
pub fn interpolate(x: &Tensor, args: &Interpolate) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) {
        return Tensor::FAILED;
    }
    let axes = match axes(x, args) {
        Ok(a) => a,
        Err(help) => return refuse("E-NN-096", format!("interpolate by {args:?} of {x:#}"), help, at),
    };
    let d = x.dtype();
    let exact = matches!(args.mode, Interpolation::Nearest | Interpolation::NearestExact);
    let mut y = if exact { x.clone() } else { cast(x, super::wide_type(d), at) };
    for a in &axes {
        y = match args.mode {
            _ if y.failed() => return y,
            Interpolation::Nearest | Interpolation::NearestExact => nearest(&y, a, args.mode, at),
            Interpolation::Linear => linear(&y, a, args.align_corners, at),
            Interpolation::Bicubic => cubic(&y, a, args.align_corners, at),
        };
    }
    cast(&y, d, at)
}

#[track_caller]
fn axes(x: &Tensor, args: &Interpolate) -> Result<Vec<Along>, &'static str> {
    let shape = x.shape();
    if !(3..=5).contains(&shape.len()) {
        return Err("give rank 3 to 5: batch, channels, space");
    }
    if args.mode == Interpolation::Bicubic && shape.len() != 4 {
        return Err("bicubic is for two axes of space");
    }
    let n = shape.len() - 2;
    let exact = matches!(args.mode, Interpolation::Nearest | Interpolation::NearestExact);
    if args.align_corners && exact {
        return Err("align_corners is for linear and cubic modes");
    }
    if !exact && !x.dtype().is_float() {
        return Err("linear and cubic modes are for floats");
    }
    let mut out = Vec::new();
    for (i, from) in shape[2..].iter().copied().enumerate() {
        let (to, factor) = match (&args.size, &args.scale_factor) {
            (Some(s), None) if s.len() == n => (s[i], None),
            (None, Some(f)) if f.len() == n => {
                let to = scaled(from, f[i]).ok_or(
                    "a factor must be positive, and whole or one over a whole \
                                                   number where the axis has no known size",
                )?;
                (to, Some(f[i]))
            }
            _ => return Err("give either size or scale_factor, with one number for each axis of space"),
        };
        if to.as_known().is_some_and(|t| t < 1) || from.as_known().is_some_and(|f| f < 1) {
            return Err("sizes must be 1 or more");
        }
        out.push(Along { axis: i + 2, from, to, factor });
    }
    Ok(out)
}

#[track_caller]
fn scaled(from: Dim, factor: f64) -> Option<Dim> {
    if !(factor > 0.0 && factor < 1e9) {
        return None;
    }
    match from.as_known() {
        Some(n) => Some(Dim::from((n as f64 * factor).floor() as i64)),
        None if factor.fract() == 0.0 => Some(from * factor as i64),
        None if (1.0 / factor).fract() == 0.0 => Some(from / (1.0 / factor) as i64),
        None => None,
    }
}

/// A size as f32 of rank 0.
#[track_caller]
fn number(d: Dim) -> Tensor {
    Tensor::size_value(d).to_dtype(DType::F32)
}

/// The distance of new elements in old ones.
#[track_caller]
fn step(a: &Along) -> Tensor {
    match a.factor {
        Some(f) => Tensor::scalar((1.0 / f) as f32),
        None => number(a.from) / number(a.to),
    }
}

/// Positions of the new elements in the old ones; not bounded.
#[track_caller]
fn positions(a: &Along, align_corners: bool) -> Tensor {
    let i = Tensor::arange(a.to).to_dtype(DType::F32);
    if align_corners {
        // a single one is at 0
        let spans = number((a.to - 1).max(1));
        return i * (number(a.from - 1) / spans);
    }
    (i + 0.5) * step(a) - 0.5
}

#[track_caller]
fn gathered(x: &Tensor, axis: usize, index: &Tensor, at: At) -> Tensor {
    apply(ops::Gather { axis: axis as i64 }, &[x, index], at)
}

#[track_caller]
fn nearest(x: &Tensor, a: &Along, mode: Interpolation, at: At) -> Tensor {
    if let Some(f) = a.factor.filter(|f| f.fract() == 0.0) {
        let (mut split, mut wide, mut joined) = (x.shape(), x.shape(), x.shape());
        split.insert(a.axis + 1, Dim::from(1));
        wide.insert(a.axis + 1, Dim::from(f as i64));
        joined[a.axis] = a.to;
        return reshaped(&expanded(&reshaped(x, &split, at), &wide, at), &joined, at);
    }
    let i = Tensor::arange(a.to).to_dtype(DType::F32);
    let i = if mode == Interpolation::NearestExact { i + 0.5 } else { i };
    let index = (i * step(a)).floor().to_dtype(DType::I64);
    gathered(x, a.axis, &index.minimum(a.from - 1), at)
}

#[track_caller]
fn linear(x: &Tensor, a: &Along, align_corners: bool, at: At) -> Tensor {
    let place = positions(a, align_corners).maximum(0.0);
    let whole = place.floor();
    let rest = bounded(&(place - &whole), 0.0, 1.0).to_dtype(x.dtype());
    let last = a.from - 1;
    let low = whole.to_dtype(DType::I64).minimum(last);
    let high = (&low + 1).minimum(last);
    let rest = along(&rest, a.axis, x.dim());
    gathered(x, a.axis, &low, at) * (1.0 - &rest) + gathered(x, a.axis, &high, at) * rest
}

#[track_caller]
fn cubic(x: &Tensor, a: &Along, align_corners: bool, at: At) -> Tensor {
    const A: f64 = -0.75;
    let place = positions(a, align_corners);
    let whole = place.floor();
    let t = place - &whole;
    let near = |t: &Tensor| ((t * (A + 2.0) - (A + 3.0)) * t) * t + 1.0;
    let far = |t: &Tensor| ((t * A - 5.0 * A) * t + 8.0 * A) * t - 4.0 * A;
    let back = 1.0 - &t;
    let weights = [far(&(&t + 1.0)), near(&t), near(&back), far(&(back + 1.0))];
    let whole = whole.to_dtype(DType::I64);
    let mut sum: Option<Tensor> = None;
    for (i, w) in weights.iter().enumerate() {
        let index = (&whole + (i as i64 - 1)).maximum(0).minimum(a.from - 1);
        let part = gathered(x, a.axis, &index, at) * along(&w.to_dtype(x.dtype()), a.axis, x.dim());
        sum = Some(match sum {
            Some(s) => s + part,
            None => part,
        });
    }
    sum.unwrap_or(Tensor::FAILED)
}
