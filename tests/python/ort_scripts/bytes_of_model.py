import numpy as np
import onnx
import onnxruntime as ort

model = onnx.load("arithmetic.onnx")
sess = ort.InferenceSession(model.SerializeToString(), providers=ort.get_available_providers())
a = np.array([1.5, -2, 0], dtype=np.float32)
total, product = sess.run(["sum", "product"], {"a": a})
print(total, product)
with open("arithmetic.onnx", "rb") as f:
    print(ort.InferenceSession(f.read()).run(["product"], {"a": a}))
