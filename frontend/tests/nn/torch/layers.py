"""Figures for layers and functions. usage: python layers.py (torch 2.15)

The state dict of a layer is given as further inputs, its keys beside them."""

import torch
import torch.nn.functional as F
from figures import case, cases, write
from torch import nn

torch.backends.mha.set_fastpath_enabled(False)
R = torch.randn


def layer(name, m, inputs, call=None, train=False):
    """A layer in inference mode, or in training mode with its state dict afterwards as further outputs."""
    m.train(train)
    for k, t in m.state_dict().items():
        if t.is_floating_point():
            t.copy_(torch.rand(t.shape) + 0.5 if k.endswith("running_var") else R(t.shape) * 0.5)
    state = {k: t.clone() for k, t in m.state_dict().items()}

    def run(*all):
        out = call(m, *all[: len(inputs)]) if call else m(*all[: len(inputs)])
        out = list(out) if isinstance(out, (tuple, list)) else [out]
        return out + (list(m.state_dict().values()) if train else [])

    case(name, inputs + list(state.values()), run)
    cases[name]["keys"] = list(state)


def activations():
    x = torch.cat([torch.linspace(-7, 7, 29), torch.tensor([0.0, 40.0, -40.0, float("nan")])])
    all = {
        "relu": nn.ReLU(), "relu6": nn.ReLU6(), "leaky_relu": nn.LeakyReLU(0.2), "elu": nn.ELU(1.5),
        "selu": nn.SELU(), "celu": nn.CELU(0.7), "gelu": nn.GELU(), "gelu.tanh": nn.GELU("tanh"),
        "silu": nn.SiLU(), "mish": nn.Mish(), "softplus": nn.Softplus(2.0, 5.0), "softsign": nn.Softsign(),
        "softshrink": nn.Softshrink(0.8), "hardshrink": nn.Hardshrink(0.8), "hardtanh": nn.Hardtanh(-2, 3),
        "hardsigmoid": nn.Hardsigmoid(), "hardswish": nn.Hardswish(), "logsigmoid": nn.LogSigmoid(),
        "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(), "tanhshrink": nn.Tanhshrink(),
        "threshold": nn.Threshold(1.0, -3.0), "identity": nn.Identity(),
    }
    for name, m in all.items():
        layer(f"act.{name}", m, [x])
    for name in ["elu", "silu", "softplus", "hardswish", "mish"]:
        layer(f"act.{name}.bf16", all[name], [x.bfloat16()])
    layer("prelu", nn.PReLU(), [R(2, 3)])
    layer("prelu.channels", nn.PReLU(3), [R(2, 3, 2)])
    layer("softmax", nn.Softmax(1), [R(2, 3, 2)])
    layer("log_softmax", nn.LogSoftmax(-1), [R(2, 3, 2)])
    layer("softmin", nn.Softmin(0), [R(2, 3, 2)])
    layer("glu", nn.GLU(), [R(2, 4)])
    layer("glu.1", nn.GLU(1), [R(2, 4, 3)])


def linears():
    layer("linear", nn.Linear(4, 3), [R(2, 5, 4)])
    layer("linear.plain", nn.Linear(4, 3, bias=False), [R(4)])
    layer("bilinear", nn.Bilinear(3, 4, 2), [R(2, 5, 3), R(2, 5, 4)])
    index = torch.tensor([[1, 0, 5], [2, 5, 5]])
    layer("embedding", nn.Embedding(6, 3), [index])
    for mode in ["sum", "mean", "max"]:
        layer(f"bag.{mode}", nn.EmbeddingBag(6, 3, mode=mode), [index])
        padded = nn.EmbeddingBag(6, 3, mode=mode, padding_idx=5)
        layer(f"bag.{mode}.padding", padded, [torch.tensor([[1, 0, 5], [5, 5, 5]])])
    layer("bag.weighted", nn.EmbeddingBag(6, 3, mode="sum"), [index, R(2, 3)], lambda m, i, w: m(i, per_sample_weights=w))
    case("one_hot", [index], lambda i: F.one_hot(i, 6))


