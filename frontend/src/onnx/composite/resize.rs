//! `Resize` and `Upsample`: what the operands and attributes ask for, as exact sizes and scales, one axis at a time. Scales
//! and the region of interest are read as the fractions they stand for, so that no size or position depends on rounding.

use super::ratio::{Ratio, gcd};
use super::resample::{Along, Coords, Mode, Nearest, Sampling, resample};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use tgc_ir::graph::Value;
use tgc_ir::types::{Dim, KnownElem, Pred};

pub(crate) const ROWS: &[Row] = &[("Resize", 10, ANY, resize), ("Upsample", 7, 9, upsample)];

fn resize(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    if cx.opset == 10 {
        return by_scales_only(cx);
    }
    let sampling = sampling(cx)?;
    let x = cx.x(0)?;
    let rank = cx.rank(x);
    let axes = match cx.attrs.ints("axes")? {
        Some(list) if cx.opset >= 18 => {
            cx.axes(&list, rank)?;
            list.iter().map(|&a| cx.axis(a, rank)).collect::<Res<Vec<usize>>>()?
        }
        _ => (0..rank).collect(),
    };
    let roi = match sampling.coords {
        Coords::Crop => Some(region(cx, axes.len())?),
        _ => None,
    };
    let policy = cx.attrs.string("keep_aspect_ratio_policy", "stretch")?;
    let given = |cx: &NodeCx<'_, '_>, i| cx.opt(i).is_some_and(|v| !cx.shape(v).iter().any(|d| d.is(0)));
    let along = match (given(cx, 2), given(cx, 3)) {
        (true, false) => {
            let scales = fractions(cx, 2, "the scales")?;
            if roi.iter().flatten().any(|[s, e]| Ratio::new(e.num * s.den - s.num * e.den, e.den * s.den) != ONE) {
                let m = "scales with a region of interest that is not as long as the axis are not supported, as the \
                         specification and its reference implementation disagree on the size of the result";
                return Err(cx.fail("E-ONNX-020", m).help("give the sizes instead of the scales").into());
            }
            by_scales(cx, x, &axes, &scales)?
        }
        (false, true) => by_sizes(cx, x, &axes, &policy)?,
        _ => {
            let m = "either scales (operand 2) or sizes (operand 3) must be given";
            return Err(cx.fail("E-ONNX-020", m).into());
        }
    };
    let along = along.into_iter().enumerate().map(|(i, a)| Along { roi: roi.as_ref().map(|r| r[i]), ..a });
    Ok(vec![resample(cx, x, &sampling, along.collect())?])
}

fn upsample(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    by_scales_only(cx)
}

const ONE: Ratio = Ratio { num: 1, den: 1 };

/// Operators from before there was a choice of coordinates: position `i / scale`, and the nearest element is the one before
/// it when the axis grows, the one after it when it shrinks.
fn by_scales_only(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let mode = mode(cx)?;
    let x = cx.x(0)?;
    let scales = if cx.opset < 9 {
        let Some(list) = cx.attrs.floats("scales")? else {
            return Err(cx.fail("E-ONNX-007", "attribute `scales` is missing").into());
        };
        list.into_iter().map(|v| fraction(cx, v, "the scales")).collect::<Res<Vec<Ratio>>>()?
    } else {
        fractions(cx, 1, "the scales")?
    };
    if cx.name() == "Upsample" && scales.iter().any(|s| s.num < s.den) {
        return Err(cx.fail("E-ONNX-022", "a scale is below 1; `Upsample` allows 1 and more").into());
    }
    let axes: Vec<usize> = (0..cx.rank(x)).collect();
    let along = by_scales(cx, x, &axes, &scales)?;
    let s = Sampling { mode, coords: Coords::Asymmetric, nearest: Nearest::Outward, ..Sampling::default() };
    Ok(vec![resample(cx, x, &s, along)?])
}

fn mode(cx: &NodeCx<'_, '_>) -> Res<Mode> {
    let all = [("nearest", Mode::Nearest), ("linear", Mode::Linear), ("cubic", Mode::Cubic)];
    let known = if cx.opset < 11 { &all[..2] } else { &all[..] };
    choice(cx, "mode", "nearest", known)
}

/// The attribute's value, which must be one of those listed.
fn choice<T: Copy>(cx: &NodeCx<'_, '_>, name: &str, default: &str, known: &[(&str, T)]) -> Res<T> {
    let found = cx.attrs.string(name, default)?;
    if let Some(k) = known.iter().find(|k| k.0 == found) {
        return Ok(k.1);
    }
    let list: Vec<&str> = known.iter().map(|k| k.0).collect();
    let m = format!("{name} = `{found}` is not known (allowed: {})", list.join(", "));
    Err(cx.fail("E-ONNX-007", m).into())
}

