"""Checks ONNX files and runs them in ONNX Runtime, one after another. A line of JSON in: the file, its inputs (name, numpy type,
shape, file of bytes), the names of the outputs, and the stem of the files for their bytes. A line of JSON out: `status`, and
`why`, or the types and shapes of the outputs."""
import json
import sys

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)


def run(job):
    path = job["model"]
    try:
        onnx.checker.check_model(path, full_check=True)
        if not job["large"]:
            onnx.shape_inference.infer_shapes(onnx.load(path), check_type=True, strict_mode=True, data_prop=True)
    except Exception as e:
        return {"status": "checker", "why": str(e)}
    try:
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return {"status": "kernel" if "NOT_IMPLEMENTED" in str(e) else "load", "why": str(e)}
    feed = {}
    for x in job["inputs"]:
        with open(x["path"], "rb") as f:
            feed[x["name"]] = np.frombuffer(f.read(), dtype=x["dtype"]).reshape(x["shape"])
    names = [i.name for i in session.get_inputs()]
    if sorted(names) != sorted(feed):
        return {"status": "inputs", "why": f"the file has inputs {names}"}
    try:
        found = session.run(job["outputs"], feed)
    except Exception as e:
        return {"status": "kernel" if "NOT_IMPLEMENTED" in str(e) else "run", "why": str(e)}
    for k, y in enumerate(found):
        with open(f"{job['stem']}.out{k}", "wb") as f:
            f.write(np.ascontiguousarray(y).tobytes())
    return {"status": "ran", "dtypes": [str(y.dtype) for y in found], "shapes": [list(y.shape) for y in found]}


for line in sys.stdin:
    print(json.dumps(run(json.loads(line))), flush=True)
