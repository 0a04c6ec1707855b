#!/usr/bin/env python3
"""Make the benchmark's models: architectures of well-known packages with random weights, exported to ONNX with named
dynamic dims. Nothing is downloaded; the same seed gives the same weights.

usage: models.py DIR NAME...     (no NAME: lists the names)

Writes DIR/NAME.onnx, weights included. Needs torch, torchvision, transformers and onnxscript.
"""
import os
import sys

SEED = 20261
BATCH, SEQUENCE = ('batch', 1, 64), ('seq', 2, 512)


def perceptron(*widths):
    from torch import nn

    layers = []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers += [nn.Linear(a, b), nn.ReLU()] if i + 2 < len(widths) else [nn.Linear(a, b)]
    return nn.Sequential(*layers), ['y'], {'input': ((widths[0],), 'float', {0: BATCH})}


def vision(name):
    import torch
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    if hasattr(model, 'heads'):
        # torchvision sets this to zero, and every result would be zero
        torch.nn.init.normal_(model.heads.head.weight, std=0.02)
    # statistics of random data keep the activations near unit variance in all layers
    model.train()
    for m in model.modules():
        if isinstance(m, torch.nn.BatchNorm2d):
            m.momentum = None
    with torch.no_grad():
        model(torch.randn(8, 3, 224, 224))
    return model, ['y'], {'x': ((3, 224, 224), 'float', {0: BATCH})}


def bert_base():
    from transformers import BertConfig, BertModel

    ids = ((16,), 'ids', {0: BATCH, 1: SEQUENCE})
    inputs = {'input_ids': ids, 'attention_mask': ((16,), 'mask', ids[2])}
    return BertModel(BertConfig()), ['last_hidden_state', 'pooler_output'], inputs


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return model, ['logits'], {'input_ids': ((16,), 'ids', {0: BATCH, 1: SEQUENCE})}


MODELS = {
    'tiny': lambda: perceptron(16, 32, 4),
    'mlp': lambda: perceptron(784, 512, 512, 10),
    'mobilenet_v2': lambda: vision('mobilenet_v2'),
    'resnet50': lambda: vision('resnet50'),
    'vit_b_16': lambda: vision('vit_b_16'),
    'bert_base': bert_base,
    'gpt2': gpt2,
}


def make(name, folder):
    import torch

    torch.manual_seed(SEED)
    model, outputs, inputs = MODELS[name]()
    dims = {d[0]: torch.export.Dim(d[0], min=d[1], max=d[2]) for d in (BATCH, SEQUENCE)}
    kinds = {
        'float': lambda s: torch.randn(2, *s),
        'ids': lambda s: torch.randint(0, 1000, (2, *s)),
        'mask': lambda s: torch.ones(2, *s, dtype=torch.int64),
    }
    example = {n: kinds[kind](shape) for n, (shape, kind, _) in inputs.items()}
    dynamic = {n: {a: dims[d[0]] for a, d in axes.items()} for n, (_, _, axes) in inputs.items()}
    path = os.path.join(folder, name + '.onnx')
    part = path + '.part'
    names = ['x' if n == 'input' else n for n in inputs]
    torch.onnx.export(model.eval(), (), part, kwargs=example, input_names=names, output_names=outputs,
                      dynamic_shapes=dynamic, opset_version=18, dynamo=True, external_data=False, verbose=False)
    os.rename(part, path)
    print('%s: %d bytes' % (path, os.path.getsize(path)), file=sys.stderr)


def main():
    if len(sys.argv) < 3 or any(n not in MODELS for n in sys.argv[2:]):
        sys.exit('%s\nmodels: %s' % (__doc__, ' '.join(MODELS)))
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:]:
        make(name, sys.argv[1])


if __name__ == '__main__':
    main()
