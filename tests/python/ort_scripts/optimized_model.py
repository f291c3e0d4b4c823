import os

import numpy as np
import onnxruntime as rt

so = rt.SessionOptions()
so.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_BASIC
so.optimized_model_filepath = "optimized.onnx"
first = rt.InferenceSession("mlp.onnx", so)
print(os.path.exists("optimized.onnx"))
second = rt.InferenceSession("optimized.onnx")
x = np.eye(4, dtype=np.float32)
print(np.allclose(first.run(None, {"x": x})[0], second.run(None, {"x": x})[0], atol=1e-6))
