//! Layers and functions against PyTorch's figures, with PyTorch's parameters loaded by their names.

use crate::figures::{Figures, agree, figures};
use functional::*;
use indexmap::IndexMap;
use std::collections::BTreeMap;
use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

fn all() -> Figures {
    figures("layers.json", include_str!("torch/layers.json"))
}

/// Relative and absolute tolerance of f32 results: a few units in the last place.
const TOL: (f64, f64) = (4e-6, 4e-7);

/// A check of a case, given its name.
type Check = Box<dyn FnOnce(&Figures, &str)>;

/// Checks of cases by name.
#[derive(Default)]
struct Table(BTreeMap<String, Check>);

impl Table {
    fn add(&mut self, name: &str, check: impl FnOnce(&Figures, &str) + 'static) {
        assert!(self.0.insert(name.to_string(), Box::new(check)).is_none(), "{name}");
    }

    /// A function without parameters.
    fn function(&mut self, name: &str, f: impl Fn(&[Tensor]) -> Tensor + 'static) {
        self.add(name, move |all, name| all.check(name, TOL.0, TOL.1, |x| vec![f(x)]));
    }

    /// A layer of one tensor, in inference mode.
    fn layer(&mut self, name: &str, m: impl Forward + 'static) {
        self.with(name, m, |m, x| vec![m.forward(&x[0])]);
    }

    /// A layer in inference mode, eager and traced.
    fn with<M: Module + 'static>(
        &mut self,
        name: &str,
        m: M,
        f: impl Fn(&M, &[Tensor]) -> Vec<Tensor> + 'static,
    ) {
        self.add(name, move |all, name| {
            let (inputs, outputs) = loaded(all, name, &m);
            m.eval();
            let tol = if name.ends_with(".bf16") { (4e-3, 1e-6) } else { TOL };
            agree(&format!("{name}, eager"), &f(&m, &inputs), &outputs, tol.0, tol.1);
            let shape = |t: &Tensor| t.shape().iter().map(|d| d.to_usize()).collect::<Vec<usize>>();
            let x = spec("x", inputs[0].dtype(), shape(&inputs[0]));
            let p = trace(&m, [x], |m, [x]| {
                let mut all = inputs.clone();
                all[0] = x;
                f(m, &all)
            });
            let p = p.unwrap_or_else(|e| panic!("{name}, traced: {e}"));
            let traced = p.run("forward", &inputs[..1]).unwrap_or_else(|e| panic!("{name}, run: {e}"));
            agree(&format!("{name}, traced"), &traced, &outputs, tol.0, tol.1);
        });
    }

    /// A layer in training mode, whose state dict afterwards is among the outputs.
    fn training<M: Forward + 'static>(&mut self, name: &str, m: M) {
        self.add(name, move |all, name| {
            let (inputs, outputs) = loaded(all, name, &m);
            let mut got: Vec<Tensor> = inputs.iter().map(|x| m.forward(x)).collect();
            got.extend(m.state_dict().into_values());
            agree(name, &got, &outputs, TOL.0, TOL.1);
        });
    }

    fn check(self) {
        let figures = all();
        for (name, check) in self.0 {
            check(&figures, &name);
        }
    }
}

/// Loads the case's state dict, whose keys must be the layer's in their order; the inputs and outputs.
fn loaded<M: Module>(all: &Figures, name: &str, m: &M) -> (Vec<Tensor>, Vec<Tensor>) {
    let (mut case, keys) = (all.case(name), all.keys(name));
    assert_eq!(m.state_dict().into_keys().collect::<Vec<_>>(), keys, "{name}: keys");
    let state = case.inputs.split_off(case.inputs.len() - keys.len());
    let dict: IndexMap<String, Tensor> = keys.into_iter().zip(state).collect();
    m.load_state_dict(&dict, true).unwrap_or_else(|e| panic!("{name}: {e}"));
    (case.inputs, case.outputs)
}

