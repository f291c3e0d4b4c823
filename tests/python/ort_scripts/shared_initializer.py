import numpy as np
import onnxruntime as ort

w = np.full((8, 3), 0.5, np.float32)
value = ort.OrtValue.ortvalue_from_numpy(w)
so = ort.SessionOptions()
so.add_initializer("w2", value)
first = ort.InferenceSession("mlp.onnx", so)
second = ort.InferenceSession("mlp.onnx", so)
x = np.arange(8, dtype=np.float32).reshape(2, 4)
print(first.run(None, {"x": x})[0])
print(np.array_equal(first.run(None, {"x": x})[0], second.run(None, {"x": x})[0]))
