"""Checks an ONNX file and runs it in ONNX Runtime. One argument: a JSON file with the model, the runs (for each input its
name, numpy type, shape and file of bytes), the names of the outputs and a folder for them. Prints one line of JSON."""
import json
import sys


def main():
    with open(sys.argv[1]) as f:
        plan = json.load(f)
    try:
        import numpy
        import onnxruntime
    except ImportError as e:
        return {"missing": f"it is not installed ({e})"}
    try:
        import onnx
    except ImportError:
        onnx = None
    if onnx:
        try:
            onnx.checker.check_model(plan["model"], full_check=True)
        except Exception as e:
            return {"fault": f"the ONNX checker refuses the file: {e}"}
    onnxruntime.set_default_logger_severity(4)
    try:
        session = onnxruntime.InferenceSession(plan["model"], providers=["CPUExecutionProvider"])
    except Exception as e:
        missing = "NOT_IMPLEMENTED" in str(e)
        return {"missing" if missing else "fault": f"it cannot load the file: {e}"}
    runs = []
    for i, inputs in enumerate(plan["runs"]):
        feed = {}
        for x in inputs:
            with open(x["path"], "rb") as f:
                feed[x["name"]] = numpy.frombuffer(f.read(), dtype=x["dtype"]).reshape(x["shape"])
        try:
            outputs = session.run(plan["outputs"], feed)
        except Exception as e:
            runs.append({"error": str(e)})
            continue
        for k, y in enumerate(outputs):
            with open(f"{plan['folder']}/{i}.out{k}", "wb") as f:
                f.write(numpy.ascontiguousarray(y).tobytes())
        runs.append({"shapes": [list(y.shape) for y in outputs], "dtypes": [str(y.dtype) for y in outputs]})
    return {"version": onnxruntime.__version__, "runs": runs}


print(json.dumps(main()))
