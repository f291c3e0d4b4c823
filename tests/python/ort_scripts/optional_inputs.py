import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("optional.onnx")
print(sess.get_inputs()[0].type)
print(sess.run(None, {"x": np.ones(2, np.float32)}), sess.run(None, {"x": None}), sess.run(None, {}))
