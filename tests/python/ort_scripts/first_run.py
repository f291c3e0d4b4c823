import numpy as np
import onnxruntime as ort

session = ort.InferenceSession("mlp.onnx")
x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
outputs = session.run(None, {"x": x})
print(outputs[0])
print(outputs[0].argmax(axis=1))