def convs():
    layer("conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), [R(2, 4, 7)])
    layer("conv1d.same", nn.Conv1d(2, 3, 4, padding="same", dilation=3), [R(2, 2, 11)])
    layer("conv1d.lone", nn.Conv1d(2, 3, 2, bias=False), [R(2, 5)])
    layer("conv2d", nn.Conv2d(2, 4, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2)), [R(2, 2, 6, 5)])
    layer("conv2d.depthwise", nn.Conv2d(3, 6, 3, groups=3, padding="valid"), [R(1, 3, 5, 5)])
    for mode in ["reflect", "replicate", "circular"]:
        layer(f"conv2d.{mode}", nn.Conv2d(2, 3, 3, padding=(2, 1), padding_mode=mode), [R(1, 2, 4, 5)])
    layer("conv2d.reflect.same", nn.Conv2d(1, 2, (2, 3), padding="same", padding_mode="reflect"), [R(1, 1, 4, 5)])
    layer("conv3d", nn.Conv3d(2, 2, 2, stride=2, padding=1), [R(1, 2, 3, 4, 5)])
    T = [nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d]
    layer("convt1d", T[0](2, 3, 3), [R(2, 2, 4)])
    layer("convt1d.lone", T[0](2, 3, 4, stride=2, padding=1), [R(2, 4)])
    layer("convt2d", T[1](4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), [R(2, 4, 3, 2)])
    layer("convt2d.dilated", T[1](2, 3, (3, 2), stride=(3, 1), padding=(2, 0), output_padding=(2, 1), dilation=2), [R(1, 2, 3, 4)])
    layer("convt2d.short", T[1](2, 3, 2, stride=3, output_padding=2, bias=False), [R(1, 2, 2, 3)])
    layer("convt3d", T[2](2, 2, 3, stride=(2, 1, 2), padding=1), [R(1, 2, 2, 3, 2)])


def norms():
    layer("bn1d", nn.BatchNorm1d(3), [R(2, 3, 4)])
    layer("bn1d.flat", nn.BatchNorm1d(3, eps=1e-2), [R(4, 3)])
    layer("bn2d", nn.BatchNorm2d(3), [R(2, 3, 2, 2)])
    layer("bn3d", nn.BatchNorm3d(2), [R(2, 2, 2, 2, 1)])
    layer("bn2d.plain", nn.BatchNorm2d(3, affine=False), [R(2, 3, 2, 2)])
    layer("bn2d.batch", nn.BatchNorm2d(3, track_running_stats=False), [R(2, 3, 2, 2)])
    layer("bn2d.train", nn.BatchNorm2d(3, momentum=0.2), [R(2, 3, 2, 2)], train=True)
    layer("bn1d.train", nn.BatchNorm1d(3), [R(4, 3)], train=True)
    twice = lambda m, x, y: (m(x), m(y))
    layer("bn1d.cumulative", nn.BatchNorm1d(3, momentum=None), [R(4, 3), R(5, 3)], twice, train=True)
    layer("in1d", nn.InstanceNorm1d(3), [R(2, 3, 4)])
    layer("in2d", nn.InstanceNorm2d(3, affine=True), [R(2, 3, 2, 3)])
    layer("in2d.lone", nn.InstanceNorm2d(3), [R(3, 2, 3)])
    layer("in3d", nn.InstanceNorm3d(2, eps=1e-2), [R(1, 2, 2, 2, 2)])
    layer("in2d.track", nn.InstanceNorm2d(3, track_running_stats=True), [R(2, 3, 2, 3)])
    layer("in2d.train", nn.InstanceNorm2d(3, affine=True, track_running_stats=True), [R(2, 3, 2, 3)], train=True)
    layer("ln", nn.LayerNorm(4), [R(2, 3, 4)])
    layer("ln.two", nn.LayerNorm([3, 4], eps=1e-3), [R(2, 3, 4)])
    layer("ln.plain", nn.LayerNorm(4, elementwise_affine=False), [R(2, 4)])
    layer("ln.nobias", nn.LayerNorm(4, bias=False), [R(2, 4)])
    layer("rms", nn.RMSNorm(4), [R(2, 3, 4)])
    layer("rms.two", nn.RMSNorm([3, 4], eps=1e-2), [R(2, 3, 4)])
    layer("gn", nn.GroupNorm(2, 4), [R(2, 4, 3, 2)])
    layer("gn.plain", nn.GroupNorm(3, 6, affine=False), [R(2, 6)])
    layer("lrn", nn.LocalResponseNorm(3, alpha=0.5), [R(2, 4, 3)])
    layer("lrn.even", nn.LocalResponseNorm(2, alpha=0.3, beta=0.5, k=2.0), [R(2, 4, 2, 2)])
    for p in [1.0, 2.0, 3.0, float("inf")]:
        case(f"normalize.{p}", [R(2, 3, 2)], lambda x: F.normalize(x, p))
    case("normalize.zero", [torch.zeros(2, 3)], lambda x: F.normalize(x, dim=-1))
    layer("cosine_similarity", nn.CosineSimilarity(), [R(2, 3, 2), R(2, 3, 2)])
    for p in [1.0, 2.0, 3.0]:
        layer(f"pairwise_distance.{p}", nn.PairwiseDistance(p, keepdim=p == 3.0), [R(2, 3), R(2, 3)])


