"""Fills the corpora of the fuzz targets from the project's fixtures. usage: seeds.py ROOT CORPORA TGC"""

import pathlib
import struct
import subprocess
import sys
import tempfile

root, corpora, tgc = (pathlib.Path(a) for a in sys.argv[1:])


def put(target: str, name: str, data: bytes) -> None:
    folder = corpora / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def manifest(artifact: bytes) -> bytes | None:
    """The input of artifact_load: lengths of code and weights, then the manifest."""
    (count,) = struct.unpack_from("<I", artifact, 16)
    code, weights, body = [], 0, b""
    for i in range(count):
        kind, _, offset, length = struct.unpack_from("<IIQQ", artifact, 32 + 32 * i)
        if kind == 1:
            code.append(length)
        elif kind == 2:
            weights = length
        else:
            body = artifact[offset : offset + length]
    if len(code) > 3 or max(code) > 0xFFFF or weights > 0xFFFF or len(body) > 8192:
        return None
    head = bytes([len(code)]) + b"".join(struct.pack("<H", n) for n in code) + struct.pack("<I", weights)[:3]
    return head + body


def models() -> list[pathlib.Path]:
    found = sorted((root / "target/models/made").rglob("*.onnx"))
    for kind in ("node", "simple"):
        found += sorted((root / "target/models/onnx-suite-1.22.0" / kind).glob("*/model.onnx"))
    return [m for m in found if m.stat().st_size <= 4096]


for model in models():
    put("onnx_import", f"{model.parent.name}-{model.name}", model.read_bytes())
texts = sorted(p for p in (root / "tests").rglob("*.tgir"))
for text in texts:
    put("tgir_text", f"{text.parent.name}-{text.name}", text.read_bytes())
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "m.tgc"
    for text in texts:
        name = f"{text.parent.name}-{text.stem}"
        kernels = subprocess.run([tgc, "build", text, "--emit", "kernels"], capture_output=True, check=False)
        if kernels.returncode == 0 and len(kernels.stdout) <= 8192:
            put("kernel_text", f"{name}.txt", kernels.stdout)
        if text.parent.name not in ("ops", "text"):
            continue
        built = subprocess.run([tgc, "build", text, "-o", out], capture_output=True, check=False)
        seed = manifest(out.read_bytes()) if built.returncode == 0 else None
        if seed:
            put("artifact_load", f"{name}.bin", seed)
for folder in sorted(corpora.iterdir()):
    print(f"{folder.name}: {len(list(folder.iterdir()))} inputs")
