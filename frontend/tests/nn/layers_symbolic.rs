//! Layers traced once with symbolic sizes give at each size what they give eagerly; what needs known sizes says so.

use crate::figures::agree;
use functional::*;
use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

/// Traces `f` with the dims as they are written (names, or numbers) and runs it with each of the sizes of the names.
fn sized<M: Module>(m: &M, dims: &[&str], sizes: &[&[i64]], f: impl Fn(&M, &Tensor) -> Tensor) {
    m.eval();
    let fixed = |d: &&str| d.parse::<i64>().ok();
    let specs: Vec<DimSpec> =
        dims.iter().map(|d| fixed(d).map_or_else(|| dim(d).range(3..=64), DimSpec::from)).collect();
    let p = trace(m, [spec("x", F32, specs)], |m, [x]| f(m, &x)).unwrap();
    for s in sizes {
        let mut free = s.iter();
        let shape: Vec<i64> =
            dims.iter().map(|d| fixed(d).unwrap_or_else(|| *free.next().unwrap())).collect();
        let x = Tensor::randn(shape);
        let got = p.run("forward", std::slice::from_ref(&x)).unwrap();
        agree(&format!("{s:?}"), &got, &[f(m, &x)], 1e-5, 1e-6);
    }
}

const IMAGES: [&[i64]; 3] = [&[3, 8, 8], &[4, 9, 12], &[5, 16, 11]];
const IMAGE: [&str; 4] = ["batch", "4", "height", "width"];

#[test]
fn a_convolutional_network() {
    let m = Sequential::new()
        .push(Conv2d::new(4, 6, 3).stride(2).padding(1))
        .push(BatchNorm2d::new(6))
        .push(SiLU::new())
        .push(Conv2d::new(6, 6, [3, 2]).padding(Padding::Same).groups(3))
        .push(MaxPool2d::new(2).ceil_mode(true))
        .push(AdaptiveAvgPool2d::new(1))
        .push(Flatten::new())
        .push(Linear::new(6, 2));
    sized(&m, &IMAGE, &IMAGES, |m, x| m.forward(x));
}

#[test]
fn images_grow() {
    let m = Sequential::new()
        .push(ConvTranspose2d::new(4, 4, 3).stride([2, 3]).padding(1).output_padding(1).groups(2))
        .push(GroupNorm::new(2, 4))
        .push(InstanceNorm2d::new(4))
        .push(PixelShuffle::new(2))
        .push(ReflectionPad2d::new([1, 2, 0, 1]));
    sized(&m, &IMAGE, &IMAGES, |m, x| m.forward(x));
}

#[test]
fn resampling() {
    for mode in [Interpolation::Nearest, Interpolation::Linear, Interpolation::Bicubic] {
        sized(&Upsample::by(&[2.0, 0.5]).mode(mode), &IMAGE, &IMAGES, |m, x| m.forward(x));
        sized(&Upsample::to_size(&[7, 5]).mode(mode), &IMAGE, &IMAGES, |m, x| m.forward(x));
    }
    sized(&(), &IMAGE, &IMAGES, |(), x| {
        let args = Interpolate {
            size: Some(vec![x.size(3) + 1, x.size(2)]),
            mode: Interpolation::Linear,
            align_corners: true,
            ..Interpolate::default()
        };
        interpolate(x, &args)
    });
}

#[test]
fn windows_and_padding() {
    let args = FoldArgs { kernel: [2, 3], dilation: [2, 1], padding: [1, 0], stride: [1, 2] };
    sized(&Unfold::new(args), &IMAGE, &IMAGES, |m, x| m.forward(x));
    sized(&CircularPad2d::new(2), &IMAGE, &IMAGES, |m, x| m.forward(x));
    sized(&ReplicationPad2d::new(5), &IMAGE, &IMAGES, |m, x| m.forward(x));
    sized(&ConstantPad2d::new([-1, 2, 0, 1], 0.5), &IMAGE, &IMAGES, |m, x| m.forward(x));
    sized(&LocalResponseNorm::new(3), &IMAGE, &IMAGES, |m, x| m.forward(x));
    sized(&LPPool2d::new(2.0, 2), &IMAGE, &IMAGES, |m, x| m.forward(x));
}

const SENTENCES: [&[i64]; 3] = [&[3, 3], &[7, 4], &[12, 5]];
const SENTENCE: [&str; 3] = ["time", "batch", "8"];

#[test]
fn transformers() {
    let args = TransformerArgs { dim_feedforward: 12, ..TransformerArgs::new(8, 2) };
    let m = TransformerEncoder::new(&TransformerEncoderLayer::new(args), 2, Some(LayerNorm::new(8)));
    sized(&m, &SENTENCE, &SENTENCES, |m, x| {
        m.forward(x, SequenceMask { is_causal: true, ..SequenceMask::default() })
    });
    let m = TransformerDecoderLayer::new(args);
    sized(&m, &SENTENCE, &SENTENCES, |m, x| {
        let memory = RMSNorm::with(&[8], None, false).forward(x);
        m.forward(x, &memory, SequenceMask::default(), SequenceMask::default())
    });
}

#[test]
fn attention_of_grouped_heads() {
    sized(&(), &["batch", "4", "time", "8"], &SENTENCES, |(), x| {
        let k = x.narrow(1, 0, 2);
        let keep = Tensor::arange(x.size(2)).unsqueeze(1).gt(Tensor::arange(x.size(2)));
        attention(x, &k, &k, &Attention { mask: Some(&keep), enable_gqa: true, ..Attention::default() })
    });
}