fn sampling(cx: &NodeCx<'_, '_>) -> Res<Sampling> {
    let coords = [
        ("half_pixel", Coords::HalfPixel),
        ("pytorch_half_pixel", Coords::HalfPixelOrZero),
        ("align_corners", Coords::AlignCorners),
        ("asymmetric", Coords::Asymmetric),
        ("tf_crop_and_resize", Coords::Crop),
        ("tf_half_pixel_for_nn", Coords::Centre),
        ("half_pixel_symmetric", Coords::HalfPixelSymmetric),
    ];
    // the last but one was dropped in opset 13, the last came with opset 19
    let known: Vec<_> = match cx.opset {
        ..13 => coords[..6].to_vec(),
        13..19 => coords[..5].to_vec(),
        _ => coords.iter().copied().filter(|c| c.0 != "tf_half_pixel_for_nn").collect(),
    };
    let nearest = [
        ("round_prefer_floor", Nearest::PreferFloor),
        ("round_prefer_ceil", Nearest::PreferCeil),
        ("floor", Nearest::Floor),
        ("ceil", Nearest::Ceil),
    ];
    let antialias = cx.attrs.flag("antialias", false)?;
    Ok(Sampling {
        mode: mode(cx)?,
        coords: choice(cx, "coordinate_transformation_mode", "half_pixel", &known)?,
        nearest: choice(cx, "nearest_mode", "round_prefer_floor", &nearest)?,
        antialias: antialias && cx.opset >= 18,
        exclude_outside: cx.attrs.flag("exclude_outside", false)?,
        cubic: cx.attrs.float("cubic_coeff_a", -0.75)?,
        outside: cx.attrs.float("extrapolation_value", 0.0)?,
    })
}

fn fraction(cx: &NodeCx<'_, '_>, v: f32, what: &str) -> Res<Ratio> {
    let bad = || cx.fail("E-ONNX-022", format!("{what}: {v} is no scale or position that makes sense"));
    Ok(Ratio::of(v).ok_or_else(bad)?)
}

/// The elements of operand `i`, which must be known.
fn fractions(cx: &NodeCx<'_, '_>, i: usize, what: &str) -> Res<Vec<Ratio>> {
    let v = cx.x(i)?;
    let fact = cx.fact(v)?;
    if fact.ty.rank() != 1 {
        return Err(cx.fail("E-ONNX-022", format!("{what} must have rank 1, found {}", fact.ty)).into());
    }
    let number = |e: &KnownElem| match e {
        KnownElem::Scalar(s) => Some(s.as_f64() as f32),
        _ => None,
    };
    let known: Option<Vec<f32>> = fact.known.as_ref().and_then(|k| k.0.iter().map(number).collect());
    let Some(known) = known else {
        let name = cx.node.input.get(i).map_or("", |n| n.as_str());
        let m = format!("{what} (operand {i}, `{name}`) must be constants");
        let help = "export the model with them as constants, or give the sizes, computed from shapes, instead of scales";
        return Err(cx.fail("E-ONNX-016", m).help(help).into());
    };
    known.into_iter().map(|v| fraction(cx, v, what)).collect()
}

/// Start and end of each axis, 0 and 1 being its ends.
fn region(cx: &NodeCx<'_, '_>, axes: usize) -> Res<Vec<[Ratio; 2]>> {
    let r = fractions(cx, 1, "the region of interest")?;
    if r.len() != 2 * axes {
        let m = format!("the region of interest has {} elements, {} are wanted (two an axis)", r.len(), 2 * axes);
        return Err(cx.fail("E-ONNX-022", m).into());
    }
    Ok((0..axes).map(|i| [r[i], r[i + axes]]).collect())
}

fn same_count(cx: &NodeCx<'_, '_>, found: usize, axes: usize, what: &str) -> Res<()> {
    if found == axes {
        return Ok(());
    }
    Err(cx.fail("E-ONNX-022", format!("{found} {what} given for {axes} axes")).into())
}

fn by_scales(cx: &NodeCx<'_, '_>, x: Value, axes: &[usize], scales: &[Ratio]) -> Res<Vec<Along>> {
    same_count(cx, scales.len(), axes.len(), "scales")?;
    let shape = cx.shape(x);
    let one = |(&axis, s): (&usize, &Ratio)| {
        if s.num <= 0 {
            return Err(cx.fail("E-ONNX-022", "a scale is not greater than 0").into());
        }
        let (p, q) = (Dim::from(s.num), Dim::from(s.den));
        let to = cx.simplify((shape[axis].clone() * p.clone()).floordiv(&q));
        Ok(Along { axis, to, p, q, roi: None })
    };
    axes.iter().zip(scales).map(one).collect()
}

