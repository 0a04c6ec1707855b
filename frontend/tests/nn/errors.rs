//! Wrong programs and what they are told.

use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

/// The errors of a trace of one function of x [batch, seq, 4], without the line numbers.
fn told(f: impl FnOnce(Tensor) -> Tensor) -> String {
    let m = Linear::new(4, 2);
    let x = spec("x", F32, (dim("batch").range(1..=64), "seq", 4));
    let e = trace(&m, [x], |_, [x]| f(x)).err().map(|e| e.to_string());
    e.expect("an error is wanted")
}

#[test]
fn a_value_is_read() {
    let text = told(|x| if x.sum(&[], false).item() > 0.0 { x.relu() } else { x });
    assert!(text.starts_with("error[E-NN-065]: a value is read during capture: f32[]\n  at: "), "{text}");
    assert!(text.contains("nn/errors.rs:"), "{text}");
}

#[test]
fn a_named_dim_is_pinned() {
    let text = told(|x| x.reshape((32, -1)) + Tensor::ones((3, 4), F32));
    assert!(text.contains("batch"), "{text}");
    let text = told(|x| x.matmul(&Tensor::ones((7, 3, 4), F32).transpose(1, 2)));
    assert!(text.contains("pin the named dim `batch` to 7"), "{text}");
    let text = told(|x| &x + x.transpose(0, 1));
    assert!(text.contains("E-NN-016") && text.contains("`batch` is from 1 to 64"), "{text}");
}

#[test]
fn an_undecided_comparison() {
    let text = told(|x| if x.size(1) > 5 { x.relu() } else { x });
    assert!(text.starts_with("error[E-NN-015]"), "{text}");
    assert!(text.contains("`seq` is from 1 to"), "{text}");
}

#[test]
fn every_independent_error_is_told_at_once() {
    let text = told(|x| {
        let a = x.matmul(&Tensor::ones((5, 5), F32));
        let b = x.transpose(0, 7);
        a.relu() + b.relu()
    });
    assert!(text.contains("E-NN-062") && text.matches("error[").count() == 2, "{text}");
}

#[test]
fn eager_errors_are_caught() {
    let e = catch(|| Tensor::ones((2, 3), F32).matmul(&Tensor::ones((2, 3), F32))).unwrap_err();
    assert!(e.to_string().contains("matmul") && e.to_string().contains("nn/errors.rs:"), "{e}");
}

#[test]
fn keys_are_matched() {
    let m = Linear::new(4, 2);
    let mut d = m.state_dict();
    let w = d.shift_remove("weight").unwrap();
    d.insert("wieght".into(), w);
    d.insert("bias".into(), Tensor::zeros(3, F32));
    let text = m.load_state_dict(&d, true).unwrap_err().to_string();
    for part in ["E-NN-050", "missing key `weight` (f32[2, 4])", "is it `wieght`?", "E-NN-051", "E-NN-052"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let d = m.state_dict().into_iter().map(|(k, v)| (format!("module.{k}"), v)).collect();
    m.load_state_dict(&d, true).unwrap();
}

#[test]
fn a_layer_in_training_mode() {
    let m = Dropout::new(0.5);
    let e = trace(&m, [spec("x", F32, 4)], |m, [x]| m.forward(&x)).err().unwrap().to_string();
    assert!(e.contains("E-NN-040") && e.contains("eval()"), "{e}");
}

#[test]
fn a_tensor_outlives_its_trace() {
    let mut kept = None;
    let m = Linear::new(4, 2);
    trace(&m, [spec("x", F32, 4)], |_, [x]| {
        kept = Some(x.clone());
        x
    })
    .unwrap();
    let e = catch(|| kept.unwrap().relu()).unwrap_err();
    assert!(e.to_string().contains("E-NN-025"), "{e}");
}
