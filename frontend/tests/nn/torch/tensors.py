"""Figures for operations of tensors. usage: python tensors.py (torch 2.15)"""

import torch
from figures import case, write

torch.manual_seed(0)
x = torch.randn(3, 4)
case("softmax", [x], lambda x: x.softmax(1))
case("add.int.float", [torch.arange(4), torch.rand(3, 4)], lambda a, b: a + b)
write(__file__)
