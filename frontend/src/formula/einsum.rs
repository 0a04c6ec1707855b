//! Einstein sums: operands are joined from left to right, by a matrix product where a label ends and each side has others,
//! else by a product with broadcasting.

use super::{Build, R};
use std::collections::BTreeSet;
use tgc_ir::ops::{GatherElements, Iota, Matmul, Mul, ReduceSum, Transpose};
use tgc_ir::types::{DType, Dim, Pred};

/// A letter, or the axis of an ellipsis that is this number past `ELLIPSIS` from the right.
type Label = usize;

const ELLIPSIS: Label = 1 << 8;

/// A value with one distinct label an axis.
struct Term<V> {
    value: V,
    labels: Vec<Label>,
}

/// The axes of operands and of the result.
pub(crate) struct Equation {
    ins: Vec<Vec<Label>>,
    out: Vec<Label>,
}

/// The sum over the labels that the result lacks. One operand a term, as the equation was read for.
pub(crate) fn einsum<B: Build>(b: &mut B, eq: &Equation, ins: &[B::V]) -> R<B> {
    let mut terms = Vec::with_capacity(ins.len());
    for (value, labels) in ins.iter().zip(&eq.ins) {
        terms.push(diagonal(b, Term { value: *value, labels: labels.clone() })?);
    }
    spread(b, &mut terms)?;
    let mut acc: Option<Term<B::V>> = None;
    while !terms.is_empty() {
        let next = terms.remove(0);
        let needed: BTreeSet<Label> = terms.iter().flat_map(|t| &t.labels).chain(&eq.out).copied().collect();
        acc = Some(match acc {
            None => next,
            Some(a) => join(b, a, next, &needed)?,
        });
    }
    let Some(acc) = acc else { return b.num(DType::F32, 0.0) };
    let acc = summed(b, acc, &eq.out.iter().copied().collect())?;
    arranged(b, &acc, &eq.out)
}

/// Reads `ij,jk->ik` for operands of these ranks, at least one.
pub(crate) fn equation(text: &str, ranks: &[usize]) -> Result<Equation, String> {
    let (left, right) = text.split_once("->").map_or((text, None), |(l, r)| (l, Some(r)));
    let terms: Vec<&str> = left.split(',').collect();
    if terms.len() != ranks.len() {
        return Err(format!("it has {} terms for {} operands", terms.len(), ranks.len()));
    }
    let mut ins = Vec::with_capacity(terms.len());
    let mut widest = 0;
    for (term, rank) in terms.iter().zip(ranks) {
        let (letters, dots) = letters(term)?;
        let free = rank.checked_sub(letters.len()).filter(|f| dots.is_some() || *f == 0);
        let free = free.ok_or_else(|| format!("term `{term}` does not fit an operand of rank {rank}"))?;
        widest = widest.max(free);
        ins.push(filled(letters, dots, free));
    }
    let out = match right {
        Some(term) => {
            let (letters, dots) = letters(term)?;
            if dots.is_none() && widest > 0 {
                return Err("the result has no ellipsis, but operands have axes in theirs".into());
            }
            filled(letters, dots, widest)
        }
        None => {
            let all: Vec<Label> = ins.iter().flatten().copied().collect();
            let once = |l: &Label| *l < ELLIPSIS && all.iter().filter(|a| *a == l).count() == 1;
            let letters: BTreeSet<Label> = all.iter().copied().filter(once).collect();
            filled(letters.into_iter().collect(), Some(0), widest)
        }
    };
    for (i, l) in out.iter().enumerate() {
        if *l < ELLIPSIS && !ins.iter().any(|t| t.contains(l)) {
            return Err("the result has a label that no operand has".into());
        }
        if out[..i].contains(l) {
            return Err("the result has a label twice".into());
        }
    }
    Ok(Equation { ins, out })
}

/// The letters of a term, and where among them its ellipsis is.
fn letters(term: &str) -> Result<(Vec<Label>, Option<usize>), String> {
    let (before, after) = term.split_once("...").map_or((term, None), |(b, a)| (b, Some(a)));
    let both = before.bytes().chain(after.unwrap_or("").bytes());
    let labels = both
        .map(|c| c.is_ascii_alphabetic().then_some(Label::from(c)))
        .collect::<Option<Vec<Label>>>()
        .ok_or_else(|| format!("term `{term}` is not of letters and at most one ellipsis"))?;
    Ok((labels, after.map(|_| before.len())))
}

fn filled(mut letters: Vec<Label>, dots: Option<usize>, free: usize) -> Vec<Label> {
    if let Some(at) = dots {
        letters.splice(at..at, (0..free).rev().map(|i| ELLIPSIS + i));
    }
    letters
}

/// One axis a label: of several with the same only the diagonal stays.
fn diagonal<B: Build>(b: &mut B, mut t: Term<B::V>) -> Result<Term<B::V>, B::E> {
    while let Some((p, q)) = repeated(&t.labels) {
        let mut shape = b.shape(t.value);
        let why = "axes of an operand with the same label must have equal sizes";
        b.demand(Pred::Eq(shape[p].clone(), shape[q].clone()), why)?;
        shape[q] = Dim::from(1);
        let index = b.op(Iota { axis: p as i64, shape: shape.clone(), dtype: DType::I64 }, &[])?;
        let y = b.op(GatherElements { axis: q as i64 }, &[t.value, index])?;
        shape.remove(q);
        t.labels.remove(q);
        t.value = b.reshape(y, shape)?;
    }
    Ok(t)
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    let before = |q: usize| labels[..q].iter().position(|l| *l == labels[q]);
    (0..labels.len()).find_map(|q| before(q).map(|p| (p, q)))
}

