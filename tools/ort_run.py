#!/usr/bin/env python3
"""Run an ONNX model in ONNX Runtime, unoptimized and on one thread: the outside oracle of the tests.

usage: ort_run.py MODEL --inputs IN.npz -o OUT.npz
       ort_run.py MODEL --random SEED [--dim NAME=N]... [--range INPUT=LO:HI]... --save-inputs IN.npz -o OUT.npz

The keys of both files are the model's own names. Random floats are standard normal, or uniform in LO..HI where a range
is given; random integers are uniform in LO..HI (HI excluded), 0..2 unless told; random booleans are fair.
"""
import argparse
import sys

import numpy as np
import onnxruntime as ort

import npz

DTYPES = {
    'tensor(float)': np.float32, 'tensor(double)': np.float64, 'tensor(float16)': np.float16,
    'tensor(int8)': np.int8, 'tensor(int16)': np.int16, 'tensor(int32)': np.int32, 'tensor(int64)': np.int64,
    'tensor(uint8)': np.uint8, 'tensor(uint16)': np.uint16, 'tensor(uint32)': np.uint32, 'tensor(uint64)': np.uint64,
    'tensor(bool)': np.bool_,
}


def pairs(items, what):
    out = {}
    for item in items or []:
        name, sep, value = item.rpartition('=')
        if not sep:
            sys.exit('ort_run: %s %r is not NAME=VALUE' % (what, item))
        out[name] = value
    return out


def random_inputs(session, seed, dims, ranges):
    rng = np.random.default_rng(seed)
    inputs = {}
    for arg in session.get_inputs():
        if arg.type not in DTYPES:
            sys.exit('ort_run: input %s is a %s; no random values for that' % (arg.name, arg.type))
        dtype = np.dtype(DTYPES[arg.type])
        shape = []
        for axis, dim in enumerate(arg.shape):
            if not isinstance(dim, int):
                key = dim if dim in dims else '%s_%d' % (arg.name, axis)
                if key not in dims:
                    sys.exit('ort_run: input %s needs --dim %s=N' % (arg.name, dim or key))
                dim = int(dims[key])
            shape.append(dim)
        bounds = ranges.get(arg.name)
        low, high = (float(b) for b in bounds.split(':')) if bounds else (0.0, 2.0)
        if dtype.kind == 'b':
            inputs[arg.name] = rng.integers(0, 2, shape).astype(dtype)
        elif dtype.kind in 'iu':
            inputs[arg.name] = rng.integers(int(low), int(high), shape).astype(dtype)
        elif bounds:
            inputs[arg.name] = rng.uniform(low, high, shape).astype(dtype)
        else:
            inputs[arg.name] = rng.standard_normal(shape).astype(dtype)
    return inputs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('model')
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument('--inputs', metavar='NPZ')
    source.add_argument('--random', type=int, metavar='SEED')
    parser.add_argument('--dim', action='append', metavar='NAME=N')
    parser.add_argument('--range', action='append', metavar='INPUT=LO:HI')
    parser.add_argument('--save-inputs', metavar='NPZ')
    parser.add_argument('-o', '--output', required=True, metavar='NPZ')
    args = parser.parse_args()

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(args.model, options, providers=['CPUExecutionProvider'])
    if args.inputs:
        inputs = npz.load(args.inputs)
    else:
        inputs = random_inputs(session, args.random, pairs(args.dim, '--dim'), pairs(args.range, '--range'))
    if args.save_inputs:
        npz.save(args.save_inputs, inputs)
    names = [o.name for o in session.get_outputs()]
    npz.save(args.output, dict(zip(names, session.run(names, inputs))))


if __name__ == '__main__':
    main()
