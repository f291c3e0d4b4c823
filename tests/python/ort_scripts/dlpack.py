import numpy as np
import onnxruntime as ort

x = np.arange(4, dtype=np.float32).reshape(1, 4)
value = ort.OrtValue.from_dlpack(x)
print(value.shape(), value.data_type(), value.data_ptr() == x.ctypes.data)
sess = ort.InferenceSession("mlp.onnx")
out = sess.run_with_ort_values(None, {"x": value})[0]
shared = np.from_dlpack(out)
print(shared, out.__dlpack_device__())
print(np.asarray(out).shape, np.array(out, dtype=np.float64).dtype)
