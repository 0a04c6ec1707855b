//! Shapes, indices, writing by indices, products, factories and casts.

use super::{Case, SUMS, run};
use tgc_frontend::nn::*;

fn views() -> Vec<Case> {
    vec![
        Case::one("squeeze", 0.0, |x| x[0].squeeze(&[])),
        Case::one("squeeze.axes", 0.0, |x| x[0].squeeze(&[0, 1])),
        Case::one("unflatten", 0.0, |x| x[0].unflatten(1, (2, -1))),
        Case::one("flatten", 0.0, |x| x[0].flatten(1, -1)),
        Case::one("t", 0.0, |x| x[0].t()),
        Case::one("mt", 0.0, |x| x[0].mt()),
        Case::one("movedim", 0.0, |x| x[0].movedim(&[0, 2], &[2, 0])),
        Case::one("movedim.one", 0.0, |x| x[0].moveaxis(&[0], &[-1])),
        Case::one("swapaxes", 0.0, |x| x[0].swapaxes(0, 2)),
        Case::one("expand", 0.0, |x| x[0].expand((2, -1, 4))),
        Case::one("repeat", 0.0, |x| x[0].repeat((2, 1, 3))),
        Case::one("tile", 0.0, |x| x[0].tile(2)),
        Case::one("repeat_interleave", 0.0, |x| x[0].repeat_interleave(2, 1)),
        Case::one("repeat_interleave.flat", 0.0, |x| x[0].repeat_interleave(3, None)),
        Case::one("flip", 0.0, |x| x[0].flip(&[0, 2])),
        Case::one("fliplr", 0.0, |x| x[0].fliplr()),
        Case::one("flipud", 0.0, |x| x[0].flipud()),
        Case::one("roll", 0.0, |x| x[0].roll(&[1, -3], &[0, 2])),
        Case::one("roll.flat", 0.0, |x| x[0].roll(&[4], &[])),
        Case::one("diag.matrix", 0.0, |x| x[0].diag(1)),
        Case::one("diagonal.far", 0.0, |x| x[0].diagonal(5, 0, 1)),
        Case::one("pad.constant", 0.0, |x| x[0].pad((1, 2, 0, 1), PadMode::Constant(9.0))),
        Case::one("pad.cut", 0.0, |x| x[0].pad((-1, 2, 1, -2), PadMode::Constant(0.0))),
        Case::one("pad.reflect", 0.0, |x| x[0].pad((2, 1), PadMode::Reflect)),
        Case::one("pad.replicate", 0.0, |x| x[0].pad((2, 1), PadMode::Replicate)),
        Case::one("pad.circular", 0.0, |x| x[0].pad((2, 1), PadMode::Circular)),
        Case::one("unfold", 0.0, |x| x[0].unfold(1, 2, 1)),
        Case::one("unfold.step", 0.0, |x| x[0].unfold(0, 2, 2)),
    ]
}

fn by_number() -> Vec<Case> {
    let mut out = Vec::new();
    for k in [1, 2, 3, -1] {
        out.push(Case::one(format!("rot90.{k}"), 0.0, move |x| x[0].rot90(k, [0, 2])));
    }
    for k in [-1, 0, 2] {
        out.push(Case::one(format!("tril.{k}"), 0.0, move |x| x[0].tril(k)));
        out.push(Case::one(format!("triu.{k}"), 0.0, move |x| x[0].triu(k)));
        out.push(Case::one(format!("diagonal.{k}"), 0.0, move |x| x[0].diagonal(k, 2, 0)));
        out.push(Case::one(format!("diag.{k}"), 0.0, move |x| x[0].diag(k)));
        out.push(Case::one(format!("diag_embed.{k}"), 0.0, move |x| x[0].diag_embed(k)));
    }
    out
}

