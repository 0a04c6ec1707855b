//! Wrong programs, and all that they are told: the texts are snapshots (`INSTA_UPDATE=always` writes them anew).

use tgc_frontend::nn::functional as f;
use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

/// The text with this file's line numbers out, so that it does not depend on them.
fn told(name: &str, text: String) {
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(i) = rest.find("nn/wrong.rs:") {
        let end = i + "nn/wrong.rs:".len();
        out += &rest[..end];
        out += "LINE";
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out += rest;
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("wrong");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, out));
}

#[derive(Module)]
struct Encoder {
    layers: Vec<Layer>,
}

#[derive(Module)]
struct Layer {
    fc: Linear,
    norm: LayerNorm,
}

impl Encoder {
    fn new() -> Encoder {
        Encoder { layers: (0..2).map(|_| Layer { fc: Linear::new(8, 8), norm: LayerNorm::new(8) }).collect() }
    }
}

/// What the trace of `body` in the second layer of an encoder says, with x [batch, seq, 8].
fn traced(name: &str, body: impl Fn(&Layer, Tensor) -> Tensor) {
    let m = Encoder::new();
    let x = spec("x", F32, (dim("batch").range(1..=64), "seq", 8));
    let e = trace(&m, [x], |m, [x]| {
        let _entered = enter(&m.layers[1]);
        body(&m.layers[1], x)
    });
    told(name, e.err().expect("an error").to_string());
}

#[test]
fn in_a_trace() {
    traced("value_read", |l, x| match l.fc.forward(&x).mean(&[], false).item() > 0.0 {
        true => x.relu(),
        false => x,
    });
    traced("dim_pinned", |l, x| l.fc.forward(&x) + Tensor::zeros((16, 1, 8), F32));
    traced("two_dims_equal", |_, x| x.matmul(&x));
    traced("shape_mismatch", |_, x| x.matmul(&Tensor::ones((5, 8), F32)));
    traced("layer_of_another_width", |l, x| l.norm.forward(&x.reshape((-1, 4))));
    traced("reshape_to_fewer", |_, x| x.reshape((x.size(0), 7)));
    traced("undecided", |l, x| if x.size(0) > 8 { l.fc.forward(&x) } else { x });
    traced("floats_as_indices", |_, x| f::embedding(&x, &Tensor::ones((4, 4), F32)));
    traced("axis_out_of_range", |_, x| x.softmax(3));
    traced("foreign_parameter", |_, x| Linear::new(8, 8).forward(&x));
    traced("condition_of_many", |_, x| cond(&x.gt(0.0), || x.clone(), || -&x));
    traced("branches_differ", |_, x| cond(&x.amax(&[], false).gt(0.0), || x.clone(), || x.mean(&[1], false)));
    traced("loop_changes_shape", |_, x| {
        while_loop(x, |x| x.amax(&[], false).gt(1.0), |x| Tensor::cat(&[&x, &x], 1))
    });
    traced("several", |l, x| {
        let a = x.transpose(0, 5);
        let b = x.matmul(&Tensor::ones((3, 3), F32));
        l.fc.forward(&(a + b)) + x.select(2, 9)
    });
}

#[test]
fn around_a_trace() {
    let m = Dropout::new(0.1);
    let e = trace(&m, [spec("x", F32, ("n", 8))], |m, [x]| m.forward(&x));
    told("training_mode", e.err().unwrap().to_string());
    let (most, least) = (3, 9);
    let e =
        trace(&m, [spec("x", F32, ("n m", dim("k").range(least..=most))), spec("x", F32, -2)], |_, [x, _]| x);
    told("specs", e.err().unwrap().to_string());
    let mut kept = None;
    trace(&(), [spec("x", F32, 4)], |_, [x]| {
        kept = Some(x.clone());
        x
    })
    .unwrap();
    let e = catch(|| kept.unwrap() * 2.0);
    told("tensor_of_an_ended_trace", e.unwrap_err().to_string());
}

#[test]
fn eager() {
    let told = |name: &str, f: &dyn Fn() -> Tensor| told(name, catch(f).unwrap_err().to_string());
    told("eager_shapes", &|| Tensor::ones((2, 3), F32) + Tensor::ones((2, 4), F32));
    told("eager_index", &|| f::embedding(&Tensor::from([1i64, 9]), &Tensor::ones((4, 2), F32)));
    told("eager_elements", &|| Tensor::from_slice(&[1.0f32, 2.0, 3.0], (2, 2)));
}

#[test]
fn weights() {
    let m = Encoder::new();
    let mut d = m.state_dict();
    let w = d.shift_remove("layers.0.fc.weight").unwrap();
    d.insert("layer.0.fc.weight".into(), w);
    d.insert("layers.1.norm.bias".into(), Tensor::zeros(9, F32));
    d.insert("head.weight".into(), Tensor::zeros(9, F32));
    told("weight_keys", m.load_state_dict(&d, true).unwrap_err().to_string());
    let e = m.load("no/such.safetensors").unwrap_err().to_string();
    told("weight_file", e);
}
