"""What both benchmarks share: the engines, one process a measurement, rounds that take turns, the machine.

A case is a model file with inputs of fixed sizes. A cell is a case, an engine and a number of threads. Every cell runs in a
process of its own, pinned to as many CPUs as it has threads; the cells of one case follow each other in every round, in
another order each time, so that noise hits all engines alike.
"""
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

import numpy as np
import onnxruntime

ENGINES = ['tgc', 'onnxruntime', 'openvino', 'tract']
FIGURES = ['median_us', 'min_us', 'load_ms', 'first_result_ms', 'peak_rss_bytes']
SEED = 7


@dataclass
class Case:
    """A model and what it is fed. `inputs`: name -> (kind, shape), a kind being 'normal', 'ones' or an integer bound."""
    name: str
    model: str
    inputs: dict
    dims: dict = field(default_factory=dict)
    # first output, in the model's own words
    output: str = 'y'


class Failed(Exception):
    """A command failed; the text is the end of what it said."""


def call(command, cpus=None, timeout=900):
    """Standard output of a command, pinned to `cpus`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(('OPENBLAS_', 'OMP_', 'KMP_'))}
    pin = ['taskset', '-c', ','.join(map(str, cpus))] if cpus else []
    try:
        done = subprocess.run(pin + command, capture_output=True, text=True, env=env, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed('no end after %d s' % timeout) from None
    if done.returncode != 0:
        raise Failed((done.stderr or done.stdout or 'exit code %d' % done.returncode).strip()[-800:])
    return done.stdout


class Bench:
    """Where things are, and how cells are run."""

    def __init__(self, args):
        self.args = args
        self.work = args.work
        self.cpus = sorted(os.sched_getaffinity(0))
        wide = [t for t in args.threads if t > len(self.cpus)]
        if wide:
            sys.exit('bench: %d threads wanted, %d CPUs are there' % (wide[0], len(self.cpus)))

    def path(self, *parts):
        path = os.path.join(self.work, *parts)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def pinned(self, threads):
        """The CPUs of a cell: the last ones, since the first one serves most interrupts."""
        return self.cpus[-threads:]

    def inputs(self, case):
        """The case's inputs as options NAME=FILE.npy."""
        rng = np.random.default_rng(SEED)
        options = []
        for name, (kind, shape) in case.inputs.items():
            if kind == 'normal':
                value = rng.standard_normal(shape, dtype=np.float32)
            elif kind == 'ones':
                value = np.ones(shape, np.int64)
            else:
                value = rng.integers(0, kind, shape, dtype=np.int64)
            file = self.path('inputs', case.name.replace(' ', '-'), name + '.npy')
            np.save(file, value)
            options += ['--input', '%s=%s' % (name, file)]
        return options

    def artifact(self, model):
        return self.path('artifacts', os.path.basename(model) + '.tgc')

    def build(self, model):
        """Compiles a model; seconds and sizes."""
        artifact = self.artifact(model)
        begin = time.perf_counter()
        call([self.args.tgc, 'build', model, '-o', artifact], timeout=3600)
        seconds = time.perf_counter() - begin
        return {'build_s': seconds, 'artifact_bytes': os.path.getsize(artifact), 'onnx_bytes': os.path.getsize(model)}

    def fixed(self, case):
        """The model with this case's sizes written in and folded by ONNX Runtime, in standard operators: what tract needs."""
        path = self.path('fixed', case.name.replace(' ', '-') + '.onnx')
        if not os.path.exists(path) or os.path.getmtime(path) < os.path.getmtime(case.model):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
            options.optimized_model_filepath = path
            options.log_severity_level = 3
            for name, n in case.dims.items():
                options.add_free_dimension_override_by_name(name, n)
            onnxruntime.InferenceSession(case.model, options, providers=['CPUExecutionProvider'])
        return path

    def cell(self, case, engine, threads, save=None):
        """One process: load, first result, warm runs."""
        cpus = self.pinned(threads)
        common = self.inputs(case) + ['--threads', str(threads)]
        if engine == 'tgc':
            artifact = self.artifact(case.model)
            if save:
                os.makedirs(save, exist_ok=True)
                call([self.args.tgc_run, 'run', artifact, '-o', save + '/'] + common, cpus)
            seconds = ['--min-time', str(self.args.seconds), '--json']
            out = call([self.args.tgc_run, 'bench', artifact] + common + seconds, cpus)
        else:
            extra = ['--seconds', str(self.args.seconds), '--library', self.args.libraries.get(engine, '')]
            for name, n in case.dims.items():
                extra += ['--dim', '%s=%d' % (name, n)]
            if save:
                extra += ['--save', save]
            model = self.fixed(case) if engine == 'tract' else case.model
            out = call([self.args.peers, engine, model] + common + extra, cpus)
        figures = json.loads(out.strip().splitlines()[-1])
        return {k: figures[k] for k in FIGURES}

    def rounds(self, cases, engines):
        """All cells in turns. Gives {(case, threads, engine): {figure: value, or 'error': text}}."""
        samples, errors = {}, {}
        for turn in range(self.args.rounds):
            for case in cases:
                for threads in self.args.threads:
                    order = engines[turn % len(engines):] + engines[:turn % len(engines)]
                    for engine in order:
                        key = (case.name, threads, engine)
                        if key in errors:
                            continue
                        save = self.saved(case, engine) if turn == 0 and threads == self.args.threads[0] else None
                        try:
                            figures = self.cell(case, engine, threads, save)
                            samples.setdefault(key, []).append(figures)
                            text = '%.1f us' % figures['median_us']
                        except Failed as e:
                            errors[key] = str(e)
                            text = 'failed: ' + str(e)
                        log('round %d: %s, %d threads, %s: %s' % (turn + 1, case.name, threads, engine, text))
        # memory counts by its greatest, times by their median
        result = {
            key: {k: (max if k.endswith('bytes') else statistics.median)(f[k] for f in found) for k in FIGURES}
            for key, found in samples.items()
        }
        result.update({key: {'error': text} for key, text in errors.items()})
        return result

    def saved(self, case, engine):
        return self.path('outputs', case.name.replace(' ', '-'), engine)

    def differences(self, case, engines):
        """Greatest difference of the first output from the first peer's that has one, relative to its greatest element."""
        found = {}
        for engine in engines:
            name = case.output if engine == 'tgc' else '0'
            file = os.path.join(self.saved(case, engine), name + '.npy')
            if os.path.exists(file):
                found[engine] = np.load(file).astype(np.float64)
        peers = [e for e in found if e != 'tgc']
        if not peers:
            return {}
        want = found[peers[0]]
        scale = max(float(np.abs(want).max()), 1e-30)
        same = {e: v for e, v in found.items() if v.shape == want.shape}
        gaps = {e: float(np.abs(v - want).max()) / scale for e, v in same.items()}
        return {e: gaps.get(e, float('inf')) for e in found}


