import numpy as np
import onnxruntime as rt

sess = rt.InferenceSession("iris.onnx")
x = np.array([[5.9, 3.0, 4.2, 1.5], [4.6, 3.2, 1.4, 0.2], [7.7, 2.6, 6.9, 2.3]], dtype=np.float32)
labels, probabilities = sess.run(None, {"float_input": x})
print(type(probabilities).__name__, type(probabilities[0]).__name__)
for label, row in zip(labels, probabilities):
    best = max(row, key=row.get)
    print(label, best, sorted(row), "%.4f" % row[best])
