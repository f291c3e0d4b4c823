import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("sequences.onnx")
a = ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32))
items, count = sess.run_with_ort_values(None, {"a": a, "b": a})
print(items.is_tensor(), items.is_tensor_sequence(), items.data_type(), items.element_type())
print(count.is_tensor(), count.data_type(), count.numpy())
try:
    items.numpy()
except RuntimeError as e:
    print("RuntimeError", "Only OrtValues that are Tensors are convertible to Numpy objects" in str(e))
again = ort.InferenceSession("pick.onnx").run_with_ort_values(None, {
    "items": items, "index": ort.OrtValue.ortvalue_from_numpy(np.array(0))})
print(again[0].numpy())
