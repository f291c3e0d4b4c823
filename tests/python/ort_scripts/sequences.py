import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("sequences.onnx")
items, count = sess.run(None, {"a": np.ones(2, np.float32), "b": np.zeros(3, np.float32)})
print(type(items).__name__, [i.shape for i in items], count)
pick = ort.InferenceSession("pick.onnx")
print(pick.run(None, {"items": items, "index": np.array(1, dtype=np.int64)}))
print(pick.run(None, {"items": [np.arange(3, dtype=np.float32)], "index": np.array(0)}))
try:
    pick.run(None, {"items": np.ones(3, np.float32), "index": np.array(0)})
except Exception as e:
    print(type(e).__name__, e)
