#!/usr/bin/env python3
"""Turn an ONNX test data set (input_N.pb, output_N.pb) into two .npz files keyed by the model's own names.

usage: pb2npz.py MODEL DATA_SET_DIR INPUTS.npz OUTPUTS.npz
"""
import argparse
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

import npz


def read(folder, kind, infos):
    """Pairs kind_N.pb with the N-th graph input or output and checks what the model declares about it."""
    arrays = {}
    for index, info in enumerate(infos):
        path = os.path.join(folder, '%s_%d.pb' % (kind, index))
        if not os.path.exists(path):
            sys.exit('pb2npz: %s is missing (the model has %d %ss)' % (path, len(infos), kind))
        if info.type.WhichOneof('value') != 'tensor_type':
            sys.exit('pb2npz: %s %s is not a tensor' % (kind, info.name))
        tensor = onnx.TensorProto()
        with open(path, 'rb') as f:
            tensor.ParseFromString(f.read())
        want = info.type.tensor_type.elem_type
        if tensor.data_type != want:
            sys.exit('pb2npz: %s has dtype %d, the model declares %d for %s' % (path, tensor.data_type, want, info.name))
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind not in 'fiub':
            sys.exit('pb2npz: %s holds %s, which .npz cannot carry' % (path, array.dtype))
        dims = info.type.tensor_type.shape.dim
        if info.type.tensor_type.HasField('shape') and len(dims) != np.ndim(array):
            sys.exit('pb2npz: %s has rank %d, the model declares %d' % (path, np.ndim(array), len(dims)))
        arrays[info.name] = array
    return arrays


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    for name in ('model', 'data_set', 'inputs', 'outputs'):
        parser.add_argument(name)
    args = parser.parse_args()
    graph = onnx.load(args.model, load_external_data=False).graph
    weights = {t.name for t in graph.initializer}
    npz.save(args.inputs, read(args.data_set, 'input', [i for i in graph.input if i.name not in weights]))
    npz.save(args.outputs, read(args.data_set, 'output', list(graph.output)))


if __name__ == '__main__':
    main()
