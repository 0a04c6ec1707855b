#!/usr/bin/env python3
"""Single kernels: how much of the machine's measured limits a matrix product, a convolution and a matrix-vector product
reach. Called by bench/gemm, which installs and builds what is needed."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import cells
from cells import Bench, Case, Failed, log


@dataclass
class Kernel:
    case: Case
    flops: float
    # bytes that must be read, where reading is what limits it
    reads: float = 0.0
    # m, k, n of a matrix product
    product: tuple = ()


def model(bench, name, op, inputs, weights, output, **attributes):
    """A model of one operator; `inputs` and `output`: dims, names or numbers. Its path."""
    rng = np.random.default_rng(cells.SEED)
    info = helper.make_tensor_value_info
    held = [numpy_helper.from_array(rng.standard_normal(s, dtype=np.float32), n) for n, s in weights.items()]
    graph = helper.make_graph(
        [helper.make_node(op, [*inputs, *weights], ['y'], **attributes)], name,
        [info(n, TensorProto.FLOAT, s) for n, s in inputs.items()], [info('y', TensorProto.FLOAT, output)], held)
    path = bench.path('kernels', name.replace(' ', '-') + '.onnx')
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid('', 18)], ir_version=9), path)
    return path


def kernels(bench):
    normal = lambda *shape: ('normal', shape)

    def constant(name, m, k, n, reads=0.0):
        path = model(bench, name, 'MatMul', {'a': ['m', k]}, {'b': (k, n)}, ['m', n])
        return Kernel(Case(name, path, {'a': normal(m, k)}, {'m': m}), 2.0 * m * k * n, reads, (m, k, n))

    def both(name, m, k, n, fixed):
        dims = [m, k, n] if fixed else ['m', 'k', 'n']
        path = model(bench, name, 'MatMul', {'a': dims[:2], 'b': dims[1:]}, {}, [dims[0], dims[2]])
        sizes = {} if fixed else {'m': m, 'k': k, 'n': n}
        return Kernel(Case(name, path, {'a': normal(m, k), 'b': normal(k, n)}, sizes), 2.0 * m * k * n, product=(m, k, n))

    convolution = model(bench, 'conv 3x3', 'Conv', {'x': ['n', 64, 56, 56]}, {'w': (64, 64, 3, 3)}, ['n', 64, 56, 56],
                        kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    conv = Case('conv 3x3, 64 to 64, 56x56', convolution, {'x': normal(1, 64, 56, 56)}, {'n': 1})
    return [
        constant('gemm 1024x1024x1024, constant b', 1024, 1024, 1024),
        both('gemm 1024x1024x1024, both fed', 1024, 1024, 1024, True),
        constant('gemm 128x768x768, constant b', 128, 768, 768),
        both('gemm 1000x777x333, all dims dynamic', 1000, 777, 333, False),
        Kernel(conv, 2.0 * 64 * 64 * 9 * 56 * 56),
        constant('gemv 4096x4096, constant b', 1, 4096, 4096, 4.0 * 4096 * 4096),
    ]


def openblas(m, k, n, seconds):
    """Warm runs of the BLAS that numpy carries: microseconds."""
    rng = np.random.default_rng(cells.SEED)
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    out, took, end = np.empty((m, n), np.float32), [], time.perf_counter() + seconds
    while len(took) < 10 or time.perf_counter() < end:
        begin = time.perf_counter()
        np.dot(a, b, out=out)
        took.append(time.perf_counter() - begin)
    return {'median_us': statistics.median(took) * 1e6, 'min_us': min(took) * 1e6}


class Kernels(Bench):
    """Cells of this benchmark: OpenBLAS too, for the matrix products (by name of the case)."""
    products = {}

    def cell(self, case, engine, threads, save=None):
        if engine != 'openblas':
            return super().cell(case, engine, threads, save)
        if case.name not in self.products:
            raise Failed('OpenBLAS has no convolution')
        # The child reads the number of threads when numpy loads, so it is a process of its own.
        numbers = [str(x) for x in self.products[case.name]]
        call = [sys.executable, __file__, '--openblas', *numbers, str(self.args.seconds)]
        cpus = set(self.pinned(threads))
        out = subprocess.run(call, env={**os.environ, 'OPENBLAS_NUM_THREADS': str(threads)}, check=True, text=True,
                             stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, cpus)).stdout
        return {**dict.fromkeys(cells.FIGURES, 0.0), **json.loads(out)}


def main():
    if sys.argv[1:2] == ['--openblas']:
        m, k, n = map(int, sys.argv[2:5])
        return print(json.dumps(openblas(m, k, n, float(sys.argv[5]))))
    parser = argparse.ArgumentParser(prog='bench/gemm', description=__doc__)
    parser.add_argument('--kernels', default='', help='part of the names of those wanted (default: all)')
    cells.options(parser, ['tgc', 'onnxruntime', 'openblas'])
    parser.set_defaults(rounds=3)
    args = cells.finish(parser)
    bench = Kernels(args)
    chosen = [k for k in kernels(bench) if args.kernels in k.case.name]
    bench.products = {k.case.name: k.product for k in chosen if k.product}
    if not chosen:
        parser.error('no kernel has `%s` in its name' % args.kernels)
    failed = {}
    for k in chosen if 'tgc' in args.engines else []:
        try:
            bench.build(k.case.model)
        except Failed as e:
            failed[k.case.name] = str(e)
            log('%s: does not build: %s' % (k.case.name, e))
    # the limits before and after, in case something disturbed one of the measurements
    limits = lambda: {t: cells.peak(bench, t) for t in args.threads}
    before = limits()
    figures = bench.rounds([k.case for k in chosen], args.engines)
    after = limits()
    gaps = {k.case.name: bench.differences(k.case, args.engines) for k in chosen}
    rows = []
    for threads in args.threads:
        best = lambda key: max(before[threads][key], after[threads][key])
        flops, reads = best('gflops'), best('read_gb_s')
        print('\n%d thread%s: %.1f GFLOP/s of multiply-adds, %.1f GB/s read' % (threads, 's' * (threads > 1), flops, reads))
        for k in chosen:
            for engine in args.engines:
                found = figures[(k.case.name, threads, engine)]
                if 'error' in found:
                    print('  %-38s %-12s failed: %s' % (k.case.name, engine, found['error'].splitlines()[0]))
                    continue
                us = found['median_us']
                work, limit, unit = (k.reads, reads, 'GB/s') if k.reads else (k.flops, flops, 'GFLOP/s')
                rate, fastest = work / us / 1e3, work / found['min_us'] / 1e3
                gap = gaps[k.case.name].get(engine)
                text = '' if gap is None else '  difference %.1e' % gap
                print('  %-38s %-12s %10.1f us %8.1f %-7s %5.1f%%  best run %5.1f%%%s' % (
                    k.case.name, engine, us, rate, unit, 100 * rate / limit, 100 * fastest / limit, text))
                rows.append({'kernel': k.case.name, 'engine': engine, 'threads': threads, 'median_us': us, 'rate': rate,
                             'unit': unit, 'share': rate / limit, 'best_share': fastest / limit, 'difference': gap})
    if args.json:
        with open(args.json, 'w') as f:
            json.dump({'machine': cells.machine(bench), 'limits': [before, after], 'kernels': rows}, f, indent=1)


if __name__ == '__main__':
    main()
