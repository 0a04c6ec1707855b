//! Attention.

use super::{At, any_failed, choose, refuse};
use crate::nn::dim::Dim;
use crate::nn::exec::apply;
use crate::nn::ops::shape::{expanded, reshaped};
use crate::nn::tensor::Tensor;
use std::panic::Location;
use tgc_ir::ops;
use tgc_ir::types::DType;

/// Arguments of [`attention`], PyTorch's defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attention<'a> {
    /// Bool: true where a position takes part. Another one is added to the scores.
    pub mask: Option<&'a Tensor>,
    /// Position `j` of the keys takes part for positions `i >= j` of the queries, both counted from 0.
    pub is_causal: bool,
    /// Factor of the scores; `1 / sqrt(d)` if not given.
    pub scale: Option<f64>,
    /// Each head of keys and values (axis -3) serves several heads of queries.
    pub enable_gqa: bool,
}

/// `softmax(q k^T * scale + mask) v` over the last two axes; `scale` is `1 / sqrt(d)` if not given. A bool mask is true
/// where a position takes part, another one is added.
#[track_caller]
pub fn scaled_dot_product_attention(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    is_causal: bool,
    scale: Option<f64>,
) -> Tensor {
    attention(q, k, v, &Attention { mask, is_causal, scale, enable_gqa: false })
}

/// [`scaled_dot_product_attention`] with all its arguments. A query that no key takes part for gives zeros.
#[track_caller]
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, args: &Attention<'_>) -> Tensor {
    let at = Location::caller();
    if any_failed(&[q, k, v]) {
        return Tensor::FAILED;
    }
    if args.is_causal && args.mask.is_some() {
        let m = "attention gets a mask and is_causal".to_string();
        return refuse("E-NN-083", m, "give one of them: a causal mask may be joined with &", at);
    }
    let Some(scale) = scale(q, args.scale, at) else { return Tensor::FAILED };
    let (k, v) = match args.enable_gqa {
        true => (shared_heads(q, k, at), shared_heads(q, v, at)),
        false => (k.clone(), v.clone()),
    };
    let scores = q.matmul(&k.transpose(-1, -2)) * scale;
    if args.is_causal {
        return causal(&scores, at).softmax(-1).matmul(&v);
    }
    let Some(mask) = args.mask else { return scores.softmax(-1).matmul(&v) };
    let (scores, some) = masked(&scores, mask, at);
    let y = scores.softmax(-1).matmul(&v);
    choose(&some, &y, 0.0, &y)
}

#[track_caller]
fn scale(q: &Tensor, given: Option<f64>, at: At) -> Option<f64> {
    match (given, q.size(-1).as_known()) {
        (Some(s), _) => Some(s),
        (None, Some(n)) if n > 0 => Some(1.0 / (n as f64).sqrt()),
        _ => {
            let m = format!("the scale of attention follows from the last dim of {q:#}, which is not known");
            refuse("E-NN-082", m, "give the scale", at);
            None
        }
    }
}

/// Heads of keys or values, each as often as queries share it.
#[track_caller]
fn shared_heads(q: &Tensor, t: &Tensor, at: At) -> Tensor {
    let (qs, ts) = (q.shape(), t.shape());
    let heads = |s: &[Dim]| s.len().checked_sub(3).and_then(|i| s[i].as_known());
    let (Some(many), Some(few)) = (heads(&qs), heads(&ts)) else {
        let m = format!("enable_gqa of heads that are not known: {q:#} and {t:#}");
        return refuse("E-NN-095", m, "give [.., heads, length, width] with known heads", at);
    };
    if few == 0 || many % few != 0 {
        let m = format!("enable_gqa of {many} heads of queries and {few} of keys or values");
        return refuse("E-NN-095", m, "the heads of queries must be a multiple", at);
    }
    let i = ts.len() - 3;
    let (mut split, mut wide, mut joined) = (ts.clone(), ts.clone(), ts.clone());
    split.insert(i + 1, Dim::from(1));
    wide.insert(i + 1, Dim::from(many / few));
    joined[i] = Dim::from(many);
    reshaped(&expanded(&reshaped(t, &split, at), &wide, at), &joined, at)
}

/// Minus infinity where a key is later than the query.
#[track_caller]
pub(crate) fn causal(scores: &Tensor, at: At) -> Tensor {
    let (rows, columns) = (Tensor::arange(scores.size(-2)), Tensor::arange(scores.size(-1)));
    hidden(scores, &columns.unsqueeze(0).le(rows.unsqueeze(1)), at)
}

/// Minus infinity where `keep` is false.
#[track_caller]
pub(crate) fn hidden(scores: &Tensor, keep: &Tensor, at: At) -> Tensor {
    if any_failed(&[scores, keep]) {
        return Tensor::FAILED;
    }
    let low = Tensor::number(scores.dtype(), f64::NEG_INFINITY);
    apply(ops::Select {}, &[keep, scores, &low], at)
}

/// The scores with the mask, and where a query has any key at all. One without keeps them all, so that no NaN arises.
#[track_caller]
fn masked(scores: &Tensor, mask: &Tensor, at: At) -> (Tensor, Tensor) {
    if any_failed(&[scores, mask]) || mask.dim() == 0 {
        let m = format!("attention with the mask {mask:#}");
        let failed = refuse("E-NN-083", m, "give a mask that broadcasts to [.., queries, keys]", at);
        return (failed.clone(), failed);
    }
    if mask.dtype() == DType::Bool {
        let some = mask.to_dtype(DType::I32).amax(&[-1], true).gt(0);
        let none = apply(ops::Not {}, &[&some], at);
        let keep = apply(ops::Or {}, &[mask, &none], at);
        return (hidden(scores, &keep, at), some);
    }
    let some = mask.amax(&[-1], true).gt(f64::NEG_INFINITY);
    let added = choose(&some, mask, 0.0, mask);
    (scores + added, some)
}
