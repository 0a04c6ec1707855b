//! Operations traced once with symbolic dims, and run at several sizes.

use tgc_frontend::nn::*;

type F = fn(&Tensor) -> Tensor;

/// Runs each function traced over x [n, m], with n from 2 and m from 3, and compares with the eager result.
fn same(all: &[(&str, F)]) {
    let mut bad = Vec::new();
    for (name, f) in all {
        let x = spec("x", F32, (dim("n").range(2..=40), dim("m").range(3..=50)));
        let p = match trace(&(), [x], |_, [x]| f(&x)) {
            Ok(p) => p,
            Err(e) => {
                bad.push(format!("{name}: {e}"));
                continue;
            }
        };
        for (n, m) in [(2, 3), (5, 4), (6, 9)] {
            manual_seed(n as u64);
            let x = Tensor::randn((n, m));
            let want = f(&x);
            match p.run("forward", &[x]) {
                Ok(got) if format!("{:#}", got[0]) == format!("{want:#}") => {
                    let near = got[0].to_vec().iter().zip(want.to_vec()).all(|(a, b)| {
                        *a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 + 1e-5 * b.abs()
                    });
                    if !near {
                        bad.push(format!("{name} at ({n}, {m}) differs"));
                    }
                }
                Ok(got) => bad.push(format!("{name} at ({n}, {m}): {:#}, not {want:#}", got[0])),
                Err(e) => bad.push(format!("{name} at ({n}, {m}): {e}")),
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn elements_and_reductions() {
    same(&[
        ("atan2", |x| x.atan2(x.t().t().add(1.0))),
        ("floor_divide", |x| x.floor_divide(0.3)),
        ("softplus", |x| x.softplus(1.0, 20.0).mish()),
        ("where", |x| x.gt(0).where_(x, 0.5)),
        ("erfinv", |x| x.tanh().erfinv()),
        ("var", |x| x.var(&[1], 1, true)),
        ("std", |x| x.std(&[], 1, false)),
        ("logsumexp", |x| x.logsumexp(&[0], false)),
        ("norm", |x| x.norm(3.0, &[1], false)),
        ("all", |x| x.gt(-9.0).all(&[1], false)),
        ("argmax", |x| x.argmax(None, false)),
        ("cumprod", |x| x.cumprod(1)),
        ("cummax", |x| x.cummax(1).1),
        ("logcumsumexp", |x| x.logcumsumexp(0)),
        ("sort", |x| x.sort(1, true).0),
        ("topk", |x| x.topk(2, 0, true).1),
        ("median", |x| x.median_dim(1, false).0),
        ("median.all", |x| x.median()),
        ("kthvalue", |x| x.kthvalue(2, 1, true).0),
        ("quantile", |x| x.quantile(0.3, 1, false)),
        ("cov", |x| x.cov(1)),
        ("block_diag", |x| Tensor::block_diag(&[x, &x.t()])),
        ("isin", |x| x.round().isin(&Tensor::from([0.0f32, 1.0]))),
        ("diff", |x| x.diff(2, 1)),
        ("searchsorted", |x| x.i(0).sort(0, false).0.searchsorted(x, false)),
    ]);
}

#[test]
fn shapes() {
    same(&[
        ("flatten", |x| x.unsqueeze(1).flatten(0, -1)),
        ("unflatten", |x| x.repeat((1, 2)).unflatten(1, (2, -1))),
        ("movedim", |x| x.unsqueeze(0).movedim(&[0, 1], &[2, 0])),
        ("squeeze", |x| x.unsqueeze(1).squeeze(&[])),
        ("repeat", |x| x.repeat((2, 1, 3))),
        ("tile by a dim", |x| x.tile((1, x.size(0)))),
        ("repeat_interleave", |x| x.repeat_interleave(3, 0)),
        ("tensor_split", |x| x.tensor_split(3, 1).remove(1)),
        ("chunks", |x| x.repeat((1, 2)).chunks(2, 1).remove(1)),
        ("split_with_sizes", |x| x.split_with_sizes((1, x.size(1) - 1), 1).remove(1)),
        ("stack", |x| Tensor::stack(&[x, &x.neg()], 1)),
        ("flip", |x| x.flip(&[0, 1])),
        ("roll", |x| x.roll(&[7, -1], &[0, 1])),
        ("rot90", |x| x.rot90(1, [0, 1])),
        ("tril", |x| x.tril(1)),
        ("diagonal", |x| x.diagonal(1, 0, 1)),
        ("diag_embed", |x| x.diag_embed(-2)),
        ("pad", |x| x.pad((1, 2, 3, 0), PadMode::Constant(1.5))),
        ("pad.reflect", |x| x.pad((2, 1, 1, 0), PadMode::Reflect)),
        ("pad.replicate", |x| x.pad((5, 1), PadMode::Replicate)),
        ("pad.circular", |x| x.pad((2, 3), PadMode::Circular)),
        ("unfold", |x| x.unfold(1, 2, 2)),
        ("meshgrid", |x| Tensor::meshgrid(&[&x.i(0), &x.i((.., 0))]).remove(1)),
        ("eye", |x| Tensor::eye(x.size(1), F32)),
        ("arange_step", |x| Tensor::arange_step(1, x.size(1), 2)),
        ("full_like", |x| x.full_like(2.0).new_ones(x.size(0))),
        ("broadcast_tensors", |x| {
            Tensor::broadcast_tensors(&[&x.i((0, NewAxis)), &x.unsqueeze(0)]).remove(0)
        }),
    ]);
}

#[test]
fn indices() {
    same(&[
        ("number", |x| x.i((-1, 1))),
        ("range", |x| x.i((1.., ..-1))),
        ("ends", |x| x.i((.., ..2))),
        ("dims", |x| x.i((x.size(0) - 1, 1..3))),
        ("half", |x| x.i((.., ..x.size(1) / 2))),
        ("cut", |x| x.i((.., -5..))),
        ("past", |x| x.i(..30)),
        ("step", |x| x.i((.., Index::step(.., 2)))),
        ("tensors", |x| x.i((Tensor::from([0i64, -1]), Tensor::from([[1i64], [2]])))),
        ("mask", |x| x.i(x.gt(0))),
        ("mask, counted on", |x| x.i(x.gt(0)).mul(2.0).cumsum(0)),
        ("rows", |x| x.i(x.sum(&[1], false).gt(0.0)).sum(&[0], false)),
        ("nonzero", |x| x.gt(0).nonzero()),
        ("masked_select", |x| x.masked_select(&x.i(0).lt(0.5))),
        ("masked_scatter", |x| x.masked_scatter(&x.gt(0), &x.neg())),
        ("gather", |x| x.gather(1, &x.argmax(1, true))),
        ("scatter", |x| x.scatter(1, &x.argmax(1, true), 9.0)),
        ("scatter_reduce", |x| x.scatter_reduce(0, &x.gt(0).long(), x, "mean", false)),
        ("index_add", |x| x.index_add(0, &Tensor::from([1i64, 1]), &x.i(..2), 2.0)),
        ("take_along_dim", |x| x.take_along_dim(&x.argsort(1, false), 1)),
        ("index_put", |x| x.index_put((.., 1..), x.i((.., ..-1)), false)),
        ("index_put, mask", |x| x.index_put(x.lt(0), 0.0, false)),
        ("update_slice", |x| x.update_slice(&x.i((.., ..1)), 1, x.size(1) - 1)),
        ("select_scatter", |x| x.select_scatter(&x.i((.., 0)), 1, -1)),
    ]);
}

#[test]
fn products() {
    same(&[
        ("mm", |x| x.mm(&x.t())),
        ("inner", |x| x.inner(x)),
        ("outer", |x| x.i(0).outer(&x.i((.., 0)))),
        ("addmm", |x| x.i((.., ..1)).addmm(x, &x.t(), 0.5, 2.0)),
        ("einsum", |x| Tensor::einsum("ij,kj->ik", &[x, x])),
        ("einsum.batch", |x| Tensor::einsum("bi,bj->bij", &[x, x])),
        ("tensordot", |x| x.tensordot(x, &[1], &[1])),
        ("kron", |x| x.kron(&Tensor::from([[1.0f32, 2.0]]))),
        ("trace", |x| x.mm(&x.t()).trace()),
        ("cdist", |x| x.cdist(x, 2.0)),
        ("matrix_power", |x| x.mm(&x.t()).div(50.0).matrix_power(3)),
    ]);
}

#[test]
fn in_place_methods_in_a_trace() {
    same(&[("chain", |x| {
        let mut y = x.clone();
        y.add_(1.0);
        y.masked_fill_(&x.lt(0), 0.0);
        y.index_put_((0, ..), 3.0, false);
        y.mul_(x);
        y
    })]);
}
