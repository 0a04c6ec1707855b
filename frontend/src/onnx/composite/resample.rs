//! Resampling along axes, one after another: nearest as one gather, linear and cubic as a weighted sum of gathers.
//!
//! The position that element `i` of the result has in the operand is the fraction `(a*i + b) / c` of integers, which may
//! be symbolic. Whether it is an integer, or half way between two, is thus decided without rounding.

use super::filter::{cubic, linear, windowed};
use super::ratio::{Ratio, gcd};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, Constant, Div, Gather, Iota, Lt, Max, Min, Mul, Or, Round, Select, Slice, Sub};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, Pred};

/// How elements are made from their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Nearest,
    Linear,
    Cubic,
}

/// What position an element of the result has in the operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Coords {
    /// `(i + 0.5) / scale - 0.5`.
    #[default]
    HalfPixel,
    /// The same, but 0 for a result of length 1.
    HalfPixelOrZero,
    /// The same, with the middle of the result at the middle of the operand.
    HalfPixelSymmetric,
    /// `(i + 0.5) / scale`.
    Centre,
    /// `i / scale`.
    Asymmetric,
    /// The ends of both are at the same positions.
    AlignCorners,
    /// The ends of the result are at those of the region of interest.
    Crop,
}

/// Which element is the nearest one to a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Nearest {
    /// The nearest, the one before of two.
    #[default]
    PreferFloor,
    /// The nearest, the one after of two.
    PreferCeil,
    Floor,
    Ceil,
    /// The one before it when the axis grows, else the one after it.
    Outward,
}

/// How to resample, for all axes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampling {
    pub(super) mode: Mode,
    pub(super) coords: Coords,
    pub(super) nearest: Nearest,
    /// Linear and cubic: the filter is as wide as a step when the axis shrinks.
    pub(super) antialias: bool,
    /// Elements outside count for nothing instead of as the outermost ones.
    pub(super) exclude_outside: bool,
    /// The coefficient `a` of the cubic filter.
    pub(super) cubic: f64,
    /// What positions outside the operand give when cropping.
    pub(super) outside: f64,
}

/// One axis, its new size, and its scale `p / q`.
#[derive(Clone, Debug)]
pub(super) struct Along {
    pub(super) axis: usize,
    pub(super) to: Dim,
    pub(super) p: Dim,
    pub(super) q: Dim,
    /// Start and end of the region of interest.
    pub(super) roi: Option<[Ratio; 2]>,
}

/// The position `(a*i + b) / c`.
#[derive(Clone, Debug)]
pub(super) struct Line {
    a: Dim,
    b: Dim,
    c: Dim,
}

/// A whole position and the rest of it, from 0 to 1; where the position lies outside the operand.
pub(super) struct Place {
    pub(super) whole: Value,
    pub(super) rest: Value,
    pub(super) outside: Option<Value>,
}

/// Most indices that are written as constants; more are counted by the program.
const MAX_COUNTED: i64 = 4096;

/// `x` resampled along the axes.
pub(super) fn resample(cx: &mut NodeCx<'_, '_>, x: Value, s: &Sampling, along: Vec<Along>) -> Res<Value> {
    let dtype = cx.dtype(x);
    let along: Vec<Along> = along.into_iter().filter(|a| !same(cx, x, s, a)).collect();
    if along.is_empty() {
        return Ok(x);
    }
    if s.mode == Mode::Nearest {
        return along.iter().try_fold(x, |y, a| nearest(cx, y, s, a));
    }
    if !(dtype.is_float() || dtype.is_int()) || dtype.is_storage_only() {
        let m = format!("elements of type {dtype} have no value between two of them");
        return Err(cx.fail("E-ONNX-008", m).help("only mode = nearest takes this element type").into());
    }
    let wide = dtype == DType::F64 || (dtype.is_int() && dtype.bits() > 16);
    let x = cx.cast(x, if wide { DType::F64 } else { DType::F32 })?;
    let mut y = along.iter().try_fold(x, |y, a| weighted(cx, y, s, a))?;
    if dtype.is_int() {
        y = cx.op(Round {}, &[y])?;
    }
    cx.cast(y, dtype)
}

/// True where nothing changes along the axis.
fn same(cx: &NodeCx<'_, '_>, x: Value, s: &Sampling, along: &Along) -> bool {
    let whole = |[start, end]: [Ratio; 2]| start.num == 0 && end == Ratio { num: 1, den: 1 };
    along.p == along.q
        && along.to == cx.shape(x)[along.axis]
        && s.coords != Coords::Centre
        && along.roi.is_none_or(whole)
}