fn activations() -> Table {
    let mut t = Table::default();
    t.layer("act.relu", ReLU::new());
    t.layer("act.relu6", ReLU6::new());
    t.layer("act.leaky_relu", LeakyReLU::new().negative_slope(0.2));
    t.layer("act.elu", ELU::new().alpha(1.5));
    t.layer("act.selu", SELU::new());
    t.layer("act.celu", CELU::new().alpha(0.7));
    t.layer("act.gelu", GELU::new());
    t.layer("act.gelu.tanh", GELU::new().approximate_tanh(true));
    t.layer("act.silu", SiLU::new());
    t.layer("act.mish", Mish::new());
    t.layer("act.softplus", Softplus::new().beta(2.0).threshold(5.0));
    t.layer("act.softsign", Softsign::new());
    t.layer("act.softshrink", Softshrink::new().lambda(0.8));
    t.layer("act.hardshrink", Hardshrink::new().lambda(0.8));
    t.layer("act.hardtanh", Hardtanh::new().min_val(-2.0).max_val(3.0));
    t.layer("act.hardsigmoid", Hardsigmoid::new());
    t.layer("act.hardswish", Hardswish::new());
    t.layer("act.logsigmoid", LogSigmoid::new());
    t.layer("act.sigmoid", Sigmoid::new());
    t.layer("act.tanh", Tanh::new());
    t.layer("act.tanhshrink", Tanhshrink::new());
    t.layer("act.threshold", Threshold::new(1.0, -3.0));
    t.layer("act.identity", Identity::new());
    t.layer("act.elu.bf16", ELU::new().alpha(1.5));
    t.layer("act.silu.bf16", SiLU::new());
    t.layer("act.softplus.bf16", Softplus::new().beta(2.0).threshold(5.0));
    t.layer("act.hardswish.bf16", Hardswish::new());
    t.layer("act.mish.bf16", Mish::new());
    t.layer("prelu", PReLU::new());
    t.layer("prelu.channels", PReLU::with(3, 0.25));
    t.layer("softmax", Softmax::new(1));
    t.layer("log_softmax", LogSoftmax::new(-1));
    t.layer("softmin", Softmin::new(0));
    t.layer("glu", GLU::new());
    t.layer("glu.1", GLU::new().dim(1));
    t
}

fn linears() -> Table {
    let mut t = Table::default();
    t.layer("linear", Linear::new(4, 3));
    t.layer("linear.plain", Linear::with_bias(4, 3, false));
    t.with("bilinear", Bilinear::new(3, 4, 2), |m, x| vec![m.forward(&x[0], &x[1])]);
    t.layer("embedding", Embedding::new(6, 3));
    for (word, mode) in [("sum", Bag::Sum), ("mean", Bag::Mean), ("max", Bag::Max)] {
        t.layer(&format!("bag.{word}"), EmbeddingBag::new(6, 3).mode(mode));
        t.layer(&format!("bag.{word}.padding"), EmbeddingBag::new(6, 3).mode(mode).padding_idx(5));
    }
    t.with("bag.weighted", EmbeddingBag::new(6, 3).mode(Bag::Sum), |m, x| {
        vec![m.forward_weighted(&x[0], &x[1])]
    });
    t.function("one_hot", |x| one_hot(&x[0], 6));
    t
}

fn convs() -> Table {
    let mut t = Table::default();
    t.layer("conv1d", Conv1d::new(4, 6, 3).stride(2).padding(1).groups(2));
    t.layer("conv1d.same", Conv1d::new(2, 3, 4).padding(Padding::Same).dilation(3));
    t.layer("conv1d.lone", Conv1d::new(2, 3, 2).no_bias());
    t.layer("conv2d", Conv2d::new(2, 4, [3, 2]).stride([2, 1]).padding([1, 2]).dilation([1, 2]));
    t.layer("conv2d.depthwise", Conv2d::new(3, 6, 3).groups(3).padding(Padding::Valid));
    let modes =
        [("reflect", PadMode::Reflect), ("replicate", PadMode::Replicate), ("circular", PadMode::Circular)];
    for (word, mode) in modes {
        t.layer(&format!("conv2d.{word}"), Conv2d::new(2, 3, 3).padding([2, 1]).padding_mode(mode));
    }
    let same = Conv2d::new(1, 2, [2, 3]).padding(Padding::Same).padding_mode(PadMode::Reflect);
    t.layer("conv2d.reflect.same", same);
    t.layer("conv3d", Conv3d::new(2, 2, 2).stride(2).padding(1));
    t.layer("convt1d", ConvTranspose1d::new(2, 3, 3));
    t.layer("convt1d.lone", ConvTranspose1d::new(2, 3, 4).stride(2).padding(1));
    let m = ConvTranspose2d::new(4, 6, 3).stride(2).padding(1).output_padding(1).groups(2);
    t.layer("convt2d", m);
    let m = ConvTranspose2d::new(2, 3, [3, 2]).stride([3, 1]).padding([2, 0]);
    t.layer("convt2d.dilated", m.output_padding([2, 1]).dilation(2));
    t.layer("convt2d.short", ConvTranspose2d::new(2, 3, 2).stride(3).output_padding(2).no_bias());
    t.layer("convt3d", ConvTranspose3d::new(2, 2, 3).stride([2, 1, 2]).padding(1));
    t
}

