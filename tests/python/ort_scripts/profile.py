import json
import os

import numpy as np
import onnxruntime as rt

options = rt.SessionOptions()
options.enable_profiling = True
options.profile_file_prefix = "trace"
sess = rt.InferenceSession("mlp.onnx", options, providers=["CPUExecutionProvider"])
for _ in range(3):
    sess.run(None, {"x": np.ones((1, 4), np.float32)})
prof_file = sess.end_profiling()
print(os.path.basename(prof_file).startswith("trace"), prof_file.endswith(".json"))
with open(prof_file) as f:
    events = json.load(f)
print(type(events).__name__, {e["ph"] for e in events} <= {"X", "M"}, all("ts" in e and "dur" in e for e in events))
print(sorted({e["cat"] for e in events if e["cat"] in ("Node", "Session")}))
print(sum(e["name"] == "model_run" for e in events), any(e["args"].get("op_name") == "Softmax" for e in events))
