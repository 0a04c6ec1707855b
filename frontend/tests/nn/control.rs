//! Branches and loops that depend on data: eager, and captured into regions.

use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

#[derive(Module)]
struct Rnn {
    ih: Linear,
    hh: Linear,
}

impl Rnn {
    fn new() -> Rnn {
        manual_seed(3);
        Rnn { ih: Linear::new(3, 4), hh: Linear::new(4, 4) }
    }

    /// x [time, batch, 3]
    #[forward]
    fn forward(&self, x: &Tensor) -> (Tensor, Tensor) {
        scan(Tensor::zeros((x.size(1), 4), F32), x, |h, x| {
            let h = (self.ih.forward(&x) + self.hh.forward(&h)).tanh();
            (h.clone(), h * 2.0)
        })
    }
}

#[test]
fn scan_over_a_symbolic_length() {
    let m = Rnn::new();
    let p = trace(&m, [spec("x", F32, ("time", "batch", 3))], |m, [x]| m.forward(&x)).unwrap();
    for (t, b) in [(1, 2), (4, 1), (6, 3)] {
        let x = Tensor::randn((t, b, 3));
        let want = m.forward(&x);
        let got = p.run("forward", std::slice::from_ref(&x)).unwrap();
        crate::figures::agree("scan", &got, &[want.0, want.1], 1e-6, 1e-7);
    }
    let g = &p.module().entries["forward"].body;
    assert!(g.ids().iter().any(|id| g.loc(*id).place.contains("nn/control.rs:")));
}

#[test]
fn cond_takes_one_branch() {
    let m = Linear::new(2, 2);
    let f = |m: &Linear, x: &Tensor| {
        let y = x * 3.0;
        cond(&x.sum(&[], false).gt(0.0), || m.forward(&y), || (&y - 1.0).matmul(&Tensor::ones((2, 2), F32)))
    };
    let p = trace(&m, [spec("x", F32, ("n", 2))], |m, [x]| f(m, &x)).unwrap();
    for sign in [1.0, -1.0] {
        let x = Tensor::rand((3, 2)) * sign;
        let got = p.run("forward", std::slice::from_ref(&x)).unwrap();
        crate::figures::agree("cond", &got, &[f(&m, &x)], 1e-6, 1e-7);
    }
}

#[test]
fn while_loop_runs_until_its_test_fails() {
    let halve = |x: &Tensor| {
        while_loop(
            (x.clone(), Tensor::scalar(0i64)),
            |(x, _)| x.amax(&[], false).gt(1.0),
            |(x, n)| (x * 0.5, n + 1),
        )
    };
    let p = trace(&(), [spec("x", F32, "n")], |_, [x]| halve(&x)).unwrap();
    for top in [0.5f32, 8.0, 100.0] {
        let x = Tensor::from([0.25f32, top]);
        let want = halve(&x);
        let got = p.run("forward", std::slice::from_ref(&x)).unwrap();
        crate::figures::agree("while", &got, &[want.0, want.1], 0.0, 0.0);
    }
}

#[test]
fn nested_bodies_read_through_each_other() {
    let f = |x: &Tensor| {
        let bias = x.sum(&[0], false);
        scan(Tensor::zeros(2, F32), x, |c, row| {
            let c = cond(&row.sum(&[], false).gt(0.0), || &c + &row, || &c - &bias);
            (c.clone(), c)
        })
    };
    let p = trace(&(), [spec("x", F32, ("n", 2))], |_, [x]| f(&x)).unwrap();
    let x = Tensor::randn((5, 2));
    let want = f(&x);
    let got = p.run("forward", std::slice::from_ref(&x)).unwrap();
    crate::figures::agree("nested", &got, &[want.0, want.1], 1e-6, 1e-6);
}

#[test]
fn a_tensor_escapes_from_a_branch() {
    let kept = std::cell::RefCell::new(None);
    let e = trace(&(), [spec("x", F32, 2)], |_, [x]| {
        let y = cond(
            &x.sum(&[], false).gt(0.0),
            || {
                let y = x.relu();
                kept.replace(Some(y.clone()));
                y
            },
            || x.clone(),
        );
        y + kept.borrow().clone().unwrap()
    });
    let text = e.err().unwrap().to_string();
    assert!(text.contains("E-NN-020") && text.contains("nn/control.rs:"), "{text}");
}

#[test]
fn branches_of_other_types() {
    let e = trace(&(), [spec("x", F32, 2)], |_, [x]| {
        cond(&x.sum(&[], false).gt(0.0), || x.clone(), || x.sum(&[], false))
    });
    let text = e.err().unwrap().to_string();
    assert!(text.contains("cond.c4") && text.contains("nn/control.rs:"), "{text}");
}
