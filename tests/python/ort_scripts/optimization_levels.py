import numpy as np
import onnxruntime as ort

x = np.random.default_rng(3).standard_normal((2, 3, 32, 32)).astype(np.float32)
results = []
for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
              ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
    so = ort.SessionOptions()
    so.graph_optimization_level = level
    results.append(ort.InferenceSession("cnn.onnx", so).run(None, {"input": x})[0])
    print(level, int(level), np.allclose(results[0], results[-1], atol=1e-4))