#[test]
fn recurrent_layers_of_a_known_length() {
    let m = LSTM::new(8, 3).num_layers(2).bidirectional(true);
    sized(&m, &["6", "batch", "8"], &[&[3], &[4], &[9]], |m, x| m.forward(x, None).0);
    sized(&GRUCell::new(8, 3), &["batch", "8"], &[&[3], &[4], &[9]], |m, x| m.forward(x, None));
}

/// The errors of a trace of one function of x [batch, 4, height, width].
fn told<M: Module>(m: &M, f: impl FnOnce(&M, Tensor) -> Tensor) -> String {
    let x = spec("x", F32, (dim("batch").range(3..=64), 4, dim("height").range(3..=64), 6));
    trace(m, [x], |m, [x]| f(m, x)).err().expect("an error is wanted").to_string()
}

fn holds(text: &str, parts: &[&str]) {
    for p in parts.iter().chain(&["nn/layers_symbolic.rs:"]) {
        assert!(text.contains(p), "{p} in: {text}");
    }
}

#[test]
fn errors_say_what_is_wanted() {
    let m = AdaptiveAvgPool2d::new(2);
    holds(&told(&m, |m, x| m.forward(&x)), &["E-NN-089", "`height`", "fixed size"]);
    let m = Conv2d::new(4, 2, 3).padding(Padding::Same).stride(2);
    holds(&told(&m, |m, x| m.forward(&x)), &["E-NN-086", "stride 1"]);
    let m = ReflectionPad2d::new(6);
    holds(&told(&m, |m, x| m.forward(&x)), &["E-NN-090", "shorter than the axis"]);
    let m = BatchNorm2d::new(4);
    m.eval();
    holds(&told(&m, |m, x| m.forward(&x.select(0, 0))), &["E-NN-090", "rank 4"]);
    holds(&told(&(), |(), x| layer_norm(&x, &[5], None, None, 1e-5)), &["E-NN-081"]);
    holds(&told(&(), |(), x| elu(&x.transpose(0, 9), 1.0)), &["E-NN-062"]);
    let target = Tensor::zeros(3, F32);
    holds(&told(&(), |(), x| cross_entropy(&x, &target, &CrossEntropy::default())), &["E-NN-098"]);
    let m = ConvTranspose2d::new(4, 2, 3).stride(2).output_padding(2);
    holds(&told(&m, |m, x| m.forward(&x)), &["E-NN-087", "output_padding 2 with stride 2"]);
    let m = MultiheadAttention::new(6, 2);
    m.eval();
    holds(&told(&m, |m, x| m.forward(&x, &x, &x, &AttentionArgs::default()).0), &["E-NN-102"]);
}

#[test]
fn wrong_layers_are_refused_where_they_are_made() {
    for (f, part) in [
        ((|| drop(Conv2d::new(4, 6, 3).groups(3))) as fn(), "E-NN-099"),
        (|| drop(MultiheadAttention::new(6, 4)), "E-NN-102"),
        (|| drop(Dropout::new(1.5).forward(&Tensor::ones(2, F32))), "E-NN-091"),
    ] {
        let e = catch(f).err().unwrap().to_string();
        holds(&e, &[part]);
    }
}

#[test]
fn dropouts_keep_the_mean() {
    manual_seed(4);
    let x = Tensor::ones((40, 50, 6), F32);
    let y = Dropout::new(0.3).forward(&x);
    let mean = y.mean(&[], false).item();
    assert!((mean - 1.0).abs() < 0.02 && y.eq(0.0).sum(&[], false).item() > 3000.0, "{mean}");
    let y = Dropout1d::new(0.3).forward(&x);
    let spread = (y.amax(&[2], false) - y.amin(&[2], false)).abs().amax(&[], false).item();
    assert!(spread == 0.0 && (y.mean(&[], false).item() - 1.0).abs() < 0.1);
    let x = selu(&Tensor::randn((400, 200)));
    let y = AlphaDropout::new(0.2).forward(&x);
    let mean = y.mean(&[], false);
    let var = (&y - &mean).square().mean(&[], false).item();
    assert!(mean.item().abs() < 0.02 && (var - 1.0).abs() < 0.04, "{} {var}", mean.item());
    let m = Dropout::new(0.3);
    m.eval();
    assert_eq!(m.forward(&x).to_vec(), x.to_vec());
}

#[test]
fn recurrent_layers_run_over_a_symbolic_length() {
    manual_seed(4);
    let m = LSTM::new(3, 4).num_layers(2).bidirectional(true);
    m.eval();
    let run = |m: &LSTM, x: &Tensor| {
        let (y, (h, c)) = m.forward(x, None);
        vec![y, h, c]
    };
    let p = trace(&m, [spec("x", F32, ("time", "batch", 3))], |m, [x]| run(m, &x)).unwrap();
    for (t, b) in [(1, 2), (5, 1), (3, 4)] {
        let x = Tensor::randn((t, b, 3));
        let got = p.run("forward", std::slice::from_ref(&x)).unwrap();
        crate::figures::agree("lstm", &got, &run(&m, &x), 1e-5, 1e-6);
    }
}