/// Drops axes of size 1 whose label has another size elsewhere: broadcasting puts them back.
fn spread<B: Build>(b: &mut B, terms: &mut [Term<B::V>]) -> Result<(), B::E> {
    let mut wide = BTreeSet::new();
    for t in terms.iter() {
        let shape = b.shape(t.value);
        wide.extend(t.labels.iter().zip(&shape).filter(|(_, d)| !d.is(1)).map(|(l, _)| *l));
    }
    for t in terms {
        let shape = b.shape(t.value);
        let kept = |i: &usize| !(shape[*i].is(1) && wide.contains(&t.labels[*i]));
        let kept: Vec<usize> = (0..shape.len()).filter(kept).collect();
        t.value = b.reshape(t.value, kept.iter().map(|i| shape[*i].clone()).collect())?;
        t.labels = kept.iter().map(|i| t.labels[*i]).collect();
    }
    Ok(())
}

/// Sums over the labels that are not kept.
fn summed<B: Build>(b: &mut B, t: Term<B::V>, kept: &BTreeSet<Label>) -> Result<Term<B::V>, B::E> {
    let gone = |i: &usize| !kept.contains(&t.labels[*i]);
    let axes: Vec<i64> = (0..t.labels.len()).filter(gone).map(|i| i as i64).collect();
    if axes.is_empty() {
        return Ok(t);
    }
    let value = b.op(ReduceSum { axes, keepdims: false }, &[t.value])?;
    Ok(Term { value, labels: t.labels.into_iter().filter(|l| kept.contains(l)).collect() })
}

/// The axes in the order of `labels`, with size 1 where the term has none.
fn arranged<B: Build>(b: &mut B, t: &Term<B::V>, labels: &[Label]) -> R<B> {
    let order: Vec<usize> = labels.iter().filter_map(|l| t.labels.iter().position(|m| m == l)).collect();
    let mut value = t.value;
    if order.iter().enumerate().any(|(i, o)| i != *o) {
        value = b.op(Transpose { perm: order.iter().map(|o| *o as i64).collect() }, &[value])?;
    }
    let mut have = b.shape(value).into_iter();
    let size = |l: &Label| if t.labels.contains(l) { have.next().unwrap_or_default() } else { Dim::from(1) };
    let shape: Vec<Dim> = labels.iter().map(size).collect();
    b.reshape(value, shape)
}

/// The product of two terms, summed over the labels that are in no later term and not in the result.
fn join<B: Build>(
    cx: &mut B,
    a: Term<B::V>,
    b: Term<B::V>,
    needed: &BTreeSet<Label>,
) -> Result<Term<B::V>, B::E> {
    let with = |t: &Term<B::V>| needed.iter().chain(&t.labels).copied().collect::<BTreeSet<Label>>();
    let (keep_a, keep_b) = (with(&b), with(&a));
    let (a, b) = (summed(cx, a, &keep_a)?, summed(cx, b, &keep_b)?);
    let (shared, left): (Vec<Label>, Vec<Label>) = a.labels.iter().partition(|l| b.labels.contains(l));
    let right: Vec<Label> = b.labels.iter().copied().filter(|l| !shared.contains(l)).collect();
    let (batch, ended): (Vec<Label>, Vec<Label>) = shared.iter().partition(|l| needed.contains(l));
    if ended.is_empty() || (left.is_empty() && right.is_empty()) {
        let labels = [&a.labels[..], &right].concat();
        let (x, y) = (arranged(cx, &a, &labels)?, arranged(cx, &b, &labels)?);
        let value = cx.op(Mul {}, &[x, y])?;
        return summed(cx, Term { value, labels }, needed);
    }
    let size = |cx: &B, t: &Term<B::V>, l: Label| {
        t.labels
            .iter()
            .position(|m| *m == l)
            .and_then(|i| cx.shape(t.value).get(i).cloned())
            .unwrap_or_default()
    };
    for &l in &ended {
        let (p, q) = (size(cx, &a, l), size(cx, &b, l));
        cx.demand(Pred::Eq(p, q), "axes with the same label must have equal sizes")?;
    }
    let x = matrix(cx, &a, [&batch, &left, &ended])?;
    let y = matrix(cx, &b, [&batch, &ended, &right])?;
    let value = cx.op(Matmul {}, &[x, y])?;
    let mut shape = cx.shape(value)[..batch.len()].to_vec();
    shape.extend(left.iter().map(|l| size(cx, &a, *l)).chain(right.iter().map(|l| size(cx, &b, *l))));
    Ok(Term { value: cx.reshape(value, shape)?, labels: [batch, left, right].concat() })
}

/// The axes as a batch and the rows and columns of matrices.
fn matrix<B: Build>(b: &mut B, t: &Term<B::V>, parts: [&[Label]; 3]) -> R<B> {
    let value = arranged(b, t, &parts.concat())?;
    let shape = b.shape(value);
    let (batch, rest) = shape.split_at(parts[0].len());
    let (rows, cols) = rest.split_at(parts[1].len());
    let product = |d: &[Dim]| d.iter().cloned().product::<Dim>();
    b.reshape(value, [batch, &[product(rows), product(cols)]].concat())
}
