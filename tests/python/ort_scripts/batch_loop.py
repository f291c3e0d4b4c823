import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("cnn.onnx")
rng = np.random.default_rng(1)
data = rng.standard_normal((10, 3, 32, 32)).astype(np.float32)
whole = sess.run(None, {"input": data})[0]
for size in (1, 3, 4):
    parts = [sess.run(None, {"input": data[i:i + size]})[0] for i in range(0, len(data), size)]
    joined = np.concatenate(parts)
    print(size, joined.shape, np.allclose(joined, whole, atol=1e-4))