fn norms() -> Table {
    let mut t = Table::default();
    t.layer("bn1d", BatchNorm1d::new(3));
    t.layer("bn1d.flat", BatchNorm1d::new(3).eps(1e-2));
    t.layer("bn2d", BatchNorm2d::new(3));
    t.layer("bn3d", BatchNorm3d::new(2));
    t.layer("bn2d.plain", BatchNorm2d::new(3).affine(false));
    t.layer("bn2d.batch", BatchNorm2d::new(3).track_running_stats(false));
    t.training("bn2d.train", BatchNorm2d::new(3).momentum(0.2));
    t.training("bn1d.train", BatchNorm1d::new(3));
    t.training("bn1d.cumulative", BatchNorm1d::new(3).momentum(None));
    t.layer("in1d", InstanceNorm1d::new(3));
    t.layer("in2d", InstanceNorm2d::new(3).affine(true));
    t.layer("in2d.lone", InstanceNorm2d::new(3));
    t.layer("in3d", InstanceNorm3d::new(2).eps(1e-2));
    t.layer("in2d.track", InstanceNorm2d::new(3).track_running_stats(true));
    t.training("in2d.train", InstanceNorm2d::new(3).affine(true).track_running_stats(true));
    t.layer("ln", LayerNorm::new(4));
    t.layer("ln.two", LayerNorm::with(&[3, 4], 1e-3, true, true));
    t.layer("ln.plain", LayerNorm::with(&[4], 1e-5, false, false));
    t.layer("ln.nobias", LayerNorm::with(&[4], 1e-5, true, false));
    t.layer("rms", RMSNorm::new(4));
    t.layer("rms.two", RMSNorm::with(&[3, 4], Some(1e-2), true));
    t.layer("gn", GroupNorm::new(2, 4));
    t.layer("gn.plain", GroupNorm::with(3, 6, 1e-5, false));
    t.layer("lrn", LocalResponseNorm::new(3).alpha(0.5));
    t.layer("lrn.even", LocalResponseNorm::new(2).alpha(0.3).beta(0.5).k(2.0));
    for (word, p) in [("1.0", 1.0), ("2.0", 2.0), ("3.0", 3.0), ("inf", f64::INFINITY)] {
        t.function(&format!("normalize.{word}"), move |x| normalize(&x[0], p, 1, 1e-12));
    }
    t.function("normalize.zero", |x| normalize(&x[0], 2.0, -1, 1e-12));
    t.with("cosine_similarity", CosineSimilarity::new(), |m, x| vec![m.forward(&x[0], &x[1])]);
    for (word, p) in [("1.0", 1.0), ("2.0", 2.0), ("3.0", 3.0)] {
        let m = PairwiseDistance::new().p(p).keepdim(p == 3.0);
        t.with(&format!("pairwise_distance.{word}"), m, |m, x| vec![m.forward(&x[0], &x[1])]);
    }
    t
}

