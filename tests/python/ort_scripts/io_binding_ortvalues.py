import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx")
x = ort.OrtValue.ortvalue_from_numpy(np.ones((2, 4), np.float32), "cpu", 0)
y = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32, "cpu", 0)
io_binding = session.io_binding()
io_binding.bind_ortvalue_input("x", x)
io_binding.bind_ortvalue_output("probabilities", y)
session.run_with_iobinding(io_binding)
print(y.numpy())
outputs = io_binding.get_outputs()
print(len(outputs), outputs[0].shape(), outputs[0].data_ptr() == y.data_ptr())
