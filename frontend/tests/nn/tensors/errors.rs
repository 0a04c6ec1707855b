//! What wrong calls are told, and that they are told at the user's line.

use tgc_frontend::nn::*;

fn told(f: impl FnOnce(&Tensor) -> Tensor) -> String {
    let x = Tensor::ones((2, 3), F32);
    let text = catch(|| f(&x)).expect_err("an error is wanted").to_string();
    assert!(text.contains("nn/tensors/errors.rs:"), "{text}");
    text
}

#[test]
fn shapes_that_do_not_fit() {
    for (code, text) in [
        ("E-NN-102", told(|x| x.mm(&x.sum(&[0], false)))),
        ("E-NN-103", told(|x| x.tensordot(x, &[0], &[]))),
        ("E-NN-104", told(|x| Tensor::einsum("ij,jk->ik", &[x]))),
        ("E-NN-090", told(|x| Tensor::einsum("ij,jk->ik", &[x, x]))),
        ("E-NN-105", told(|x| x.cross(x, 0))),
        ("E-NN-074", told(|x| x.unsqueeze(0).t())),
        ("E-NN-075", told(|x| x.roll(&[1], &[0, 1]))),
        ("E-NN-076", told(|x| x.sum(&[0], false).tril(0))),
        ("E-NN-077", told(|x| x.pad((1, 1, 1), PadMode::Reflect))),
        ("E-NN-090", told(|x| x.pad((3, 0), PadMode::Reflect))),
        ("E-NN-090", told(|x| x.split_with_sizes((1, 1), 1).remove(0))),
        ("E-NN-078", told(|x| x.repeat(2))),
        ("E-NN-091", told(|x| x.glu(1))),
        ("E-NN-095", told(|x| x.unfold(0, 1, 0))),
        ("E-NN-090", told(|x| x.unfold(0, 3, 1))),
    ] {
        assert!(text.contains(code), "{code}: {text}");
    }
}

#[test]
fn wrong_indices() {
    for (code, text) in [
        ("E-NN-096", told(|x| x.i((0, 0, 0)))),
        ("E-NN-096", told(|x| x.i((Ellipsis, Ellipsis)))),
        ("E-NN-096", told(|x| x.i(x))),
        ("E-NN-096", told(|x| x.i(Tensor::scalar(true)))),
        ("E-NN-090", told(|x| x.i((.., Tensor::from([true, false]))))),
        ("E-NN-090", told(|x| x.index_put(Tensor::from([true, false, true]), 0.0, false))),
        ("E-NN-097", told(|x| x.i(Index::step(.., -1)))),
        ("E-NN-098", told(|x| x.long().scatter_reduce(0, &x.long(), 1, "avg", true))),
        ("range", told(|x| x.i((Tensor::from([0i64]), Tensor::from([3i64]))))),
        ("range", told(|x| x.i(Tensor::from([2i64])))),
    ] {
        assert!(text.contains(code), "{code}: {text}");
    }
}

#[test]
fn in_place_keeps_shape_and_kind() {
    let text = told(|x| {
        let mut y = x.long();
        y.mul_(0.5);
        y
    });
    assert!(text.contains("E-NN-100"), "{text}");
    let text = told(|x| {
        let mut y = x.sum(&[0], false);
        y.add_(x);
        y
    });
    assert!(text.contains("E-NN-101"), "{text}");
    let text = told(|_| Tensor::arange_step(0, 3, -1));
    assert!(text.contains("E-NN-079"), "{text}");
}

#[test]
fn an_alias_keeps_the_old_value() {
    let mut x = Tensor::from([1.0f32, 2.0]);
    let (alias, view) = (x.clone(), x.reshape((2, 1)));
    x.mul_(10);
    assert_eq!(
        (x.to_vec(), alias.to_vec(), view.to_vec()),
        (vec![10.0, 20.0], vec![1.0, 2.0], vec![1.0, 2.0])
    );
}

#[test]
fn a_symbolic_extent_gives_no_number_of_tensors() {
    let e = trace(&(), [spec("x", F32, ("n", 2))], |_, [x]| x.unbind(0)).err().unwrap().to_string();
    assert!(e.contains("E-NN-094") && e.contains("`n`"), "{e}");
}