fn line(cx: &mut NodeCx<'_, '_>, s: &Sampling, from: &Dim, along: &Along) -> Res<Line> {
    let (p, q, n) = (along.p.clone(), along.q.clone(), Dim::from);
    let half = q.clone() - p.clone();
    let (a, b, c) = match s.coords {
        Coords::Asymmetric => (q, n(0), p),
        Coords::HalfPixel => (n(2) * q, half, n(2) * p),
        Coords::Centre => (n(2) * q.clone(), q, n(2) * p),
        Coords::HalfPixelOrZero => {
            // only one element: at 0
            let many = cx.simplify((along.to.clone() - n(1)).dmin(&n(1)).dmax(&n(0)));
            (n(2) * q, many * half, n(2) * p)
        }
        Coords::HalfPixelSymmetric => {
            let shift = p.clone() * from.clone() - q.clone() * along.to.clone();
            (n(2) * q, shift + half, n(2) * p)
        }
        Coords::AlignCorners => {
            let (top, bottom) = last(cx, from, along);
            ((from.clone() - n(1)) * bottom, n(0), top)
        }
        Coords::Crop => {
            let Some([start, end]) = along.roi else {
                return Err(cx.fail("E-ONNX-020", "the region of interest (operand 1) is missing").into());
            };
            let (top, bottom) = last(cx, from, along);
            let (first, span) = (start.num * end.den, end.num * start.den - start.num * end.den);
            let single = cx.simplify(n(1) - (along.to.clone() - n(1)).dmin(&n(1)).dmax(&n(0)));
            let far = from.clone() - n(1);
            let b = far.clone() * top.clone() * (Dim::from(2 * first) + single * Dim::from(span));
            (far * bottom * Dim::from(2 * span), b, top * Dim::from(2 * start.den * end.den))
        }
    };
    let line = lowest(Line { a: cx.simplify(a), b: cx.simplify(b), c: cx.simplify(c) });
    // twice the greatest number that is computed
    let size = |d: &Dim| cx.simplify(d.dmax(&-d.clone()));
    let most = n(4) * (size(&line.a) * along.to.clone() + size(&line.b) + n(2) * line.c.clone());
    let most = most + n(4) * line.c.clone() * from.clone();
    cx.require(Pred::Le(most, Dim::from(i64::MAX)), "the positions must be computable in 64 bits")?;
    Ok(line)
}

/// Index of the last element of the result, which is no whole number when the scale gives none, as a fraction.
fn last(cx: &NodeCx<'_, '_>, from: &Dim, along: &Along) -> (Dim, Dim) {
    let long = along.p.clone() * from.clone();
    let (top, bottom) = match (along.p == along.to && along.q == *from, long.div_exact(&along.q)) {
        (true, _) => (along.to.clone() - Dim::from(1), Dim::from(1)),
        (_, Some(l)) => (l - Dim::from(1), Dim::from(1)),
        _ => (long - along.q.clone(), along.q.clone()),
    };
    (cx.simplify(top.dmax(&Dim::from(1))), bottom)
}

fn lowest(l: Line) -> Line {
    let (Some(a), Some(b), Some(c)) = (l.a.as_const(), l.b.as_const(), l.c.as_const()) else { return l };
    let g = gcd(gcd(a.into(), b.into()), c.into()).max(1);
    let by = |v: i64| Dim::from(i128::from(v) / g);
    Line { a: by(a), b: by(b), c: by(c) }
}

