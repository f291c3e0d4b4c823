import numpy as np
import onnxruntime as ort

x = np.arange(6, dtype=np.float32).reshape(3, 2)
value = ort.OrtValue.ortvalue_from_numpy(x)
print(value.device_name(), value.shape(), value.data_type(), value.element_type())
print(value.is_tensor(), value.is_sparse_tensor(), value.is_tensor_sequence(), value.has_value())
print(value.data_ptr() == x.ctypes.data, value.tensor_size_in_bytes())
print(value.numpy())
x[0, 0] = 100
print(value.numpy()[0, 0])
