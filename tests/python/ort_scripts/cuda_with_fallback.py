import warnings

import numpy as np
import onnxruntime as ort

if "CUDAExecutionProvider" not in ort.get_available_providers():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sess = ort.InferenceSession("mlp.onnx", providers=[
            ("CUDAExecutionProvider", {"device_id": 0, "arena_extend_strategy": "kNextPowerOfTwo"}), "CPUExecutionProvider"])
    print(sess.get_providers(), [w.category.__name__ for w in caught])
    print("CUDAExecutionProvider' is not in available provider names" in str(caught[0].message))
    print(sess.run(None, {"x": np.zeros((1, 4), np.float32)})[0])
    print(ort.get_device())