fn by_sizes(cx: &mut NodeCx<'_, '_>, x: Value, axes: &[usize], policy: &str) -> Res<Vec<Along>> {
    let sizes = cx.sizes(3, "the sizes")?;
    same_count(cx, sizes.len(), axes.len(), "sizes")?;
    let shape = cx.shape(x);
    for (s, &a) in sizes.iter().zip(axes) {
        cx.require(Pred::Le(Dim::from(0), s.clone()), "a size must not be negative")?;
        if shape[a].is(0) && !s.is(0) {
            return Err(cx.fail("E-ONNX-022", "an axis without elements cannot be resized").into());
        }
    }
    let from: Vec<Dim> = axes.iter().map(|&a| shape[a].clone()).collect();
    let smallest = match policy {
        "not_larger" if cx.opset >= 18 => true,
        "not_smaller" if cx.opset >= 18 => false,
        "stretch" => {
            let one = |((&axis, to), from): ((&usize, Dim), &Dim)| {
                let (p, q) = lowest(&to, from);
                Along { axis, to, p, q, roi: None }
            };
            return Ok(axes.iter().zip(sizes).zip(&from).map(one).collect());
        }
        other => {
            let m = format!(
                "keep_aspect_ratio_policy = `{other}` is not known (allowed: stretch; from opset 18 on not_larger, \
                 not_smaller)"
            );
            return Err(cx.fail("E-ONNX-007", m).into());
        }
    };
    keep_aspect(cx, axes, &sizes, &from, smallest)
}

/// One scale for all axes: the smallest or greatest of `size / from`. Each result is that scale times the axis, rounded; as
/// rounding keeps the order, it is also the smallest or greatest of what each scale alone would give.
fn keep_aspect(
    cx: &mut NodeCx<'_, '_>,
    axes: &[usize],
    sizes: &[Dim],
    from: &[Dim],
    smallest: bool,
) -> Res<Vec<Along>> {
    for f in from {
        cx.require(Pred::Le(Dim::from(1), f.clone()), "an axis without elements has no aspect ratio")?;
    }
    let mut scale: Option<(Dim, Dim)> = None;
    for (s, f) in sizes.iter().zip(from) {
        scale = Some(match scale {
            None => lowest(s, f),
            Some(best) => better(cx, best, lowest(s, f), smallest),
        });
    }
    let Some((p, q)) = scale else { return Ok(Vec::new()) };
    let mut out = Vec::with_capacity(axes.len());
    for (d, &axis) in axes.iter().enumerate() {
        let two = Dim::from(2);
        let mut to = sizes[d].clone();
        for (_, (s, f)) in sizes.iter().zip(from).enumerate().filter(|(i, _)| *i != d) {
            let twice = two.clone() * s.clone() * from[d].clone() + f.clone();
            let scaled = if *f == from[d] { s.clone() } else { twice.floordiv(&(two.clone() * f.clone())) };
            to = cx.simplify(if smallest { to.dmin(&scaled) } else { to.dmax(&scaled) });
        }
        out.push(Along { axis, to, p: p.clone(), q: q.clone(), roi: None });
    }
    Ok(out)
}

/// The smaller or greater of two fractions, as sizes: `first` is 1 or 0.
fn better(cx: &NodeCx<'_, '_>, a: (Dim, Dim), b: (Dim, Dim), smallest: bool) -> (Dim, Dim) {
    let over = b.0.clone() * a.1.clone() - a.0.clone() * b.1.clone();
    let over = if smallest { over } else { -over };
    let first = cx.simplify((over + Dim::from(1)).dmax(&Dim::from(0)).dmin(&Dim::from(1)));
    let pick = |a: Dim, b: Dim| cx.simplify(b.clone() + first.clone() * (a - b));
    (pick(a.0, b.0), pick(a.1, b.1))
}

/// `p / q` with what both sides visibly have in common taken out.
fn lowest(p: &Dim, q: &Dim) -> (Dim, Dim) {
    let one = Dim::from(1);
    if p == q {
        return (one.clone(), one);
    }
    if let (Some(a), Some(b)) = (p.as_const(), q.as_const()) {
        let g = Dim::from(gcd(a.into(), b.into()).max(1));
        return (p.div_exact(&g).unwrap_or_else(|| p.clone()), q.div_exact(&g).unwrap_or_else(|| q.clone()));
    }
    match (p.div_exact(q), q.div_exact(p)) {
        (Some(k), _) => (k, one),
        (_, Some(k)) => (one, k),
        _ => (p.clone(), q.clone()),
    }
}