fn pools() -> Table {
    let mut t = Table::default();
    t.layer("max1d", MaxPool1d::new(3).stride(1).padding(1));
    t.layer("max2d", MaxPool2d::new([3, 2]).padding([1, 0]).dilation([1, 2]));
    t.layer("max2d.ceil", MaxPool2d::new(3).stride(2).padding(1).ceil_mode(true));
    t.layer("max2d.lone", MaxPool2d::new(2));
    t.layer("max3d", MaxPool3d::new(2));
    t.layer("avg1d", AvgPool1d::new(3).stride(2).padding(1));
    t.layer("avg2d", AvgPool2d::new([3, 2]).padding(1));
    let ceil = || AvgPool2d::new(3).stride(2).padding(1).ceil_mode(true);
    t.layer("avg2d.ceil", ceil());
    t.layer("avg2d.inside", ceil().count_include_pad(false));
    t.layer("avg3d", AvgPool3d::new(2));
    t.layer("lp1d", LPPool1d::new(2.0, 3));
    t.layer("lp2d", LPPool2d::new(3.0, [2, 3]).stride(1));
    t.layer("lp2d.ceil", LPPool2d::new(2.0, 3).ceil_mode(true));
    t.layer("lp3d", LPPool3d::new(1.0, 2));
    t.layer("adaptive.avg1d", AdaptiveAvgPool1d::new(3));
    t.layer("adaptive.avg2d", AdaptiveAvgPool2d::with([Some(2), None]));
    t.layer("adaptive.avg2d.one", AdaptiveAvgPool2d::new(1));
    t.layer("adaptive.avg2d.more", AdaptiveAvgPool2d::new([7, 6]));
    t.layer("adaptive.avg3d", AdaptiveAvgPool3d::new([2, 1, 3]));
    t.layer("adaptive.max1d", AdaptiveMaxPool1d::new(3));
    t.layer("adaptive.max2d", AdaptiveMaxPool2d::new([4, 1]));
    t.layer("adaptive.max3d", AdaptiveMaxPool3d::new(2));
    t
}

fn upsampling(t: &mut Table) {
    use Interpolation::*;
    t.layer("up.nearest.size", Upsample::to_size(&[7, 3]));
    t.layer("up.nearest.2", Upsample::by(&[2.0]));
    t.layer("up.nearest.1.5", Upsample::by(&[1.5, 1.5]));
    t.layer("up.nearest.3d", Upsample::to_size(&[2, 6, 5]));
    t.layer("up.exact", Upsample::to_size(&[7, 3]).mode(NearestExact));
    t.layer("up.exact.2.3", Upsample::by(&[2.3]).mode(NearestExact));
    t.layer("up.linear", Upsample::to_size(&[8]).mode(Linear));
    t.layer("up.linear.2", Upsample::by(&[2.0]).mode(Linear));
    t.layer("up.bilinear", Upsample::to_size(&[7, 3]).mode(Linear));
    t.layer("up.bilinear.align", Upsample::to_size(&[7, 1]).mode(Linear).align_corners(true));
    t.layer("up.bilinear.1.3", Upsample::by(&[1.3, 1.3]).mode(Linear));
    t.layer("up.trilinear", Upsample::to_size(&[5, 3, 10]).mode(Linear));
    t.layer("up.bicubic", Upsample::to_size(&[7, 3]).mode(Bicubic));
    t.layer("up.bicubic.align", Upsample::to_size(&[6, 9]).mode(Bicubic).align_corners(true));
    t.layer("up.bicubic.2", Upsample::by(&[2.0, 2.0]).mode(Bicubic));
}

fn shapes() -> Table {
    let mut t = Table::default();
    t.layer("flatten", Flatten::new());
    t.layer("flatten.0", Flatten::new().start_dim(0).end_dim(1));
    t.layer("unflatten", Unflatten::new(1, &[2, -1]));
    t.layer("pixel_shuffle", PixelShuffle::new(2));
    t.layer("pixel_unshuffle", PixelUnshuffle::new(2));
    t.layer("channel_shuffle", ChannelShuffle::new(2));
    let args = FoldArgs { kernel: [2, 3], dilation: [2, 1], padding: [1, 0], stride: [1, 2] };
    t.layer("unfold", Unfold::new(args));
    t.layer("unfold.lone", Unfold::new(FoldArgs::new([2, 2])));
    t.layer("fold", Fold::new([4, 6], args));
    upsampling(&mut t);
    t.layer("pad.Zero1d", ZeroPad1d::new([2, 1]));
    t.layer("pad.Zero2d", ZeroPad2d::new([1, 2, 0, 3]));
    t.layer("pad.Zero3d", ZeroPad3d::new(1));
    t.layer("pad.Reflection1d", ReflectionPad1d::new([2, 1]));
    t.layer("pad.Reflection2d", ReflectionPad2d::new([1, 2, 0, 3]));
    t.layer("pad.Reflection3d", ReflectionPad3d::new(1));
    t.layer("pad.Replication1d", ReplicationPad1d::new([2, 1]));
    t.layer("pad.Replication2d", ReplicationPad2d::new([1, 2, 0, 3]));
    t.layer("pad.Replication3d", ReplicationPad3d::new(1));
    t.layer("pad.Circular1d", CircularPad1d::new([2, 1]));
    t.layer("pad.Circular2d", CircularPad2d::new([1, 2, 0, 3]));
    t.layer("pad.Circular3d", CircularPad3d::new(1));
    t.layer("pad.constant1d", ConstantPad1d::new([2, -1], 1.5));
    t.layer("pad.constant2d", ConstantPad2d::new([-1, 1, 2, 0], -2.5));
    t.layer("pad.constant3d", ConstantPad3d::new(1, 0.5));
    t
}

