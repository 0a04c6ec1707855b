"""Small models of every kind of kernel, and inputs at two sizes of their dynamic dims, for bench/avx512. Argument: its
work folder."""
import os
import sys

import numpy as np
from onnx import helper, numpy_helper, save

WORK = sys.argv[1]
SIZES = [{'m': 5, 'k': 37, 'n': 19}, {'m': 131, 'k': 300, 'n': 83}]
rng = np.random.default_rng(5)
node = helper.make_node


def normal(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def model(name, nodes, inputs, weights=None):
    """Writes a model with output y and, for each of SIZES, its inputs. Dim b is the batch: 1, then 2."""
    value = lambda n, s: helper.make_tensor_value_info(n, 1, s)
    held = [numpy_helper.from_array(w, n) for n, w in (weights or {}).items()]
    graph = helper.make_graph(nodes, name, [value(n, s) for n, s in inputs.items()], [value('y', None)], held)
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=9)
    save(file, os.path.join(WORK, 'models', name + '.onnx'))
    for i, sizes in enumerate(SIZES):
        sizes = dict(sizes, b=i + 1)
        fed = {n: normal(*(sizes.get(d, d) for d in s)) for n, s in inputs.items()}
        np.savez(os.path.join(WORK, 'guest', 'in', '%s.%d.npz' % (name, i)), **fed)


matmul = [node('MatMul', ['a', 'w'], ['y'])]
model('gemm_constant', matmul, {'a': ['m', 200]}, {'w': normal(200, 70)})
model('gemm_of_chunks', matmul, {'a': ['m', 2500]}, {'w': normal(2500, 33)})
model('gemm_dynamic', matmul, {'a': ['m', 'k'], 'w': ['k', 'n']})
model('gemv', matmul, {'a': [1, 500]}, {'w': normal(500, 129)})
gelu = [node('Gemm', ['a', 'w', 'c'], ['h']), node('Erf', ['h'], ['e']), node('Mul', ['e', 'h'], ['y'])]
model('gemm_bias_erf', gelu, {'a': ['m', 100]}, {'w': normal(100, 70), 'c': normal(70)})

for name, kernel, stride, pad, dilation, groups, channels, out in [
        ('conv_1x1', 1, 1, 0, 1, 1, 33, 48), ('conv_3x3', 3, 1, 1, 1, 1, 16, 40), ('conv_strided', 3, 2, 1, 1, 1, 3, 32),
        ('conv_dilated', 3, 1, 2, 2, 1, 8, 24), ('conv_grouped', 3, 1, 1, 1, 2, 16, 32),
        ('conv_depthwise', 3, 1, 1, 1, 20, 20, 20), ('conv_7x7', 7, 2, 3, 1, 1, 3, 17)]:
    conv = node('Conv', ['x', 'w', 'c'], ['h'], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4,
                dilations=[dilation] * 2, group=groups)
    model(name, [conv, node('Relu', ['h'], ['y'])], {'x': ['b', channels, 15, 14]},
          {'w': normal(out, channels // groups, kernel, kernel), 'c': normal(out)})
model('conv_transposed', [node('ConvTranspose', ['x', 'w'], ['y'], strides=[2, 2])], {'x': ['b', 8, 9, 9]},
      {'w': normal(8, 12, 3, 3)})
model('max_pool', [node('MaxPool', ['x'], ['y'], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)],
      {'x': ['b', 5, 29, 29]})
model('softmax', [node('Softmax', ['x'], ['y'])], {'x': ['m', 77]})
model('layer_norm', [node('LayerNormalization', ['x', 's', 'c'], ['y'])], {'x': ['m', 100]},
      {'s': normal(100), 'c': normal(100)})
functions = [node('Exp', ['x'], ['e']), node('Tanh', ['x'], ['t']), node('Sin', ['x'], ['s']), node('Abs', ['x'], ['a']),
             node('Log', ['a'], ['l']), node('Sum', ['e', 't', 's', 'l'], ['y'])]
model('functions', functions, {'x': ['m', 50]})
