import numpy as np
import onnxruntime as ort


def preprocess(image):
    data = image.transpose(2, 0, 1).astype(np.float32) / 255.0
    mean = np.array([0.485, 0.456, 0.406], dtype=np.float32)[:, None, None]
    std = np.array([0.229, 0.224, 0.225], dtype=np.float32)[:, None, None]
    return ((data - mean) / std)[np.newaxis, :]


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


rng = np.random.default_rng(0)
session = ort.InferenceSession("cnn.onnx", providers=["CPUExecutionProvider"])
scores = session.run(["output"], {"input": preprocess(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))})[0][0]
probabilities = softmax(scores)
for i in np.argsort(probabilities)[::-1][:5]:
    print("class %d: %.4f" % (i, probabilities[i]))
