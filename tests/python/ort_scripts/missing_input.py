import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("encoder.onnx")
try:
    sess.run(None, {"input_ids": np.array([[1, 2]])})
except ValueError as e:
    print("ValueError:", e)
