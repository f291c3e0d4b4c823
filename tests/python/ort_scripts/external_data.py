import os
import pathlib

import numpy as np
import onnxruntime as ort

print(os.path.exists("external.bin"))
x = np.ones((1, 4), np.float32)
print(np.allclose(ort.InferenceSession("external.onnx").run(None, {"x": x})[0],
                  ort.InferenceSession("mlp.onnx").run(None, {"x": x})[0]))
so = ort.SessionOptions()
data = pathlib.Path("external.bin").read_bytes()
so.add_external_initializers_from_files_in_memory(["external.bin"], [data], [len(data)])
print(ort.InferenceSession(pathlib.Path("external.onnx").read_bytes(), so).run(None, {"x": x})[0])