fn nearest(cx: &mut NodeCx<'_, '_>, x: Value, s: &Sampling, along: &Along) -> Res<Value> {
    let from = cx.shape(x)[along.axis].clone();
    let at = line(cx, s, &from, along)?;
    let grows = matches!((along.p.as_const(), along.q.as_const()), (Some(p), Some(q)) if p >= q);
    let (n, one) = (Dim::from, Dim::from(1));
    let twice =
        |add: Dim| Line { a: n(2) * at.a.clone(), b: n(2) * at.b.clone() + add, c: n(2) * at.c.clone() };
    let index = match s.nearest {
        Nearest::Floor => at.clone(),
        Nearest::Outward if grows => at.clone(),
        Nearest::Ceil | Nearest::Outward => Line { b: at.b.clone() + at.c.clone() - one, ..at.clone() },
        Nearest::PreferFloor => twice(at.c.clone() - one),
        Nearest::PreferCeil => twice(at.c.clone()),
    };
    if s.coords != Coords::Crop
        && let Some(y) = as_view(cx, x, &from, along, &index)?
    {
        return Ok(y);
    }
    let i = counter(cx, &along.to, &from, None)?;
    let position = num(cx, i, &index)?;
    let index = clamped(cx, position, &index.c, &from)?;
    let y = cx.op(Gather { axis: along.axis as i64 }, &[x, index])?;
    if s.coords != Coords::Crop {
        return Ok(y);
    }
    let position = num(cx, i, &at)?;
    let outside = beyond(cx, position, &at, &from)?;
    replaced(cx, y, s, along.axis, outside)
}

/// `min(max(position, 0) / c, from - 1)`.
fn clamped(cx: &mut NodeCx<'_, '_>, position: Value, c: &Dim, from: &Dim) -> Res<Value> {
    let (zero, c) = (cx.dim_value(Dim::from(0))?, cx.dim_value(c.clone())?);
    let i = cx.op(Max {}, &[position, zero])?;
    let i = cx.op(Div {}, &[i, c])?;
    let end = cx.dim_value(from.clone() - Dim::from(1))?;
    cx.op(Min {}, &[i, end])
}

/// Repetition of every element, or every k-th element, without an index.
fn as_view(cx: &mut NodeCx<'_, '_>, x: Value, from: &Dim, along: &Along, l: &Line) -> Res<Option<Value>> {
    let numbers = [&l.a, &l.b, &l.c, &along.p, &along.q].map(Dim::as_const);
    let [Some(a), Some(b), Some(c), Some(p), Some(q)] = numbers.map(|v| v.map(i128::from)) else {
        return Ok(None);
    };
    let shape = cx.shape(x);
    if c < 1 || a < 1 || b < 0 {
        return Ok(None);
    }
    if q == 1 && a * p == c && a * (p - 1) + b < c && along.to == from.clone() * Dim::from(p) {
        let (mut split, mut to) = (shape.clone(), shape);
        split.insert(along.axis + 1, Dim::from(1));
        to[along.axis] = along.to.clone();
        let mut wide = split.clone();
        wide[along.axis + 1] = Dim::from(p);
        let y = cx.reshape(x, split)?;
        let y = cx.expand(y, wide)?;
        return Ok(Some(cx.reshape(y, to)?));
    }
    if p == 1 && a == q * c && b / c < q && along.to == cx.simplify(from.floordiv(&Dim::from(q))) {
        let (mut starts, mut sizes, mut steps) =
            (vec![Dim::from(0); shape.len()], shape.clone(), vec![1; shape.len()]);
        starts[along.axis] = Dim::from(b / c);
        sizes[along.axis] = along.to.clone();
        steps[along.axis] = i64::try_from(q).unwrap_or(1);
        return Ok(Some(cx.op(Slice { starts, sizes, steps }, &[x])?));
    }
    Ok(None)
}

/// Indices of the result's axis. With a window, one column an element of it.
pub(super) fn counter(cx: &mut NodeCx<'_, '_>, to: &Dim, from: &Dim, window: Option<&Dim>) -> Res<Value> {
    let columns = window.map_or(Some(1), Dim::as_const).unwrap_or(i64::MAX);
    let shape: Vec<Dim> = if window.is_some() { vec![to.clone(), Dim::from(1)] } else { vec![to.clone()] };
    let n = to.as_const().filter(|n| from.as_const().is_some() && n.saturating_mul(columns) <= MAX_COUNTED);
    let Some(n) = n.filter(|n| *n > 0) else {
        return cx.op(Iota { axis: 0, shape, dtype: DType::I64 }, &[]);
    };
    let all: Vec<i64> = (0..n).flat_map(|i| (0..columns).map(move |_| i)).collect();
    let shape = if window.is_some() { vec![n as usize, columns as usize] } else { vec![n as usize] };
    cx.op(Constant { value: Tensor::from_ints(DType::I64, &shape, &all), shape: None }, &[])
}

