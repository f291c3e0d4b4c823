import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

model = onnx.load("mlp.onnx")
w = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
x = np.random.default_rng(11).standard_normal((5, 4)).astype(np.float32)
hidden = np.maximum(x @ w["w1"] + w["b1"], 0)
logits = hidden @ w["w2"] + w["b2"]
e = np.exp(logits - logits.max(axis=1, keepdims=True))
expected = e / e.sum(axis=1, keepdims=True)
actual = ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)
print("equal within tolerance", actual.shape)
