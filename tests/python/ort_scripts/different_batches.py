import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("arithmetic.onnx")
for n in (3, 1):
    print(sess.run(["sum"], {"a": np.arange(n, dtype=np.float32)})[0])
cnn = ort.InferenceSession("cnn.onnx")
rng = np.random.default_rng(12)
for n in (1, 2, 5, 1):
    out = cnn.run(None, {"input": rng.standard_normal((n, 3, 32, 32)).astype(np.float32)})[0]
    print(n, out.shape, out[0, :3])