def pools():
    layer("max1d", nn.MaxPool1d(3, stride=1, padding=1), [R(2, 2, 5)])
    layer("max2d", nn.MaxPool2d((3, 2), padding=(1, 0), dilation=(1, 2)), [R(1, 2, 7, 6)])
    layer("max2d.ceil", nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), [R(1, 2, 6, 7)])
    layer("max2d.lone", nn.MaxPool2d(2), [R(2, 4, 5)])
    layer("max3d", nn.MaxPool3d(2), [R(1, 2, 4, 3, 2)])
    layer("avg1d", nn.AvgPool1d(3, stride=2, padding=1), [R(2, 2, 5)])
    layer("avg2d", nn.AvgPool2d((3, 2), padding=(1, 1)), [R(1, 2, 7, 6)])
    layer("avg2d.ceil", nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), [R(1, 2, 6, 7)])
    layer("avg2d.inside", nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), [R(1, 2, 6, 7)])
    layer("avg3d", nn.AvgPool3d(2), [R(1, 2, 4, 3, 2)])
    layer("lp1d", nn.LPPool1d(2, 3), [R(2, 2, 7)])
    layer("lp2d", nn.LPPool2d(3.0, (2, 3), stride=1), [R(1, 2, 4, 5)])
    layer("lp2d.ceil", nn.LPPool2d(2, 3, ceil_mode=True), [R(1, 2, 4, 5)])
    layer("lp3d", nn.LPPool3d(1.0, 2), [R(1, 1, 2, 4, 3)])
    layer("adaptive.avg1d", nn.AdaptiveAvgPool1d(3), [R(2, 2, 7)])
    layer("adaptive.avg2d", nn.AdaptiveAvgPool2d((2, None)), [R(1, 2, 5, 3)])
    layer("adaptive.avg2d.one", nn.AdaptiveAvgPool2d(1), [R(2, 2, 5, 3)])
    layer("adaptive.avg2d.more", nn.AdaptiveAvgPool2d((7, 6)), [R(1, 1, 5, 3)])
    layer("adaptive.avg3d", nn.AdaptiveAvgPool3d((2, 1, 3)), [R(1, 2, 4, 3, 6)])
    layer("adaptive.max1d", nn.AdaptiveMaxPool1d(3), [R(2, 7)])
    layer("adaptive.max2d", nn.AdaptiveMaxPool2d((4, 1)), [R(1, 2, 6, 5)])
    layer("adaptive.max3d", nn.AdaptiveMaxPool3d(2), [R(1, 2, 4, 3, 5)])


