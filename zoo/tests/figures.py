"""Writes figures.json: results of the published implementations on weights and inputs that a formula gives, so that nothing
else need be stored. usage: python figures.py (torch, torchvision, transformers)"""

import json
import math
import pathlib

import torch
import torchvision
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM


def numbers(n, salt):
    """Numbers from -1 to 1 by a multiplicative hash of their index."""
    i = torch.arange(n, dtype=torch.int64)
    return ((i * 2654435761 + salt * 40503) % 2**32).double() / 2**31 - 1


def fill(model, ties=()):
    state = {k: v for k, v in model.state_dict().items() if k not in ties}
    for salt, key in enumerate(sorted(k for k, v in state.items() if v.is_floating_point())):
        t = state[key]
        x = numbers(t.numel(), salt).reshape(t.shape)
        if key.endswith("running_var") or (t.dim() == 1 and key.endswith("weight")):
            x = 1 + 0.3 * x
        elif t.dim() <= 1:
            x = 0.1 * x
        else:
            x = x * math.sqrt(4 / (t.numel() / t.shape[0]))
        t.copy_(x)
    return model.eval()


ids = torch.tensor([[1, 5, 7, 2, 9], [0, 3, 19, 4, 11]])
mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
cases = {}
with torch.no_grad():

    def image(side):
        return numbers(2 * 3 * side * side, 99).reshape(2, 3, side, side).float()

    def case(name, out):
        cases[name] = [round(v, 9) for v in out.double().reshape(-1).tolist()]

    m = torchvision.models
    case("resnet18", fill(m.resnet18(num_classes=10))(image(32)))
    case("resnet50", fill(m.resnet50(num_classes=10))(image(32)))
    case("mobilenet_v2", fill(m.mobilenet_v2(num_classes=10))(image(32)))
    vit = m.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)
    case("vit", fill(vit)(image(32)))
    bert = BertModel(BertConfig(vocab_size=20, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                intermediate_size=64, max_position_embeddings=16))
    out = fill(bert)(ids, attention_mask=mask)
    case("bert hidden", out.last_hidden_state)
    case("bert pooled", out.pooler_output)
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=16, n_embd=32, n_layer=2, n_head=4))
    fill(gpt2.transformer)
    case("gpt2", gpt2.eval()(ids).logits)
    llama = LlamaForCausalLM(LlamaConfig(vocab_size=20, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                                         num_attention_heads=4, num_key_value_heads=2, rms_norm_eps=1e-5,
                                         max_position_embeddings=16, rope_theta=10000.0))
    case("llama", fill(llama)(ids).logits)

lines = [json.dumps(k) + ": " + json.dumps(v) for k, v in cases.items()]
pathlib.Path(__file__).with_name("figures.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
