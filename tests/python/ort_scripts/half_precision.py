import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("half.onnx")
x = np.random.default_rng(8).standard_normal((3, 16)).astype(np.float16)
y = sess.run(None, {"x": x})[0]
print(y.dtype, y.shape, sess.get_inputs()[0].type)
reference = sess.run(None, {"x": x.astype(np.float32).astype(np.float16)})[0]
print(np.array_equal(y, reference), np.abs(y).max() <= 1)
try:
    sess.run(None, {"x": x.astype(np.float32)})
except Exception as e:
    print(e)
