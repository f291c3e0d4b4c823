import numpy as np
import onnxruntime as ort

for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64,
              np.uint64, np.bool_):
    value = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], dtype, "cpu", 0)
    print(np.dtype(dtype).name, value.data_type(), value.element_type(), value.shape(), value.numpy().dtype)
print(ort.OrtValue.ortvalue_from_shape_and_type((4,), 16).data_type())
print(ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.zeros(4, np.uint16), 16).data_type())
