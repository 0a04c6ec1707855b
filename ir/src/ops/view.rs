//! Shared by view ops: index maps between shapes.

use super::Lowering;
use crate::class::{Class, Piece, View};
use crate::types::{Dim, Type};

/// A view of one whole-output piece.
pub(crate) fn whole(out: &Type, operand: usize, index: Vec<Dim>) -> Lowering {
    let lo = vec![Dim::from(0); out.rank()];
    Lowering::Class(Class::View(View {
        pieces: vec![Piece { lo, hi: out.shape.clone(), operand, index }],
        fill: None,
    }))
}

/// The labels of `rank` axes.
pub(crate) fn labels(rank: usize) -> Vec<Dim> {
    (0..rank).map(|i| Dim::label(i as u32)).collect()
}

/// Index on each axis of shape `from`, over the labels of shape `to` with as many elements, in row-major order. Axes are
/// matched in groups of equal products, so that only axes that are really split need a division.
pub(crate) fn reshape_index(from: &[Dim], to: &[Dim]) -> Vec<Dim> {
    let mut index = vec![Dim::from(0); from.len()];
    let (mut i, mut o) = (0, 0);
    while i < from.len() || o < to.len() {
        let (i0, o0) = (i, o);
        let (mut pi, mut po) = (Dim::from(1), Dim::from(1));
        let next = |d: &[Dim], at: &mut usize, p: &mut Dim| {
            if let Some(x) = d.get(*at) {
                *p = p.clone() * x.clone();
                *at += 1;
            }
        };
        next(from, &mut i, &mut pi);
        next(to, &mut o, &mut po);
        while pi != po && (i < from.len() || o < to.len()) {
            let take_out = match (pi.as_const(), po.as_const()) {
                (Some(a), Some(b)) => b < a,
                _ => po.div_exact(&pi).is_none() || pi == Dim::from(1) && i >= from.len(),
            };
            if (take_out && o < to.len()) || i >= from.len() {
                next(to, &mut o, &mut po);
            } else {
                next(from, &mut i, &mut pi);
            }
        }
        group(&mut index[i0..i], &from[i0..i], o0, &to[o0..o]);
    }
    index
}

fn group(index: &mut [Dim], from: &[Dim], o0: usize, to: &[Dim]) {
    let mut lin = Dim::from(0);
    for (k, d) in to.iter().enumerate() {
        let label = if d.is(1) { Dim::from(0) } else { Dim::label((o0 + k) as u32) };
        lin = lin * d.clone() + label;
    }
    let real: Vec<usize> = (0..from.len()).filter(|&k| !from[k].is(1)).collect();
    let mut stride = Dim::from(1);
    for (n, &k) in real.iter().enumerate().rev() {
        let q = lin.floordiv(&stride);
        index[k] = if n == 0 { q } else { q.rem(&from[k]) };
        stride = stride * from[k].clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(from: &[Dim], to: &[Dim]) -> Vec<String> {
        reshape_index(from, to).iter().map(Dim::to_string).collect()
    }

    #[test]
    fn groups_keep_symbolic_axes_whole() {
        let (n, s) = (Dim::sym("n"), Dim::sym("s"));
        let c = |v: i64| Dim::from(v);
        assert_eq!(
            show(&[n.clone(), s.clone(), c(8)], &[n.clone() * s.clone(), c(8)]),
            ["floordiv(#0, s)", "-s*floordiv(#0, s) + #0", "#1"]
        );
        assert_eq!(show(&[n.clone() * s.clone(), c(8)], &[n.clone(), s.clone(), c(8)]), ["s*#0 + #1", "#2"]);
        assert_eq!(show(&[n.clone(), c(4)], &[n.clone(), c(1), c(2), c(2)]), ["#0", "2*#2 + #3"]);
        assert_eq!(show(&[c(2), c(3)], &[c(3), c(2)]).len(), 2);
    }
}
