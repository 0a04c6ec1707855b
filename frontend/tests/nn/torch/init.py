"""Figures for initialisations: of each tensor of a layer's state dict its mean, deviation and greatest absolute value;
and the tensors themselves where they are not random. usage: python init.py (torch 2.15)"""

import torch
from figures import case, cases, write
from torch import nn

torch.manual_seed(3)


def told(name, tensors):
    tell = lambda t: torch.stack([t.mean(), t.std(unbiased=False), t.abs().max()])
    case(name, [], lambda: [tell(t.double()) for t in tensors.values()])
    cases[name]["keys"] = list(tensors)


for name, m in {
    "linear": nn.Linear(200, 150), "bilinear": nn.Bilinear(20, 30, 40), "prelu": nn.PReLU(3),
    "conv1d": nn.Conv1d(40, 50, 5), "conv2d": nn.Conv2d(32, 64, 3, groups=2),
    "convt2d": nn.ConvTranspose2d(32, 64, 3, groups=2), "bn": nn.BatchNorm2d(5), "in": nn.InstanceNorm1d(4, affine=True),
    "ln": nn.LayerNorm([3, 4]), "rms": nn.RMSNorm(4), "gn": nn.GroupNorm(2, 4), "embedding": nn.Embedding(100, 200),
    "bag": nn.EmbeddingBag(100, 200), "mha": nn.MultiheadAttention(64, 4), "mha.dims": nn.MultiheadAttention(64, 4, kdim=80, vdim=30),
    "lstm": nn.LSTM(50, 40), "gru": nn.GRU(50, 40, bidirectional=True), "rnn": nn.RNN(60, 90), "gru_cell": nn.GRUCell(50, 40),
    "encoder_layer": nn.TransformerEncoderLayer(64, 4, 100),
}.items():
    told(name, m.state_dict())

w = lambda: torch.empty(60, 40, 3)
for name, t in {
    "uniform_": nn.init.uniform_(w(), -1, 3), "normal_": nn.init.normal_(w(), 2.0, 0.5),
    "trunc_normal_": nn.init.trunc_normal_(w(), 0.2, 1.0, -0.5, 1.0),
    "xavier_uniform_": nn.init.xavier_uniform_(w(), nn.init.calculate_gain("tanh")),
    "xavier_normal_": nn.init.xavier_normal_(w(), nn.init.calculate_gain("selu")),
    "kaiming_uniform_": nn.init.kaiming_uniform_(w(), a=0.3, nonlinearity="leaky_relu"),
    "kaiming_normal_": nn.init.kaiming_normal_(w(), mode="fan_out", nonlinearity="relu"),
    "orthogonal_": nn.init.orthogonal_(w(), 2.0),
}.items():
    told(name, {"w": t})
case("eye_", [], lambda: nn.init.eye_(torch.empty(3, 4)))
case("dirac_", [], lambda: nn.init.dirac_(torch.empty(4, 3, 3, 2)))
case("dirac_.groups", [], lambda: nn.init.dirac_(torch.empty(4, 1, 5), groups=2))
case("ones_", [], lambda: nn.init.ones_(torch.empty(2)))
case("zeros_", [], lambda: nn.init.zeros_(torch.empty(2)))
case("constant_", [], lambda: nn.init.constant_(torch.empty(2), 0.3))
write(__file__)
