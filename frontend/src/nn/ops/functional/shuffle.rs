//! Channels as space, and the reverse.

use super::{any_failed, refuse};
use crate::nn::dim::Dim;
use crate::nn::ops::shape::{permuted, reshaped};
use crate::nn::tensor::Tensor;
use std::panic::Location;

/// Divides, where that is known to leave no rest.
fn divided(d: Dim, by: i64) -> Option<Dim> {
    (by >= 1 && d.as_known().is_none_or(|n| n % by == 0)).then(|| d / by)
}

/// [.., c * r * r, h, w] as [.., c, h * r, w * r].
#[track_caller]
pub fn pixel_shuffle(x: &Tensor, r: i64) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) {
        return Tensor::FAILED;
    }
    let (n, s) = (x.dim().saturating_sub(3), x.shape());
    let Some(c) = s.get(n).filter(|_| s.len() >= 3 && r >= 1).and_then(|c| divided(*c, r * r)) else {
        let m = format!("pixel_shuffle by {r} of {x:#}");
        return refuse("E-NN-092", m, "give [.., channels * r * r, h, w]", at);
    };
    let (h, w, r) = (s[n + 1], s[n + 2], Dim::from(r));
    let split = [&s[..n], &[c, r, r, h, w]].concat();
    let perm: Vec<usize> = (0..n).chain([n, n + 3, n + 1, n + 4, n + 2]).collect();
    let y = permuted(&reshaped(x, &split, at), &perm, at);
    reshaped(&y, &[&s[..n], &[c, h * r, w * r]].concat(), at)
}

/// [.., c, h * r, w * r] as [.., c * r * r, h, w].
#[track_caller]
pub fn pixel_unshuffle(x: &Tensor, r: i64) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) {
        return Tensor::FAILED;
    }
    let (n, s) = (x.dim().saturating_sub(3), x.shape());
    let parts = (s.len() >= 3).then(|| divided(s[n + 1], r).zip(divided(s[n + 2], r))).flatten();
    let Some((h, w)) = parts else {
        let m = format!("pixel_unshuffle by {r} of {x:#}");
        return refuse("E-NN-092", m, "give [.., channels, h * r, w * r]", at);
    };
    let (c, r) = (s[n], Dim::from(r));
    let split = [&s[..n], &[c, h, r, w, r]].concat();
    let perm: Vec<usize> = (0..n).chain([n, n + 2, n + 4, n + 1, n + 3]).collect();
    let y = permuted(&reshaped(x, &split, at), &perm, at);
    reshaped(&y, &[&s[..n], &[c * r * r, h, w]].concat(), at)
}

/// Channels of x [n, c, ..] in the order that takes one of each group in turn.
#[track_caller]
pub fn channel_shuffle(x: &Tensor, groups: i64) -> Tensor {
    let at = Location::caller();
    if any_failed(&[x]) {
        return Tensor::FAILED;
    }
    let s = x.shape();
    let Some(each) = s.get(1).and_then(|c| divided(*c, groups)) else {
        let m = format!("channel_shuffle of {x:#} by {groups} groups");
        return refuse("E-NN-092", m, "the groups must divide the channels, the second axis", at);
    };
    let split = [&[s[0], Dim::from(groups), each], &s[2..]].concat();
    let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..split.len()).collect();
    reshaped(&permuted(&reshaped(x, &split, at), &perm, at), &s, at)
}
