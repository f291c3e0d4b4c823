import numpy as np
import onnxruntime as rt
from onnxruntime.datasets import get_example

sess = rt.InferenceSession(get_example("sigmoid.onnx"), providers=rt.get_available_providers())
input_name, output_name = sess.get_inputs()[0].name, sess.get_outputs()[0].name
print(input_name, sess.get_inputs()[0].shape, sess.get_inputs()[0].type)
print(output_name, sess.get_outputs()[0].shape, sess.get_outputs()[0].type)
x = np.random.default_rng(0).random((3, 4, 5)).astype(np.float32)
print(sess.run([output_name], {input_name: x})[0][0])
sess = rt.InferenceSession(get_example("mul_1.onnx"))
print(sess.run(None, {sess.get_inputs()[0].name: np.ones((3, 2), np.float32)}))
try:
    get_example("no_such_example.onnx")
except FileNotFoundError as e:
    print("FileNotFoundError", "Unable to find example 'no_such_example.onnx'" in str(e))