def shapes():
    layer("flatten", nn.Flatten(), [R(2, 3, 2)])
    layer("flatten.0", nn.Flatten(0, 1), [R(2, 3, 2)])
    layer("unflatten", nn.Unflatten(1, (2, -1)), [R(2, 6, 2)])
    layer("pixel_shuffle", nn.PixelShuffle(2), [R(1, 8, 2, 3)])
    layer("pixel_unshuffle", nn.PixelUnshuffle(2), [R(2, 1, 2, 4, 6)])
    layer("channel_shuffle", nn.ChannelShuffle(2), [R(1, 6, 2, 2)])
    layer("unfold", nn.Unfold((2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), [R(2, 2, 4, 5)])
    layer("unfold.lone", nn.Unfold(2), [R(2, 3, 3)])
    layer("fold", nn.Fold((4, 6), (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)), [R(2, 12, 8)])
    x, y, z = R(1, 2, 5), R(1, 2, 4, 5), R(1, 1, 3, 4, 5)
    for name, up, at in [
        ("nearest.size", nn.Upsample((7, 3)), y), ("nearest.2", nn.Upsample(scale_factor=2), x),
        ("nearest.1.5", nn.Upsample(scale_factor=1.5), y), ("nearest.3d", nn.Upsample((2, 6, 5)), z),
        ("exact", nn.Upsample((7, 3), mode="nearest-exact"), y),
        ("exact.2.3", nn.Upsample(scale_factor=2.3, mode="nearest-exact"), x),
        ("linear", nn.Upsample(8, mode="linear"), x), ("linear.2", nn.Upsample(scale_factor=2, mode="linear"), x),
        ("bilinear", nn.Upsample((7, 3), mode="bilinear"), y),
        ("bilinear.align", nn.Upsample((7, 1), mode="bilinear", align_corners=True), y),
        ("bilinear.1.3", nn.Upsample(scale_factor=1.3, mode="bilinear"), y),
        ("trilinear", nn.Upsample((5, 3, 10), mode="trilinear"), z),
        ("bicubic", nn.Upsample((7, 3), mode="bicubic"), y),
        ("bicubic.align", nn.Upsample((6, 9), mode="bicubic", align_corners=True), y),
        ("bicubic.2", nn.Upsample(scale_factor=2, mode="bicubic"), y),
    ]:
        layer(f"up.{name}", up, [at])
    for kind in ["Zero", "Reflection", "Replication", "Circular"]:
        layer(f"pad.{kind}1d", getattr(nn, kind + "Pad1d")((2, 1)), [R(2, 2, 4)])
        layer(f"pad.{kind}2d", getattr(nn, kind + "Pad2d")((1, 2, 0, 3)), [R(1, 2, 4, 3)])
        layer(f"pad.{kind}3d", getattr(nn, kind + "Pad3d")(1), [R(1, 1, 2, 3, 2)])
    layer("pad.constant1d", nn.ConstantPad1d((2, -1), 1.5), [R(2, 4)])
    layer("pad.constant2d", nn.ConstantPad2d((-1, 1, 2, 0), -2.5), [R(2, 4, 3)])
    layer("pad.constant3d", nn.ConstantPad3d(1, 0.5), [R(1, 1, 1, 2, 2)])


def attention():
    A = F.scaled_dot_product_attention
    q, k, v = R(2, 2, 3, 4), R(2, 2, 5, 4), R(2, 2, 5, 6)
    keep = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]).bool()
    some = torch.zeros(3, 5).masked_fill(~keep, float("-inf")) + R(3, 5)
    case("sdpa", [q, k, v], A)
    case("sdpa.causal", [q, k, v], lambda q, k, v: A(q, k, v, is_causal=True))
    case("sdpa.causal.long", [k, q, q], lambda q, k, v: A(q, k, v, is_causal=True))
    case("sdpa.bool", [q, k, v, keep], A)
    case("sdpa.float", [q, k, v, some], A)
    case("sdpa.scale", [q, k, v], lambda q, k, v: A(q, k, v, scale=0.3))
    case("sdpa.flat", [q[0], k[0], v[0], R(1, 3, 5)], A)
    case("sdpa.gqa", [R(2, 4, 3, 4), k, v], lambda q, k, v: A(q, k, v, enable_gqa=True))
    M = nn.MultiheadAttention
    x, y = R(3, 2, 4), R(5, 2, 4)
    self_ = lambda m, x: m(x, x, x)
    layer("mha", M(4, 2), [x], self_)
    layer("mha.cross", M(4, 2), [x, y], lambda m, x, y: m(x, y, y))
    layer("mha.heads", M(4, 2, bias=False), [x, y], lambda m, x, y: m(x, y, y, average_attn_weights=False))
    layer("mha.batch_first", M(4, 2, batch_first=True), [x], lambda m, x: m(x, x, x, need_weights=False)[0])
    layer("mha.lone", M(4, 2), [x[:, 0], y[:, 0]], lambda m, x, y: m(x, y, y))
    layer("mha.dims", M(4, 2, kdim=3, vdim=5), [x, R(5, 2, 3), R(5, 2, 5)])
    padding = torch.tensor([[0, 0, 1, 0, 1], [0, 1, 0, 0, 0]]).bool()
    later = torch.tensor([[0, 1, 1, 1, 1], [0, 0, 1, 1, 1], [0, 0, 0, 0, 1]]).bool()
    layer("mha.padding", M(4, 2), [x, y, padding], lambda m, x, y, p: m(x, y, y, key_padding_mask=p))
    both = lambda m, x, y, p, a: m(x, y, y, key_padding_mask=p, attn_mask=a)
    layer("mha.both", M(4, 2), [x, y, padding, later], both)
    layer("mha.added", M(4, 2), [x, y, R(4, 3, 5)], lambda m, x, y, a: m(x, y, y, attn_mask=a, need_weights=False)[0])
    layer("mha.causal", M(4, 2), [x, later[:, :3]], lambda m, x, a: m(x, x, x, attn_mask=a, is_causal=True, need_weights=False)[0])
    E, D = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
    causal = torch.tensor([[0, 1, 1], [0, 0, 1], [0, 0, 0]]).bool()
    ignore = torch.tensor([[0, 0, 1], [0, 0, 0]]).bool()
    layer("encoder_layer", E(4, 2, 6), [x])
    layer("encoder_layer.first", E(4, 2, 6, activation="gelu", batch_first=True, norm_first=True), [R(2, 3, 4)])
    masked = lambda m, x, a, p: m(x, a, p)
    layer("encoder_layer.masks", E(4, 2, 6, bias=False), [x, causal, ignore], masked)
    encoder = nn.TransformerEncoder(E(4, 2, 6), 2, nn.LayerNorm(4), enable_nested_tensor=False)
    layer("encoder", encoder, [x, causal, ignore], masked)
    layer("decoder_layer", D(4, 2, 6), [x, y])
    layer("decoder_layer.first", D(4, 2, 6, norm_first=True, activation="gelu"), [x, y, causal, padding], lambda m, x, y, a, p: m(x, y, a, memory_key_padding_mask=p))
    layer("decoder", nn.TransformerDecoder(D(4, 2, 6), 2, nn.LayerNorm(4)), [x, y])