fn joins() -> Vec<Case> {
    let mut out = vec![
        Case::new("split", 0.0, |x| x[0].split(2, 0)),
        Case::new("split.sizes", 0.0, |x| x[0].split_with_sizes((1, 3), 2)),
        Case::new("chunk", 0.0, |x| x[0].chunks(3, 0)),
        Case::new("chunk.fewer", 0.0, |x| x[0].chunks(4, 0)),
        Case::new("tensor_split", 0.0, |x| x[0].tensor_split(3, 0)),
        Case::new("hsplit", 0.0, |x| x[0].hsplit(3)),
        Case::one("block_diag", 0.0, |x| Tensor::block_diag(&[&x[0], &x[1], &x[2]])),
        Case::one("put", 0.0, |x| x[0].put(&x[1], &x[2], true)),
        Case::new("unbind", 0.0, |x| x[0].unbind(1)),
        Case::one("stack", 0.0, |x| Tensor::stack(&[&x[0], &x[1]], 1)),
        Case::one("cat.promote", 0.0, |x| Tensor::cat(&[&x[0], &x[1]], 0)),
        Case::new("atleast", 0.0, |x| {
            vec![x[0].atleast_1d(), x[1].atleast_2d(), x[1].atleast_3d(), x[0].atleast_3d()]
        }),
        Case::new("broadcast_tensors", 0.0, |x| Tensor::broadcast_tensors(&[&x[0], &x[1]])),
        Case::new("meshgrid", 0.0, |x| Tensor::meshgrid(&[&x[0], &x[1]])),
        Case::new("meshgrid.xy", 0.0, |x| Tensor::meshgrid_xy(&[&x[0], &x[1]])),
        Case::one("cartesian_prod", 0.0, |x| Tensor::cartesian_prod(&[&x[0], &x[1]])),
    ];
    for rank in ["1", "2"] {
        out.extend([
            Case::one(format!("hstack.{rank}"), 0.0, |x| Tensor::hstack(&[&x[0], &x[1]])),
            Case::one(format!("vstack.{rank}"), 0.0, |x| Tensor::vstack(&[&x[0], &x[1]])),
            Case::one(format!("dstack.{rank}"), 0.0, |x| Tensor::dstack(&[&x[0], &x[1]])),
            Case::one(format!("column_stack.{rank}"), 0.0, |x| Tensor::column_stack(&[&x[0], &x[1]])),
        ]);
    }
    out
}

fn indices() -> Vec<Case> {
    let i = Tensor::from([[0i64, 1], [1, -1]]);
    let j = Tensor::from([2i64, -3]);
    let rows = Tensor::from([true, false, true]);
    let (i1, i2, i3, i4, j1, j2, j3) =
        (i.clone(), i.clone(), i.clone(), i.clone(), j.clone(), j.clone(), j.clone());
    let (j4, rows1, i5, j5) = (j, rows.clone(), i, Tensor::from([2i64, -3]));
    vec![
        Case::one("i.number", 0.0, |x| x[0].i((1, -1))),
        Case::one("i.ranges", 0.0, |x| x[0].i((0..1, ..-1, -3..))),
        Case::one("i.past", 0.0, |x| x[0].i((.., 1..100, 9..))),
        Case::one("i.step", 0.0, |x| x[0].i((Ellipsis, Index::step(1.., 2)))),
        Case::one("i.new", 0.0, |x| x[0].i((NewAxis, .., 0, Ellipsis, NewAxis))),
        Case::one("i.ellipsis", 0.0, |x| x[0].i((Ellipsis, 2))),
        Case::one("i.tensor", 0.0, move |x| x[0].i((.., &i5))),
        Case::one("i.adjacent", 0.0, move |x| x[0].i((.., &i1, &j1))),
        Case::one("i.apart", 0.0, move |x| x[0].i((&i2, .., &j2))),
        Case::one("i.mixed", 0.0, move |x| x[0].i((1, .., &j3))),
        Case::one("i.number between", 0.0, move |x| x[0].i((&i3, 1, &j4))),
        Case::one("i.scalar tensor", 0.0, |x| x[0].i((Tensor::scalar(1i64), .., Tensor::scalar(-1i64)))),
        Case::one("i.new between", 0.0, move |x| x[0].i((&i4, NewAxis, &j5))),
        Case::one("i.mask", 0.0, |x| x[0].i(x[0].gt(10))),
        Case::one("i.row mask", 0.0, move |x| x[0].i((.., &rows1))),
        Case::one("i.mask and tensor", 0.0, move |x| x[0].i((.., &rows, Tensor::from([1i64, 2])))),
        Case::one("i.leading mask", 0.0, |x| x[0].i((x[0].sum(&[-1], false).gt(30), 1..3))),
    ]
}

