import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx")
X = np.ascontiguousarray(np.random.default_rng(4).standard_normal((3, 4)), dtype=np.float32)
Y = np.empty((3, 3), dtype=np.float32)
binding = session.io_binding()
binding.bind_input(name="x", device_type="cpu", device_id=0, element_type=np.float32, shape=X.shape,
                   buffer_ptr=X.ctypes.data)
binding.bind_output(name="probabilities", device_type="cpu", device_id=0, element_type=np.float32, shape=Y.shape,
                    buffer_ptr=Y.ctypes.data)
binding.synchronize_inputs()
session.run_with_iobinding(binding)
binding.synchronize_outputs()
print(Y, np.allclose(Y.sum(axis=1), 1))
print(binding.get_outputs()[0].data_ptr() == Y.ctypes.data)
X[:] = 0
session.run_with_iobinding(binding)
print(Y[0])
