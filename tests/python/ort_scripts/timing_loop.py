import time

import numpy as np
import onnxruntime as ort

sess_options = ort.SessionOptions()
sess_options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
sess_options.intra_op_num_threads = 1
session = ort.InferenceSession("mlp.onnx", sess_options)
x = {session.get_inputs()[0].name: np.zeros((16, 4), np.float32)}
for _ in range(5):
    session.run(None, x)
latencies = []
for _ in range(30):
    start = time.perf_counter()
    session.run(None, x)
    latencies.append((time.perf_counter() - start) * 1000)
print("runs:", len(latencies), "all above zero:", min(latencies) > 0, "p50 below 1 s:", np.percentile(latencies, 50) < 1000)
