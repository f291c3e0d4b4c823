import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("cnn.onnx")
X = np.random.default_rng(2).standard_normal((2, 3, 32, 32)).astype(np.float32)
io_binding = session.io_binding()
io_binding.bind_cpu_input("input", X)
io_binding.bind_output("output")
session.run_with_iobinding(io_binding)
Y = io_binding.copy_outputs_to_cpu()[0]
print(Y.shape, np.array_equal(Y, session.run(None, {"input": X})[0]))
print(Y)