fn by_index() -> Vec<Case> {
    let mut out = vec![
        Case::one("gather", 0.0, |x| x[0].gather(2, &x[1])),
        Case::one("scatter", 0.0, |x| x[0].scatter(0, &x[1], &x[2])),
        Case::one("scatter.number", 0.0, |x| x[0].scatter(1, &x[1], 7.0)),
        Case::one("scatter_add", 0.0, |x| x[0].scatter_add(0, &x[1], &x[2])),
        Case::one("index_select", 0.0, |x| x[0].index_select(1, &x[1])),
        Case::one("index_add", 0.0, |x| x[0].index_add(1, &x[1], &x[2], -3)),
        Case::one("index_copy", 0.0, |x| x[0].index_copy(1, &x[1], &x[2])),
        Case::one("index_fill", 0.0, |x| x[0].index_fill(2, &x[1], -1.0)),
        Case::one("take", 0.0, |x| x[0].take(&x[1])),
        Case::one("take_along_dim", 0.0, |x| x[0].take_along_dim(&x[1], 2)),
        Case::one("nonzero", 0.0, |x| x[0].nonzero()),
        Case::new("nonzero_lines", 0.0, |x| x[0].nonzero_lines()),
        Case::one("masked_select", 0.0, |x| x[0].masked_select(&x[1])),
        Case::one("masked_scatter", 0.0, |x| x[0].masked_scatter(&x[1], &x[2])),
        Case::one("index_put", 0.0, |x| x[0].index_put((&x[1], &x[2]), &x[3], false)),
        Case::one("index_put.accumulate", 0.0, |x| x[0].index_put(&x[1], &x[2], true)),
        Case::one("assign", 0.0, |x| {
            let mut y = x[0].clone();
            y.index_put_((.., 1.., 0), &x[1], false);
            y
        }),
        Case::one("assign.mask", 0.0, |x| {
            let mut y = x[0].clone();
            y.index_put_(x[0].gt(10), -1.0, false);
            y
        }),
        Case::one("slice_scatter", 0.0, |x| x[0].slice_scatter(&x[1], 1, 1)),
        Case::one("select_scatter", 0.0, |x| x[0].select_scatter(&x[1], 1, -1)),
    ];
    for how in ["sum", "prod", "mean", "amax", "amin"] {
        for (text, own) in [("True", true), ("False", false)] {
            let f = move |x: &[Tensor]| x[0].scatter_reduce(0, &x[1], &x[2], how, own);
            out.push(Case::one(format!("scatter_reduce.{how}.{text}"), SUMS, f));
            out.push(Case::one(format!("scatter_reduce.{how}.{text}.i64"), 0.0, f));
        }
    }
    out
}

fn in_place() -> Vec<Case> {
    vec![
        Case::one("in_place", 0.0, |x| {
            let mut y = x[0].clone();
            y.add_(&x[1]);
            y.mul_(2);
            y.sub_(0.5);
            y.clamp_(-1.0, 4.0);
            y.relu_();
            y
        }),
        Case::one("in_place.i64", 0.0, |x| {
            let mut y = x[0].clone();
            y.add_(3);
            y.mul_(2);
            y.floor_divide_(3);
            let sum = &y + &x[1];
            y.copy_(&sum);
            y
        }),
        Case::new("in_place.fill", 0.0, |x| {
            let mut all = [x[0].clone(), x[0].clone(), x[0].clone(), x[0].clone()];
            all[0].fill_(4);
            all[1].zero_();
            all[2].fill_diagonal_(7);
            all[3].masked_fill_(&x[0].gt(4), 0);
            all.to_vec()
        }),
    ]
}