/// `a*i + b`.
fn num(cx: &mut NodeCx<'_, '_>, i: Value, l: &Line) -> Res<Value> {
    let mut v = i;
    if !l.a.is(1) {
        let a = cx.dim_value(l.a.clone())?;
        v = cx.op(Mul {}, &[v, a])?;
    }
    if !l.b.is(0) {
        let b = cx.dim_value(l.b.clone())?;
        v = cx.op(Add {}, &[v, b])?;
    }
    Ok(v)
}

/// Where the position `v / c` is none of the operand's.
fn beyond(cx: &mut NodeCx<'_, '_>, v: Value, l: &Line, from: &Dim) -> Res<Value> {
    let (zero, end) = (cx.dim_value(Dim::from(0))?, end(cx, l, from)?);
    let (below, above) = (cx.op(Lt {}, &[v, zero])?, cx.op(Lt {}, &[end, v])?);
    cx.op(Or {}, &[below, above])
}

/// The last position, times `c`.
fn end(cx: &mut NodeCx<'_, '_>, l: &Line, from: &Dim) -> Res<Value> {
    cx.dim_value((from.clone() - Dim::from(1)) * l.c.clone())
}

/// `y` with the value for positions outside of the operand.
fn replaced(cx: &mut NodeCx<'_, '_>, y: Value, s: &Sampling, axis: usize, outside: Value) -> Res<Value> {
    let outside = along_axis(cx, outside, 1, cx.rank(y) - axis - 1)?;
    let dtype = cx.dtype(y);
    let fill = cx.num(dtype, s.outside)?;
    cx.op(Select {}, &[outside, fill, y])
}

/// The leading `keep` axes of `v` and `after` axes of length 1.
pub(super) fn along_axis(cx: &mut NodeCx<'_, '_>, v: Value, keep: usize, after: usize) -> Res<Value> {
    let mut shape = cx.shape(v);
    shape.truncate(keep);
    shape.extend(vec![Dim::from(1); after]);
    cx.reshape(v, shape)
}

/// Linear and cubic; `x` is of the type that is computed in.
fn weighted(cx: &mut NodeCx<'_, '_>, x: Value, s: &Sampling, along: &Along) -> Res<Value> {
    let from = cx.shape(x)[along.axis].clone();
    let l = line(cx, s, &from, along)?;
    let shrinks = cx.range(&(along.q.clone() - along.p.clone())).1 > 0;
    let (y, outside) = if s.antialias && shrinks {
        windowed(cx, x, s, along, &l, &from)?
    } else {
        let i = counter(cx, &along.to, &from, None)?;
        let at = place(cx, i, s, &l, &from, cx.dtype(x))?;
        let y = match s.mode {
            Mode::Cubic => cubic(cx, x, s, along.axis, &at, &from)?,
            _ => linear(cx, x, along.axis, &at, &from)?,
        };
        (y, at.outside)
    };
    match outside {
        Some(o) => replaced(cx, y, s, along.axis, o),
        None => Ok(y),
    }
}

/// Where the elements `i` lie. Positions before the first element and after the last are those elements' for linear
/// mode (without a window) and for a region of interest; they are no less than -1 in any case.
pub(super) fn place(
    cx: &mut NodeCx<'_, '_>,
    i: Value,
    s: &Sampling,
    l: &Line,
    from: &Dim,
    float: DType,
) -> Res<Place> {
    let mut v = num(cx, i, l)?;
    let crop = s.coords == Coords::Crop;
    let outside = if crop { Some(beyond(cx, v, l, from)?) } else { None };
    let window = cx.rank(i) == 2;
    let cut = crop || (s.mode == Mode::Linear && !window);
    if cut {
        let (zero, end) = (cx.dim_value(Dim::from(0))?, end(cx, l, from)?);
        v = cx.op(Max {}, &[v, zero])?;
        v = cx.op(Min {}, &[v, end])?;
    }
    let (c, one) = (cx.dim_value(l.c.clone())?, cx.dim_value(Dim::from(1))?);
    let whole = if cut {
        cx.op(Div {}, &[v, c])?
    } else {
        // division truncates, so that it is done one higher
        let up = cx.op(Add {}, &[v, c])?;
        let up = cx.op(Div {}, &[up, c])?;
        cx.op(Sub {}, &[up, one])?
    };
    let below = cx.op(Mul {}, &[whole, c])?;
    let rest = cx.op(Sub {}, &[v, below])?;
    let (rest, c) = (cx.cast(rest, float)?, cx.cast(c, float)?);
    Ok(Place { whole, rest: cx.op(Div {}, &[rest, c])?, outside })
}
