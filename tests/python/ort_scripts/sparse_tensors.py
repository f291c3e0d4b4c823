import numpy as np
import onnxruntime as ort

cpu = ort.OrtDevice.make("cpu", 0)
coo = ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), np.array([1.0, 2.0], np.float32), np.array([1, 8]), cpu)
print(coo.values(), coo.dense_shape(), coo.format(), coo.data_type(), coo.device_name(), coo.as_coo_view().indices())
csr = ort.SparseTensor.sparse_csr_from_numpy(np.array([2, 3]), np.array([1, 2, 3], np.int64), np.array([0, 2, 1]),
                                             np.array([0, 2, 3]), cpu)
print(csr.format(), csr.as_csrc_view().inner(), csr.as_csrc_view().outer(), csr.values())
value = ort.OrtValue.ort_value_from_sparse_tensor(coo)
print(value.is_sparse_tensor(), value.is_tensor(), value.data_type(), value.as_sparse_tensor().values())
try:
    csr.as_coo_view()
except RuntimeError as e:
    print("RuntimeError", "does not contain COO format" in str(e))