def recurrent():
    flat = lambda m, *a: (lambda r: [r[0], *(r[1] if isinstance(r[1], tuple) else [r[1]])])(m(*a))
    x = R(3, 2, 4)
    layer("rnn", nn.RNN(4, 3), [x], flat)
    layer("rnn.relu", nn.RNN(4, 3, nonlinearity="relu", bias=False), [x], flat)
    layer("rnn.both", nn.RNN(4, 3, num_layers=2, bidirectional=True), [x, R(4, 2, 3)], flat)
    states = lambda m, x, h, c: flat(m, x, (h, c))
    layer("lstm", nn.LSTM(4, 3), [x], flat)
    layer("lstm.both", nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True), [R(2, 3, 4), R(4, 2, 3), R(4, 2, 3)], states)
    layer("lstm.lone", nn.LSTM(4, 3, bias=False), [R(3, 4), R(1, 3), R(1, 3)], states)
    layer("gru", nn.GRU(4, 3, num_layers=2), [x], flat)
    layer("gru.both", nn.GRU(4, 3, bidirectional=True, batch_first=True), [R(2, 3, 4), R(2, 2, 3)], flat)
    layer("rnn_cell", nn.RNNCell(4, 3), [R(2, 4), R(2, 3)])
    layer("rnn_cell.relu", nn.RNNCell(4, 3, nonlinearity="relu"), [R(4)])
    layer("lstm_cell", nn.LSTMCell(4, 3), [R(2, 4), R(2, 3), R(2, 3)], lambda m, x, h, c: m(x, (h, c)))
    layer("lstm_cell.zeros", nn.LSTMCell(4, 3, bias=False), [R(2, 4)])
    layer("gru_cell", nn.GRUCell(4, 3), [R(2, 4), R(2, 3)])


torch.manual_seed(1)
for family in [activations, linears, convs, norms, pools, shapes, attention, recurrent]:
    family()
# nine digits are enough for f32
for c in cases.values():
    for t in c["inputs"] + c["outputs"]:
        if t["dtype"] == "float32":
            t["data"] = [float(f"{x:.9g}") if isinstance(x, float) else x for x in t["data"]]
write(__file__)
