import numpy as np
import onnxruntime as ort

so = ort.SessionOptions()
so.log_severity_level = 3
sess = ort.InferenceSession("arithmetic.onnx", so)
print([i.name for i in sess.get_inputs()], [(i.name, i.shape, i.type) for i in sess.get_overridable_initializers()])
a = np.array([1, 1, 1], np.float32)
print(sess.run(None, {"a": a}))
print(sess.run(None, {"a": a, "b": np.array([10, 20, 30], np.float32)}))
print(sess.run(None, {"a": a}))
