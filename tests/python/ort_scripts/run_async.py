import threading

import numpy as np
import onnxruntime as ort


class Data:
    def __init__(self):
        self.event = threading.Event()
        self.results = None
        self.error = None


def callback(results, user_data, err):
    user_data.results = results
    user_data.error = err
    user_data.event.set()


sess = ort.InferenceSession("mlp.onnx")
data = Data()
sess.run_async(["probabilities"], {"x": np.ones((1, 4), np.float32)}, callback, data)
print(data.event.wait(30), repr(data.error), data.results)
data = Data()
sess.run_async(None, {"x": np.ones((1, 4))}, callback, data)
print(data.event.wait(30), data.error, data.results)
try:
    sess.run_async(None, {}, callback, data)
except ValueError as e:
    print(e)
