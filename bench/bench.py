#!/usr/bin/env python3
"""Whole models: tgc against ONNX Runtime, OpenVINO and tract. Called by bench/run, which installs and builds what is needed."""
import argparse
import json
import os
import sys

import cells
from cells import Bench, Case, Failed, log

IMAGE = (3, 224, 224)


def image(name, model, batch):
    return Case(name, model, {'x': ('normal', (batch, *IMAGE))}, {'batch': batch})


def rows(name, model, batch, width):
    return Case(name, model, {'x': ('normal', (batch, width))}, {'batch': batch})


def cases():
    text, sizes = (1, 128), {'batch': 1, 'seq': 128}
    bert = {'input_ids': (30000, text), 'attention_mask': ('ones', text)}
    return [
        rows('tiny', 'tiny', 1, 16),
        rows('mlp', 'mlp', 1, 784),
        rows('mlp batch 8', 'mlp', 8, 784),
        image('mobilenet_v2', 'mobilenet_v2', 1),
        image('resnet50', 'resnet50', 1),
        image('resnet50 batch 8', 'resnet50', 8),
        image('vit_b_16', 'vit_b_16', 1),
        Case('bert_base', 'bert_base', bert, sizes, 'last_hidden_state'),
        Case('gpt2', 'gpt2', {'input_ids': (50000, text)}, sizes, 'logits'),
    ]


def time(us):
    return '%.2f us' % us if us < 100 else '%.0f us' % us if us < 1000 else '%.2f ms' % (us / 1e3)


def mib(n):
    return '%.1f' % (n / 2**20)


def table(head, body):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    return lines + ['| ' + ' | '.join(row) + ' |' for row in body]


def best_peer(figures, case, threads, engines):
    found = [figures.get((case, threads, e), {}).get('median_us') for e in engines if e != 'tgc']
    return min((t for t in found if t), default=None)


def speed(figures, names, threads, engines):
    body = []
    for name in names:
        peer = best_peer(figures, name, threads, engines)
        row = [name]
        for e in engines:
            us = figures.get((name, threads, e), {}).get('median_us')
            row.append('fails' if us is None else '**%s**' % time(us) if e != 'tgc' and us == peer else time(us))
        own = figures.get((name, threads, 'tgc'), {}).get('median_us')
        row.append('%.2f' % (own / peer) if own and peer else '')
        body.append(row)
    return table(['model', *engines, 'tgc / best peer'], body)


def by_engine(figures, names, threads, engines, key, show):
    value = lambda n, e: figures.get((n, threads, e), {}).get(key)
    return table(['model', *engines], [[n, *(show(value(n, e)) if value(n, e) else '' for e in engines)] for n in names])


def report(result, figures):
    """The page docs/benchmarks.md."""
    m, threads, engines = result['machine'], result['threads'], result['engines']
    names, most = list(result['cases']), max(result['threads'])
    out = ['# Benchmarks', '', 'Made by `bench/run`, which installs, builds and measures everything; do not edit. This run:', '']
    out += ['```', result['command'], '```', '']
    limits = '; '.join('%d thread%s: %.0f GFLOP/s of f32 multiply-adds, %.1f GB/s read' % (
        p['threads'], 's' * (p['threads'] > 1), p['gflops'], p['read_gb_s']) for p in result['peaks'])
    out.append('Machine: %s (family/model %s), %d CPUs, %d GiB, %s. Measured limits: %s.' % (
        m['cpu'], m['family'], m['cpus'], m['memory_gib'], ' '.join(m['vectors']) or 'no wide vectors', limits))
    if m['load'] > 0.5:
        out += ['', '**Other work was running (load average %.1f when this began): times of different engines may not be compared.**' % m['load'], '']
    out.append('Engines: %s.' % ', '.join('%s %s' % v for v in result['versions'].items()))
    out += ['', 'One process a measurement, pinned to as many CPUs as threads. Every engine measures in turn in each of %d rounds; '
            'a time is the median of the rounds\' medians. Weights are random, inputs the same for all, f32. tgc runs one '
            'artifact for all sizes; the others get the sizes when they load, which is their best case. All are called from '
            'native code, with inputs and outputs made before (tract makes its outputs anew).' % result['rounds'], '']
    for t in threads:
        out += ['## Time of a run, %d thread%s' % (t, 's' * (t > 1)), '', *speed(figures, names, t, engines), '']
    out += ['## Start to first result, ms (%d threads)' % most, '', 'Loading, binding and one run, file in the page cache.', '',
            *by_engine(figures, names, most, engines, 'first_result_ms', lambda v: '%.1f' % v), '']
    out += ['## Peak memory, MiB (%d threads)' % most, '', 'Of the whole process, with weights that are mapped from the file.', '',
            *by_engine(figures, names, most, engines, 'peak_rss_bytes', mib), '']
    if result['builds']:
        body = [[n, '%.1f' % b['build_s'], mib(b['artifact_bytes']), mib(b['onnx_bytes'])] for n, b in result['builds'].items()]
        out += ['## Compiling with tgc', '', *table(['model', 'seconds', 'artifact, MiB', 'ONNX file, MiB'], body), '']
    out += ['## What ships beside the model, MiB', '', *table(['engine', 'size'], [[e, mib(n)] for e, n in result['sizes'].items()]), '']
    gaps = [[n, *('%.1e' % g[e] if e in g else '' for e in engines)] for n, g in result['differences'].items()]
    out += ['## Difference of the results', '', 'Greatest difference of the first output from the first peer\'s, relative to its greatest '
            'element.', '', *table(['model', *engines], gaps), '']
    failed = {k: f['error'] for k, f in figures.items() if 'error' in f}
    failed.update({(n, '', 'tgc build'): e for n, e in result['build_errors'].items()})
    if failed:
        out += ['## What failed', '']
        for (name, t, engine), text in failed.items():
            first = next((l for l in text.splitlines() if 'error' in l), text.splitlines()[-1])
            out.append('- %s%s, %s: %s' % (name, ' (%s threads)' % t if t else '', engine, first.strip()))
        out.append('')
    return '\n'.join(out)


