#!/usr/bin/env python3
"""Write the small ONNX models that the tests use: good ones, and one for each way a model can be wrong.

usage: make_models.py [DEST]        DEST is target/models/made unless told otherwise

Needs numpy and onnx. Same bytes on every run: the weights come from a fixed seed.
"""
import argparse
import os

import numpy as np
from onnx import TensorProto as T
from onnx import helper, numpy_helper

OPSET = [helper.make_opsetid('', 17)]


def value(name, shape, dtype=T.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weight(name, array):
    return numpy_helper.from_array(np.ascontiguousarray(array), name)


def model(name, nodes, inputs, outputs, weights=(), opset=None, ir_version=8):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializer=list(weights))
    made = helper.make_model(graph, opset_imports=opset or OPSET, ir_version=ir_version, producer_name='make_models')
    return made.SerializeToString(deterministic=True)


def mlp():
    """784-512-512-10: a Gemm, a MatMul and Add, a Gemm without transposition; `batch` is a named dim."""
    rng = np.random.default_rng(784)

    def dense(rows, cols):
        return (rng.standard_normal((rows, cols)) * np.sqrt(2.0 / cols)).astype(np.float32)

    weights = [
        weight('layer1.weight', dense(512, 784)), weight('layer1.bias', rng.standard_normal(512).astype(np.float32)),
        weight('layer2.weight', dense(512, 512).T), weight('layer2.bias', rng.standard_normal(512).astype(np.float32)),
        weight('layer3.weight', dense(10, 512).T), weight('layer3.bias', rng.standard_normal(10).astype(np.float32)),
    ]
    nodes = [
        helper.make_node('Gemm', ['x', 'layer1.weight', 'layer1.bias'], ['h1'], name='layer1', transB=1),
        helper.make_node('Relu', ['h1'], ['a1'], name='relu1'),
        helper.make_node('MatMul', ['a1', 'layer2.weight'], ['m2'], name='layer2'),
        helper.make_node('Add', ['m2', 'layer2.bias'], ['h2'], name='layer2.add'),
        helper.make_node('Relu', ['h2'], ['a2'], name='relu2'),
        helper.make_node('Gemm', ['a2', 'layer3.weight', 'layer3.bias'], ['logits'], name='layer3'),
    ]
    return model('mlp', nodes, [value('x', ['batch', 784])], [value('logits', ['batch', 10])], weights)


def guards():
    """Two inputs with unrelated named dims are added: legal only if n = m, n = 1 or m = 1, known when bound."""
    nodes = [helper.make_node('Add', ['x', 'y'], ['z'], name='sum')]
    inputs = [value('x', ['n', 4]), value('y', ['m', 4])]
    return model('guards', nodes, inputs, [value('z', [None, 4])])


def gather():
    """Row lookup by run-time indices: a negative index counts from the end, one out of range is an error when run."""
    table = np.arange(15, dtype=np.float32).reshape(5, 3)
    nodes = [helper.make_node('Gather', ['table', 'index'], ['rows'], name='lookup', axis=0)]
    return model('gather', nodes, [value('index', ['n'], T.INT64)], [value('rows', ['n', 3])], [weight('table', table)])


def default_input(ir_version):
    """`scale` is an initializer and an input: a default from IR version 4 on, a constant below."""
    nodes = [helper.make_node('Mul', ['x', 'scale'], ['y'], name='mul')]
    inputs = [value('x', ['n', 3]), value('scale', [3])]
    scale = weight('scale', np.array([1, 2, 3], np.float32))
    return model('default_input', nodes, inputs, [value('y', ['n', 3])], [scale], ir_version=ir_version)


def unsupported():
    """Three operators nobody here implements, among supported ones: all three are to be listed at once."""
    nodes = [
        helper.make_node('Relu', ['x'], ['a'], name='fine'),
        helper.make_node('Frobnicate', ['a'], ['b'], name='blocks/0/frob', domain='acme.ops', strength=3),
        helper.make_node('Bernoulli', ['b'], ['c'], name='blocks/0/noise'),
        helper.make_node('Multinomial', ['c'], ['d'], name='head/draw'),
        helper.make_node('Relu', ['d'], ['y'], name='also_fine'),
    ]
    opset = OPSET + [helper.make_opsetid('acme.ops', 1)]
    return model('unsupported', nodes, [value('x', [2, 4, 4])], [value('y', [2])], opset=opset)


def relu_of(graph_input, weights=(), nodes=None, output=None):
    nodes = nodes or [helper.make_node('Relu', ['x'], ['y'], name='relu')]
    return model('wrong', nodes, [graph_input], [output or value('y', [2, 3])], weights)


