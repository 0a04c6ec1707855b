#!/usr/bin/env python3
"""Write an ONNX model with more than 2 GB of weights, which lie in a file beside it.

usage: large_model.py DEST        DEST/model.onnx and DEST/model.data: a chain of matrix products with random weights
"""
import argparse
import os

import numpy as np
from onnx import TensorProto as T
from onnx import helper

WIDTH = 10240
LAYERS = 6  # of 400 MiB each


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('dest')
    dest = parser.parse_args().dest
    os.makedirs(dest, exist_ok=True)
    rng = np.random.default_rng(2)
    weights, nodes = [], []
    with open(os.path.join(dest, 'model.data'), 'wb') as data:
        for i in range(LAYERS):
            w = T(name='w%d' % i, data_type=T.FLOAT, dims=[WIDTH, WIDTH], data_location=T.EXTERNAL)
            size = 4 * WIDTH * WIDTH
            for key, v in [('location', 'model.data'), ('offset', i * size), ('length', size)]:
                w.external_data.add(key=key, value=str(v))
            weights.append(w)
            for _ in range(16):
                rows = rng.standard_normal((WIDTH // 16, WIDTH), dtype=np.float32) / np.float32(np.sqrt(WIDTH))
                data.write(rows.tobytes())
            nodes.append(helper.make_node('MatMul', ['h%d' % i, 'w%d' % i], ['h%d' % (i + 1)], name='layer%d' % i))
    value = lambda name: helper.make_tensor_value_info(name, T.FLOAT, ['batch', WIDTH])
    graph = helper.make_graph(nodes, 'large', [value('h0')], [value('h%d' % LAYERS)], initializer=weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)], ir_version=8)
    with open(os.path.join(dest, 'model.onnx'), 'wb') as f:
        f.write(model.SerializeToString(deterministic=True))


if __name__ == '__main__':
    main()
