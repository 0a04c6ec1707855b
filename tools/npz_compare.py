#!/usr/bin/env python3
"""Compare two .npz files name by name: |got - want| <= atol + rtol * |want|, NaN equal to NaN, integers exactly.

usage: npz_compare.py GOT.npz WANT.npz [--rtol R] [--atol A] [--tolerance NAME=R:A]... [--bits]
A --tolerance is that of one array, or of all that have none of their own where NAME is `*`. With --bits floats are
equal to the bit, all NaNs being one. Prints one line per array; exit code 1 if a name, dtype, shape or value differs.
"""
import argparse
import sys

import numpy as np

import npz


def compare(got, want, rtol, atol, bits):
    if got.dtype != want.dtype or got.shape != want.shape:
        return False, '%s%s, expected %s%s' % (got.dtype, list(got.shape), want.dtype, list(want.shape))
    if want.dtype.kind != 'f':
        wrong = int(np.count_nonzero(got != want))
        return wrong == 0, '%d of %d values differ' % (wrong, want.size)
    if bits:
        whole = np.dtype('u%d' % want.dtype.itemsize)
        same = (got.view(whole) == want.view(whole)) | (np.isnan(got) & np.isnan(want))
        return bool(same.all()), '%d of %d values have other bits' % (int((~same).sum()), want.size)
    close = np.isclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol, equal_nan=True)
    with np.errstate(invalid='ignore'):
        gap = np.abs(got.astype(np.float64) - want.astype(np.float64))
    finite = gap[np.isfinite(gap)]
    worst = float(finite.max()) if finite.size else 0.0
    return bool(close.all()), 'greatest difference %.3g, %d of %d outside' % (worst, int((~close).sum()), want.size)


def tolerance(text):
    name, sep, numbers = text.rpartition('=')
    try:
        rtol, atol = (float(n) for n in numbers.split(':'))
    except ValueError:
        sep = ''
    if not sep or not name:
        raise argparse.ArgumentTypeError('%r is not NAME=RTOL:ATOL' % text)
    return name, (rtol, atol)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('got')
    parser.add_argument('want')
    parser.add_argument('--rtol', type=float, default=1e-3)
    parser.add_argument('--atol', type=float, default=1e-5)
    parser.add_argument('--tolerance', action='append', type=tolerance, default=[], metavar='NAME=R:A')
    parser.add_argument('--bits', action='store_true')
    args = parser.parse_args()
    tolerances = {'*': (args.rtol, args.atol), **dict(args.tolerance)}
    got, want = npz.load(args.got), npz.load(args.want)
    unknown = set(tolerances) - set(want) - {'*'}
    if unknown:
        sys.exit('npz_compare: no array %s' % ', '.join(sorted(unknown)))
    good = True
    for name in sorted(set(got) | set(want)):
        if name not in got or name not in want:
            fine, text = False, 'only in %s' % (args.want if name in want else args.got)
        else:
            fine, text = compare(got[name], want[name], *tolerances.get(name, tolerances['*']), args.bits)
        print('%s %s: %s' % ('ok  ' if fine else 'FAIL', name, text))
        good &= fine
    sys.exit(0 if good else 1)


if __name__ == '__main__':
    main()
