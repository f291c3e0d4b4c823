import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("vectorizer.onnx")
print(sess.get_inputs()[0].name, sess.get_inputs()[0].type)
print(np.ravel(sess.run(None, {"m": {"a": 1.0, "c": 3.5}})[0]))
print(np.ravel(sess.run(None, {"m": {"b": -2.0}})[0]))
for wrong in ({1: 2.0}, np.ones(3, np.float32)):
    try:
        sess.run(None, {"m": wrong})
    except Exception as e:
        print(type(e).__name__, e)