fn products() -> Vec<Case> {
    vec![
        Case::one("mm", SUMS, |x| x[0].mm(&x[1])),
        Case::one("bmm", SUMS, |x| x[0].bmm(&x[1])),
        Case::one("mv", SUMS, |x| x[0].mv(&x[1])),
        Case::one("dot", SUMS, |x| x[0].dot(&x[1])),
        Case::one("inner", SUMS, |x| x[0].inner(&x[1])),
        Case::one("outer", SUMS, |x| x[0].outer(&x[1])),
        Case::one("matmul.i64", 0.0, |x| x[0].matmul(&x[1])),
        Case::one("addmm", SUMS, |x| x[0].addmm(&x[1], &x[2], 0.5, 2.0)),
        Case::one("addmm.zero", SUMS, |x| x[0].addmm(&x[1], &x[2], 0.0, 1.0)),
        Case::one("addmv", SUMS, |x| x[0].addmv(&x[1], &x[2], 1.0, 1.0)),
        Case::one("addr", SUMS, |x| x[0].addr(&x[1], &x[2], 1.0, 3.0)),
        Case::one("baddbmm", SUMS, |x| x[0].baddbmm(&x[1], &x[2], 1.0, 1.0)),
        Case::one("addbmm", SUMS, |x| x[0].addbmm(&x[1], &x[2], 1.0, 1.0)),
        Case::one("tensordot", SUMS, |x| x[0].tensordot(&x[1], &[0, 2], &[1, 0])),
        Case::one("tensordot.none", SUMS, |x| x[0].tensordot(&x[1], &[], &[])),
        Case::one("einsum.bmm", SUMS, |x| Tensor::einsum("bij,bjk->bik", &[&x[0], &x[1]])),
        Case::one("einsum.trace", SUMS, |x| Tensor::einsum("ii", &[&x[0]])),
        Case::one("einsum.dots", SUMS, |x| Tensor::einsum("...j, j -> ...", &[&x[0], &x[1]])),
        Case::one("einsum.three", SUMS, |x| Tensor::einsum("ij,jk,j->ik", &[&x[0], &x[1], &x[2]])),
        Case::one("kron", 0.0, |x| x[0].kron(&x[1])),
        Case::one("cross", SUMS, |x| x[0].cross(&x[1], -1)),
        Case::one("trace", 0.0, |x| x[0].trace()),
        Case::one("cdist", SUMS, |x| x[0].cdist(&x[1], 2.0)),
        Case::new("matrix_power", SUMS, |x| [0, 1, 5].map(|n| x[0].matrix_power(n)).to_vec()),
        Case::one("chain_matmul", SUMS, |x| Tensor::chain_matmul(&[&x[0], &x[1], &x[2]])),
    ]
}

fn made() -> Vec<Case> {
    vec![
        Case::new("factories", 3e-7, |_| {
            vec![
                Tensor::eye(2, F32),
                Tensor::eye_of(2, 3, I64),
                Tensor::arange_step(1, 10, 3),
                Tensor::arange_step(5, -1, -2),
                Tensor::arange_step(3, 3, 1),
                Tensor::linspace(-1.0, 2.0, 7),
                Tensor::linspace(3.0, 4.0, 1),
                Tensor::logspace(-1.0, 2.0, 4, 10.0),
                Tensor::tril_indices(3, 2, 0),
                Tensor::triu_indices(2, 3, 1),
                Tensor::full(2, 1.5, F32),
            ]
        }),
        Case::new("like", 0.0, |x| {
            let x = &x[0];
            vec![
                x.full_like(7.0),
                x.zeros_like(),
                x.ones_like(),
                x.new_zeros(2),
                x.new_ones((1, 2)),
                x.new_full(2, 3.0),
            ]
        }),
        Case::new("vander", 0.0, |x| vec![x[0].vander(4, false), x[0].vander(2, true)]),
        Case::new("casts", 0.0, |x| {
            let x = &x[0];
            vec![
                x.double(),
                x.half(),
                x.bfloat16(),
                x.long(),
                x.int(),
                x.short(),
                x.char(),
                x.bool(),
                x.abs().byte(),
            ]
        }),
    ]
}

