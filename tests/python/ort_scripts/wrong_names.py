import numpy as np
import onnxruntime as rt
from onnxruntime.capi import onnxruntime_pybind11_state as state

sess = rt.InferenceSession("mlp.onnx")
x = np.ones((1, 4), np.float32)
for outputs, feed in ((["nothing"], {"x": x}), (None, {"x": x, "z": x})):
    try:
        sess.run(outputs, feed)
    except state.InvalidArgument as e:
        print(e)
