"""Writes figures of PyTorch to JSON: cases by name, each with inputs and outputs. Used by the scripts beside it."""

import json
import math
import pathlib

import torch

cases = {}


def number(x):
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else ("inf" if x > 0 else "-inf")
    return x


def tensor(t):
    t = t.detach().cpu()
    flat = t.reshape(-1)
    kind = str(t.dtype).removeprefix("torch.")
    data = flat.double().tolist() if t.is_floating_point() else [int(x) for x in flat.tolist()]
    return {"dtype": kind, "shape": list(t.shape), "data": [number(x) for x in data]}


def case(name, inputs, f):
    """Runs `f` on the inputs and keeps both."""
    assert name not in cases, name
    with torch.no_grad():
        out = f(*[t.clone() for t in inputs])
    out = list(out) if isinstance(out, (tuple, list)) else [out]
    cases[name] = {"inputs": [tensor(t) for t in inputs], "outputs": [tensor(t) for t in out]}


def write(script):
    path = pathlib.Path(script).with_suffix(".json")
    lines = [json.dumps(k) + ": " + json.dumps(v, separators=(",", ":")) for k, v in cases.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