def raw_weight(name, dims, raw):
    tensor = T(name=name, data_type=T.FLOAT, raw_data=raw)
    tensor.dims.extend(dims)
    return tensor


def external_weight(location, offset=0, length=24):
    tensor = T(name='w', data_type=T.FLOAT, data_location=T.EXTERNAL)
    tensor.dims.extend([2, 3])
    for key, item in (('location', location), ('offset', offset), ('length', length)):
        tensor.external_data.add(key=key, value=str(item))
    nodes = [helper.make_node('Add', ['x', 'w'], ['y'], name='add')]
    return relu_of(value('x', [2, 3]), [tensor], nodes)


def with_weight(dims, raw):
    nodes = [helper.make_node('Add', ['x', 'w'], ['y'], name='add')]
    return relu_of(value('x', [2, 3]), [raw_weight('w', dims, raw)], nodes)


def odd_names(first, second):
    """Names that only ONNX allows: spaces, slashes, signs of other scripts; an input as an output."""
    nodes = [
        helper.make_node('Relu', ['x/0:é b'], ['::hidden 1'], name=first),
        helper.make_node('Neg', ['::hidden 1'], ['y"[0]\\'], name=second),
    ]
    inputs = [value('x/0:é b', ['größe n', 3]), value('same', [2])]
    return model('odd "name"', nodes, inputs, [value('y"[0]\\', None), value('::hidden 1', None), value('same', [2])])


def wrong():
    """name -> bytes of models that must be refused with a diagnostic, never by a panic or by using up memory."""
    def node(op, inputs, outputs, **attributes):
        return helper.make_node(op, inputs, outputs, name=op.lower(), **attributes)

    x = value('x', [2, 3])
    whole = mlp()
    return {
        'truncated.onnx': whole[:len(whole) // 2],
        'empty.onnx': b'',
        'not_a_model.onnx': b'This is a text file, whatever its name says.\n' * 20,
        'no_graph.onnx': b'\x08\x08',
        'unsupported.onnx': unsupported(),
        'complex_input.onnx': relu_of(value('x', [2, 3], T.COMPLEX64)),
        'string_input.onnx': relu_of(value('x', [2, 3], T.STRING)),
        'undefined_value.onnx': relu_of(x, nodes=[node('Add', ['x', 'nowhere'], ['y'])]),
        'duplicate_value.onnx': relu_of(x, nodes=[node('Relu', ['x'], ['y']), node('Abs', ['x'], ['y'])]),
        'cycle.onnx': relu_of(x, nodes=[node('Add', ['x', 'y'], ['a']), node('Relu', ['a'], ['y'])]),
        'missing_output.onnx': relu_of(x, output=value('z', [2, 3])),
        'shape_mismatch.onnx': with_weight([2, 5], bytes(40)),
        'short_weight.onnx': with_weight([2, 3], bytes(8)),
        'negative_weight_dim.onnx': with_weight([-2, 3], bytes(24)),
        'huge_weight.onnx': with_weight([1 << 40, 1 << 40], b''),
        'unknown_attribute_type.onnx': relu_of(x, nodes=[node('Transpose', ['x'], ['y'], perm='sideways')]),
        'bad_permutation.onnx': relu_of(x, nodes=[node('Transpose', ['x'], ['y'], perm=[0, 0])]),
        'too_few_operands.onnx': relu_of(x, nodes=[node('Add', ['x'], ['y'])]),
        'external_outside.onnx': external_weight('../outside.bin'),
        'external_absolute.onnx': external_weight('/etc/hostname', length=6),
        'external_missing.onnx': external_weight('missing.bin'),
        'external_short.onnx': external_weight('weights.bin', offset=16),
    }


def write(dest, name, data):
    part = os.path.join(dest, name + '.part')
    with open(part, 'wb') as f:
        f.write(data)
    os.replace(part, os.path.join(dest, name))


def main():
    default = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'target', 'models', 'made')
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('dest', nargs='?', default=default)
    dest = parser.parse_args().dest
    os.makedirs(os.path.join(dest, 'wrong'), exist_ok=True)
    good = {
        'mlp.onnx': mlp(), 'guards.onnx': guards(), 'gather.onnx': gather(),
        'default_input.onnx': default_input(8), 'constant_input.onnx': default_input(3),
        'odd_names.onnx': odd_names('n\n1', ''), 'duplicate_names.onnx': odd_names('n', 'n'),
        'external.onnx': external_weight('weights.bin'), 'weights.bin': np.arange(6, dtype='<f4').tobytes(),
    }
    for name, data in good.items():
        write(dest, name, data)
    for name, data in wrong().items():
        write(os.path.join(dest, 'wrong'), name, data)
    write(os.path.join(dest, 'wrong'), 'weights.bin', bytes(24))


if __name__ == '__main__':
    main()