fn attentions() -> Table {
    let mut t = Table::default();
    let plain = |x: &[Tensor], mask: Option<&Tensor>, causal: bool, scale: Option<f64>| {
        scaled_dot_product_attention(&x[0], &x[1], &x[2], mask, causal, scale)
    };
    t.function("sdpa", move |x| plain(x, None, false, None));
    t.function("sdpa.causal", move |x| plain(x, None, true, None));
    t.function("sdpa.causal.long", move |x| plain(x, None, true, None));
    t.function("sdpa.scale", move |x| plain(x, None, false, Some(0.3)));
    for name in ["sdpa.bool", "sdpa.float", "sdpa.flat"] {
        t.function(name, move |x| plain(x, Some(&x[3]), false, None));
    }
    t.function("sdpa.gqa", |x| {
        attention(&x[0], &x[1], &x[2], &Attention { enable_gqa: true, ..Attention::default() })
    });
    heads(&mut t);
    transformers(&mut t);
    t
}

fn heads(t: &mut Table) {
    let mha = || MultiheadAttention::new(4, 2);
    let two = |r: (Tensor, Option<Tensor>)| [Some(r.0), r.1].into_iter().flatten().collect::<Vec<_>>();
    let none = || AttentionArgs::default();
    t.with("mha", mha(), move |m, x| two(m.forward(&x[0], &x[0], &x[0], &none())));
    for name in ["mha.cross", "mha.lone"] {
        t.with(name, mha(), move |m, x| two(m.forward(&x[0], &x[1], &x[1], &none())));
    }
    t.with("mha.heads", mha().no_bias(), move |m, x| {
        two(m.forward(&x[0], &x[1], &x[1], &AttentionArgs { average_attn_weights: false, ..none() }))
    });
    t.with("mha.batch_first", mha().batch_first(true), move |m, x| {
        two(m.forward(&x[0], &x[0], &x[0], &AttentionArgs { need_weights: false, ..none() }))
    });
    t.with("mha.dims", mha().kdim_vdim(3, 5), move |m, x| two(m.forward(&x[0], &x[1], &x[2], &none())));
    t.with("mha.padding", mha(), move |m, x| {
        two(m.forward(&x[0], &x[1], &x[1], &AttentionArgs { key_padding_mask: Some(&x[2]), ..none() }))
    });
    t.with("mha.both", mha(), move |m, x| {
        let args = AttentionArgs { key_padding_mask: Some(&x[2]), attn_mask: Some(&x[3]), ..none() };
        two(m.forward(&x[0], &x[1], &x[1], &args))
    });
    t.with("mha.added", mha(), move |m, x| {
        let args = AttentionArgs { attn_mask: Some(&x[2]), need_weights: false, ..none() };
        two(m.forward(&x[0], &x[1], &x[1], &args))
    });
    t.with("mha.causal", mha(), move |m, x| {
        let args = AttentionArgs { is_causal: true, need_weights: false, ..none() };
        two(m.forward(&x[0], &x[0], &x[0], &args))
    });
}

