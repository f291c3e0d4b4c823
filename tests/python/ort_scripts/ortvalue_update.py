import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx")
value = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 4), np.float32))
pointer = value.data_ptr()
for step in range(3):
    value.update_inplace(np.full((1, 4), step, np.float32))
    print(sess.run_with_ort_values(["probabilities"], {"x": value})[0].numpy(), value.data_ptr() == pointer)
