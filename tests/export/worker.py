"""Checks ONNX files and runs them in ONNX Runtime, one after another. A line of JSON in: the file, its inputs (name, numpy type,
shape, file of bytes), the names of the outputs, and the stem of the files for their bytes. A line of JSON out: `status`, and
`why`, or the types and shapes of the outputs."""
import json
import sys

import numpy as np
import onnx
import onnxruntime as ort

ort.set_default_logger_severity(4)


def without_bf16(path):
    """numpy has no bf16, so that inputs and outputs of the type go in and out as f32, which holds it."""
    model = onnx.load(path)
    graph = model.graph
    bf16, f32 = onnx.TensorProto.BFLOAT16, onnx.TensorProto.FLOAT
    held = {t.name for t in graph.initializer}
    before, after = [], []
    for i in graph.input:
        if i.type.tensor_type.elem_type == bf16 and i.name not in held:
            i.type.tensor_type.elem_type = f32
            before.append(onnx.helper.make_node("Cast", [i.name], [i.name + " as bf16"], to=bf16))
    made = {n.input[0]: n.output[0] for n in before}
    for n in graph.node:
        for k, name in enumerate(n.input):
            n.input[k] = made.get(name, name)
    for o in graph.output:
        if o.type.tensor_type.elem_type == bf16:
            o.type.tensor_type.elem_type = f32
            after.append(onnx.helper.make_node("Cast", [o.name], [o.name + " as f32"], to=f32))
            o.name += " as f32"
    if not before and not after:
        return path
    nodes = before + list(graph.node) + after
    del graph.node[:]
    graph.node.extend(nodes)
    return model.SerializeToString()


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
        if job["plain"]:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        narrow = job["bf16"] and not job["large"]
        session = ort.InferenceSession(without_bf16(path) if narrow else path, options, providers=["CPUExecutionProvider"])
    except Exception as e:
        return {"status": "kernel" if "NOT_IMPLEMENTED" in str(e) else "load", "why": str(e)}
    feed = {}
    for x in job["inputs"]:
        with open(x["path"], "rb") as f:
            data = f.read()
        if x["dtype"] == "bfloat16":
            data = (np.frombuffer(data, dtype="uint16").astype("uint32") << 16).tobytes()
        dtype = "float32" if x["dtype"] == "bfloat16" else x["dtype"]
        feed[x["name"]] = np.frombuffer(data, dtype=dtype).reshape(x["shape"])
    names = [i.name for i in session.get_inputs() + session.get_overridable_initializers()]
    if sorted(names) != sorted(feed):
        return {"status": "inputs", "why": f"the file has inputs {names}"}
    made = [o.name for o in session.get_outputs()]
    narrow = [n not in made for n in job["outputs"]]
    try:
        found = session.run([n + " as f32" if bf16 else n for n, bf16 in zip(job["outputs"], narrow)], feed)
    except Exception as e:
        return {"status": "kernel" if "NOT_IMPLEMENTED" in str(e) else "run", "why": str(e)}
    for k, (y, bf16) in enumerate(zip(found, narrow)):
        if bf16:
            y = (np.ascontiguousarray(y).view("uint32") >> 16).astype("uint16")
        with open(f"{job['stem']}.out{k}", "wb") as f:
            f.write(np.ascontiguousarray(y).tobytes())
    dtypes = ["bfloat16" if bf16 else str(y.dtype) for y, bf16 in zip(found, narrow)]
    return {"status": "ran", "dtypes": dtypes, "shapes": [list(y.shape) for y in found]}


for line in sys.stdin:
    try:
        said = run(json.loads(line))
    except Exception as e:
        said = {"status": "answer", "why": repr(e)}
    print(json.dumps(said), flush=True)