fn transformers(t: &mut Table) {
    let args = || TransformerArgs { dim_feedforward: 6, ..TransformerArgs::new(4, 2) };
    let first = || TransformerArgs { norm_first: true, activation: Activation::Gelu, ..args() };
    let encoder = TransformerEncoderLayer::new;
    let decoder = TransformerDecoderLayer::new;
    fn masks(x: &[Tensor]) -> SequenceMask<'_> {
        SequenceMask { mask: Some(&x[1]), key_padding_mask: Some(&x[2]), is_causal: false }
    }
    let none = SequenceMask::default;
    t.layer("encoder_layer", encoder(args()));
    t.layer("encoder_layer.first", encoder(TransformerArgs { batch_first: true, ..first() }));
    t.with("encoder_layer.masks", encoder(TransformerArgs { bias: false, ..args() }), |m, x| {
        vec![m.forward(&x[0], masks(x))]
    });
    let m = TransformerEncoder::new(&encoder(args()), 2, Some(LayerNorm::new(4)));
    t.with("encoder", m, |m, x| vec![m.forward(&x[0], masks(x))]);
    t.with("decoder_layer", decoder(args()), move |m, x| vec![m.forward(&x[0], &x[1], none(), none())]);
    t.with("decoder_layer.first", decoder(first()), move |m, x| {
        let of = SequenceMask { mask: Some(&x[2]), ..none() };
        let to = SequenceMask { key_padding_mask: Some(&x[3]), ..none() };
        vec![m.forward(&x[0], &x[1], of, to)]
    });
    let m = TransformerDecoder::new(&decoder(args()), 2, Some(LayerNorm::new(4)));
    t.with("decoder", m, move |m, x| vec![m.forward(&x[0], &x[1], none(), none())]);
}

fn recurrent() -> Table {
    let mut t = Table::default();
    let two = |(y, h): (Tensor, Tensor)| vec![y, h];
    let three = |(y, (h, c)): (Tensor, (Tensor, Tensor))| vec![y, h, c];
    t.with("rnn", RNN::new(4, 3), move |m, x| two(m.forward(&x[0], None)));
    let m = RNN::new(4, 3).nonlinearity(RnnNonlinearity::Relu).no_bias();
    t.with("rnn.relu", m, move |m, x| two(m.forward(&x[0], None)));
    let m = RNN::new(4, 3).num_layers(2).bidirectional(true);
    t.with("rnn.both", m, move |m, x| two(m.forward(&x[0], Some(&x[1]))));
    t.with("lstm", LSTM::new(4, 3), move |m, x| three(m.forward(&x[0], None)));
    let m = LSTM::new(4, 3).num_layers(2).bidirectional(true).batch_first(true);
    t.with("lstm.both", m, move |m, x| three(m.forward(&x[0], Some((&x[1], &x[2])))));
    t.with("lstm.lone", LSTM::new(4, 3).no_bias(), move |m, x| three(m.forward(&x[0], Some((&x[1], &x[2])))));
    t.with("gru", GRU::new(4, 3).num_layers(2), move |m, x| two(m.forward(&x[0], None)));
    let m = GRU::new(4, 3).bidirectional(true).batch_first(true);
    t.with("gru.both", m, move |m, x| two(m.forward(&x[0], Some(&x[1]))));
    t.with("rnn_cell", RNNCell::new(4, 3), |m, x| vec![m.forward(&x[0], Some(&x[1]))]);
    let m = RNNCell::new(4, 3).nonlinearity(RnnNonlinearity::Relu);
    t.with("rnn_cell.relu", m, |m, x| vec![m.forward(&x[0], None)]);
    t.with("lstm_cell", LSTMCell::new(4, 3), move |m, x| two(m.forward(&x[0], Some((&x[1], &x[2])))));
    t.with("lstm_cell.zeros", LSTMCell::new(4, 3).no_bias(), move |m, x| two(m.forward(&x[0], None)));
    t.with("gru_cell", GRUCell::new(4, 3), |m, x| vec![m.forward(&x[0], Some(&x[1]))]);
    t
}

macro_rules! families {
    ($($name:ident $table:ident;)*) => {
        $(
            #[test]
            fn $name() {
                $table().check();
            }
        )*

        #[test]
        fn every_case_is_checked() {
            let mut tested: Vec<String> = Vec::new();
            $(tested.extend($table().0.into_keys());)*
            tested.sort();
            assert_eq!(all().names().collect::<Vec<_>>(), tested);
        }
    };
}
families! {
    activation_layers activations;
    linear_layers linears;
    convolutions convs;
    normalisations norms;
    pooling pools;
    layouts shapes;
    attention_layers attentions;
    recurrent_layers recurrent;
}
