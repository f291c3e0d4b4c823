import numpy as np
import onnxruntime as rt
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

sess = rt.InferenceSession("mlp.onnx")
for x in (np.ones((1, 4)), np.ones((1, 4), np.int64), np.ones((1, 4), bool), np.array([["a"] * 4])):
    try:
        sess.run(None, {"x": x})
    except InvalidArgument as e:
        print(e)