def sizes(args, engines):
    """Bytes of what an application ships to run models: the runtime, without models."""
    libraries = lambda folder, names: sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder) if f.startswith(names))
    parts = ('libopenvino.so', 'libopenvino_c.so', 'libopenvino_onnx', 'libopenvino_intel_cpu', 'libtbb.so', 'libhwloc')
    found = {
        'tgc': lambda: os.path.getsize(args.tgc_run),
        'onnxruntime': lambda: os.path.getsize(args.onnxruntime),
        'openvino': lambda: libraries(os.path.dirname(os.path.realpath(args.openvino)), parts),
        'tract': lambda: os.path.getsize(args.peers),
    }
    return {e: found[e]() for e in engines}


def main():
    parser = argparse.ArgumentParser(prog='bench/run', description=__doc__)
    known = cases()
    parser.add_argument('--models', default='', help='models, comma separated (default: all)')
    parser.add_argument('--models-dir', required=True, help='folder of the .onnx files, set by bench/run')
    parser.add_argument('--missing', action='store_true', help='print the models that are to be made, and end')
    parser.add_argument('--report', help='file that gets the tables, in Markdown')
    parser.add_argument('--versions', default='', help='versions of the engines, set by bench/run')
    cells.options(parser)
    args = cells.finish(parser)
    models = list(dict.fromkeys(c.model for c in known))
    wanted = args.models.split(',') if args.models else models
    for m in wanted:
        if m not in models:
            parser.error('no model %s (there are: %s)' % (m, ', '.join(models)))
    chosen = [c for c in known if c.model in wanted]
    for c in chosen:
        c.model = os.path.join(args.models_dir, c.model + '.onnx')
    files = list(dict.fromkeys(c.model for c in chosen))
    if args.missing:
        print('\n'.join(os.path.basename(f)[:-5] for f in files if not os.path.exists(f)))
        return
    bench = Bench(args)
    machine = cells.machine(bench)
    builds, build_errors = {}, {}
    for f in files if 'tgc' in args.engines else []:
        name = os.path.basename(f)[:-5]
        try:
            builds[name] = bench.build(f)
            log('%s: built in %.1f s' % (name, builds[name]['build_s']))
        except Failed as e:
            build_errors[name] = str(e)
            log('%s: does not build: %s' % (name, e))
    peaks = [cells.peak(bench, t) for t in args.threads]
    figures = bench.rounds(chosen, args.engines)
    versions = dict(v.split('=', 1) for v in args.versions.split(',') if v)
    result = {
        'command': 'bench/run --models %s --engines %s --threads %s --rounds %d --seconds %g' % (
            ','.join(wanted), ','.join(args.engines), ','.join(map(str, args.threads)), args.rounds, args.seconds),
        'machine': machine,
        'peaks': peaks,
        'versions': {e: versions.get(e, '') for e in args.engines},
        'engines': args.engines,
        'threads': args.threads,
        'rounds': args.rounds,
        'cases': {c.name: {'inputs': c.inputs} for c in chosen},
        'builds': builds,
        'build_errors': build_errors,
        'sizes': sizes(args, args.engines),
        'differences': {c.name: bench.differences(c, args.engines) for c in chosen},
        'figures': [{'case': k[0], 'threads': k[1], 'engine': k[2], **v} for k, v in figures.items()],
    }
    page = report(result, figures)
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(result, f, indent=1)
    if args.report:
        with open(args.report, 'w') as f:
            f.write(page)
    print(page)


if __name__ == '__main__':
    main()