def peak(bench, threads):
    """Measured limits of the machine with as many threads: GFLOP/s of multiply-adds, GB/s of reading."""
    return json.loads(call([bench.args.peak, str(threads)], bench.pinned(threads)))


def machine(bench):
    """The machine in words."""
    with open('/proc/cpuinfo') as f:
        fields = dict(l.split(':', 1) for l in f.read().split('\n\n')[0].splitlines() if ':' in l)
    fields = {k.strip(): v.strip() for k, v in fields.items()}
    flags = fields.get('flags', '').split()
    wide = [f for f in ('avx2', 'fma', 'avx512f', 'avx512_vnni', 'avx512_bf16', 'amx_tile') if f in flags]
    with open('/proc/meminfo') as f:
        memory = int(f.readline().split()[1]) // 2**20
    return {
        'cpu': fields.get('model name', os.uname().machine),
        'family': '%s/%s' % (fields.get('cpu family', '?'), fields.get('model', '?')),
        'cpus': len(bench.cpus),
        'memory_gib': memory,
        'vectors': wide,
        'load': os.getloadavg()[0],
    }


def log(text):
    print('==> ' + text, file=sys.stderr, flush=True)


def options(parser, engines=ENGINES):
    """Options of both benchmarks."""
    parser.set_defaults(known=engines)
    parser.add_argument('--engines', default=','.join(engines), help='comma separated (default: %(default)s)')
    parser.add_argument('--threads', default='1,2', help='numbers of threads, comma separated (default: %(default)s)')
    parser.add_argument('--rounds', type=int, default=5, help='times that every cell is measured (default: %(default)s)')
    parser.add_argument('--seconds', type=float, default=1.0, help='least time of warm runs in a cell (default: %(default)s)')
    parser.add_argument('--json', help='file that gets all figures')
    for name in ('work', 'tgc', 'tgc-run', 'peers', 'peak', 'onnxruntime', 'openvino'):
        parser.add_argument('--' + name, required=True, help='a path, set by the script that calls this one')


def finish(parser, argv=None):
    """Parsed arguments with lists as lists."""
    args = parser.parse_args(argv)
    args.engines = args.engines.split(',')
    unknown = [e for e in args.engines if e not in args.known]
    if unknown:
        parser.error('no engine %s (there are: %s)' % (unknown[0], ', '.join(args.known)))
    try:
        args.threads = [int(t) for t in args.threads.split(',')]
    except ValueError:
        parser.error('--threads takes numbers')
    if args.rounds < 1 or min(args.threads) < 1:
        parser.error('--rounds and --threads are 1 or more')
    args.libraries = {'onnxruntime': args.onnxruntime, 'openvino': args.openvino}
    return args