fn none() -> Vec<Case> {
    let nowhere = || Tensor::zeros(0, I64);
    vec![
        Case::new("none.shapes", 0.0, move |x| {
            let x = &x[0];
            vec![
                x.flip(&[0, 1]),
                x.roll(&[1], &[0]),
                x.repeat((2, 1)),
                x.t(),
                x.tril(0),
                x.diagonal(0, 0, 1),
                x.reshape((3, 0)),
                x.repeat_interleave(2, 1),
                x.diff(1, 0),
                x.expand((2, 0, 3)),
                Tensor::cat(&[x, x], 0),
                x.i((.., 1..)),
                x.i(nowhere()),
                x.pad((0, 0, 1, 0), PadMode::Constant(0.0)),
            ]
        }),
        Case::new("none.by_index", 0.0, move |x| {
            let x = &x[0];
            vec![
                x.nonzero(),
                x.i(x.gt(0)),
                x.masked_select(&x.gt(0)),
                x.index_select(1, &Tensor::from([0i64, 2])),
                x.masked_fill(&x.gt(0), 1),
                x.take(&nowhere()),
                x.index_add(1, &Tensor::from([0i64]), &Tensor::zeros((0, 1), F32), 1),
            ]
        }),
        Case::new("none.values", 0.0, |x| {
            let x = &x[0];
            vec![
                x.sum(&[0], false),
                x.prod(&[0], false),
                x.all(&[0], false),
                x.any(&[0], false),
                x.mean(&[0], false),
                x.var(&[0], 1, false),
                x.norm(2.0, &[0], false),
                x.norm(1.0, &[1], false),
                x.logsumexp(&[0], false),
                x.amax(&[1], false),
                x.argmax(1, false),
                x.cumsum(0),
                x.cumprod(0),
                x.cummax(0).0,
                x.sort(0, false).0,
                x.sort(1, false).1,
                x.topk(2, 1, true).0,
                x.median_dim(1, false).0,
                x.softmax(1),
                x.mm(&Tensor::zeros((3, 2), F32)),
                x.t().mm(x),
                x.exp(),
                x.isin(&Tensor::from([1.0f32])),
            ]
        }),
    ]
}

pub fn cases() -> Vec<Case> {
    [views(), by_number(), joins(), indices(), by_index(), in_place(), products(), made(), none()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn views_and_orders() {
    run(views());
    run(by_number());
}

#[test]
fn parts_and_joins() {
    run(joins());
}

#[test]
fn indexing() {
    run(indices());
}

#[test]
fn reading_and_writing_by_index() {
    run(by_index());
}

#[test]
fn in_place_methods() {
    run(in_place());
}

#[test]
fn matrix_products() {
    run(products());
}

#[test]
fn factories_and_casts() {
    run(made());
}

#[test]
fn tensors_without_elements() {
    run(none());
}

#[test]
fn random_numbers() {
    let draw = || {
        manual_seed(3);
        let p = Tensor::randperm(20);
        let mut sorted = p.to_ints();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..20).collect::<Vec<i64>>());
        assert_ne!(p.to_ints(), sorted);
        let r = Tensor::zeros((30, 30), BF16).rand_like();
        assert_eq!(format!("{r:#}"), "bf16[30, 30]");
        let mean = Tensor::normal(3.0, 0.5, (40, 40)).mean(&[], false).item();
        assert!((mean - 3.0).abs() < 0.1, "{mean}");
        let share = Tensor::full((40, 40), 0.25, F32).bernoulli().mean(&[], false).item();
        assert!((share - 0.25).abs() < 0.06, "{share}");
        [
            p.to_vec(),
            Tensor::zeros(4, F32).randn_like().to_vec(),
            Tensor::zeros(4, I32).randint_like(5, 9).to_vec(),
        ]
    };
    assert_eq!(draw(), draw());
    let all = Tensor::randint(5, 9, 200).to_ints();
    assert!((5..9).all(|i| all.contains(&i)) && all.iter().all(|i| (5..9).contains(i)));
}

#[test]
fn questions() {
    let (a, b) = (Tensor::from([1.0f32, 2.0]), Tensor::from([1.0f32, 2.00001]));
    assert!(a.allclose(&b, 1e-5, 1e-8, false) && !a.equal(&b) && a.equal(&a.clone()));
    assert!(!a.equal(&Tensor::from([1.0f32])));
    assert!(a.is_floating_point() && a.long().element_size() == 8);
    assert_eq!(a.result_type(&Tensor::scalar(2.0f64)), F32);
    assert_eq!(Tensor::promote_types(U8, I8), I16);
}
