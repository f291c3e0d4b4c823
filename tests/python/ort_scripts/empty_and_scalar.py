import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx")
out = sess.run(None, {"x": np.zeros((0, 4), np.float32)})[0]
print(out.shape, out.size, out.dtype)
sess = ort.InferenceSession("scalar.onnx")
y, twice = sess.run(None, {"x": np.array(3, dtype=np.float32), "whole": np.array([1, -2], dtype=np.int32)})
print(y, y.shape, float(y), twice, twice.dtype)
for wrong in (3.0, np.float32(3)):
    try:
        sess.run(None, {"x": wrong, "whole": np.array([1, 2], np.int32)})
    except RuntimeError as e:
        print(e)
