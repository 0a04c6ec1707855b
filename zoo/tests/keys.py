"""Writes keys.txt: names and shapes of the weights of published models. usage: python keys.py (torch, torchvision, transformers)"""

import pathlib

import torchvision
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, LlamaConfig, LlamaForCausalLM

models = {
    "resnet18": torchvision.models.resnet18(weights=None),
    "mobilenet_v2": torchvision.models.mobilenet_v2(weights=None),
    # two layers and few tokens: the others are called alike
    "vit_b_16": torchvision.models.VisionTransformer(224, 16, 2, 12, 768, 3072),
    "bert_base": BertModel(BertConfig(num_hidden_layers=2, vocab_size=100)),
    "llama": LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, vocab_size=100, hidden_size=64, intermediate_size=96,
                                          num_attention_heads=4, num_key_value_heads=2)),
    "gpt2": GPT2Model(GPT2Config(n_layer=2, vocab_size=100)),
}
lines = [f"{m} {k} {list(v.shape)}" for m, model in models.items() for k, v in model.state_dict().items()]
pathlib.Path(__file__).with_name("keys.txt").write_text("\n".join(lines) + "\n")
