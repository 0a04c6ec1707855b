//! The Opaque class: the closed list of kernels that rearrange by value and do no arithmetic.
#![deny(clippy::wildcard_enum_match_arm)]

use super::classes::{Job, copy_row, fault};
use super::value::{Buf, Val, strides};
use crate::class::Opaque;
use crate::diag::Diag;
use std::cmp::Ordering;

/// Evaluates a kernel.
pub(crate) fn eval(c: Opaque, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    match c {
        Opaque::NonZero => non_zero(job),
        Opaque::TopK { axis, largest } => top_k(axis, largest, job),
    }
}

fn non_zero(job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let x = job.input(0)?;
    let (mut index, mut count) = (job.new_out(0)?, job.new_out(1)?);
    let n = x.numel();
    if index.shape != [x.shape.len(), n] || count.numel() != 1 {
        return Err(fault("the results of a search for non-zeros have other shapes"));
    }
    let steps = strides(&x.shape);
    let (mut found, mut unsure) = (0usize, false);
    if let (Buf::Int(ix), Buf::Int(c)) = (&mut index.buf, &mut count.buf) {
        for i in 0..n {
            let v = x.number(i);
            unsure |= x.error(i) > 0.0 && (x.error(i) >= v.abs() || v.is_nan());
            // a NaN is not zero
            if v != 0.0 {
                for (a, (&s, &d)) in steps.iter().zip(&x.shape).enumerate() {
                    ix[a * n + found] = (i / s % d) as i64;
                }
                found += 1;
            }
        }
        c[0] = found as i64;
    }
    if unsure {
        index.unbounded();
        count.unbounded();
    }
    Ok(vec![index, count])
}

/// Order of elements with NaN greatest.
fn order(x: &Val, a: usize, b: usize) -> Ordering {
    match &x.buf {
        Buf::Int(_) => x.scalar(a).as_int().cmp(&x.scalar(b).as_int()),
        Buf::F32(_) | Buf::F64(_) => {
            let (a, b) = (x.number(a), x.number(b));
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

fn top_k(axis: usize, largest: bool, job: &Job<'_>) -> Result<Vec<Val>, Diag> {
    let x = job.input(0)?;
    let (mut values, mut index) = (job.new_out(0)?, job.new_out(1)?);
    let Some(&d) = x.shape.get(axis) else { return Err(fault(format!("axis {axis} does not exist"))) };
    let mut want = x.shape.clone();
    let k = values.shape.get(axis).copied().unwrap_or(0);
    want[axis] = k;
    if values.shape != want || index.shape != want || values.dtype != x.dtype {
        return Err(fault("the results of a selection have other types"));
    }
    if k > d {
        let msg = format!("the {k} greatest of {d} elements on axis {axis} are wanted; allowed: at most {d}");
        return Err(Diag::error("E-RUN-017", msg).help("give a smaller k"));
    }
    let inner: usize = x.shape[axis + 1..].iter().product();
    let outer: usize = x.shape[..axis].iter().product();
    let mut list: Vec<usize> = Vec::with_capacity(d);
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let place = |j: usize| (o * d + j) * inner + i;
        list.clear();
        list.extend(0..d);
        // a stable sort keeps the lower index first among equals
        list.sort_by(|&a, &b| {
            let c = order(x, place(a), place(b));
            if largest { c.reverse() } else { c }
        });
        let worst = list.iter().map(|&j| x.error(place(j))).fold(0.0, f64::max);
        for (r, &j) in list.iter().take(k).enumerate() {
            let to = (o * k + r) * inner + i;
            copy_row(&mut values, (to, 1), x, (place(j), 1), 1);
            if let Buf::Int(ix) = &mut index.buf {
                ix[to] = j as i64;
            }
            if let Some(e) = values.err.as_mut().filter(|_| worst > 0.0) {
                // the element of rank r moves no further than the elements do
                e[to] = worst;
            }
            if let Some(e) = &mut index.err {
                e[to] = if near(x, &list, r, place) { f64::INFINITY } else { 0.0 };
            }
        }
    }
    Ok(vec![values, index])
}

/// True if the errors could change which element has rank `r`.
fn near(x: &Val, list: &[usize], r: usize, place: impl Fn(usize) -> usize) -> bool {
    let at = place(list[r]);
    list.iter().map(|&j| place(j)).filter(|&p| p != at).any(|p| {
        let reach = x.error(at) + x.error(p);
        reach > 0.0 && ((x.number(at) - x.number(p)).abs() <= reach || reach == f64::INFINITY)
    })
}
