import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("branches.onnx")
x = np.array([1, 2, 3], dtype=np.float32)
for flag in (True, False):
    print(flag, sess.run(["y"], {"flag": np.array(flag), "x": x})[0])
