import numpy as np
import onnxruntime as ort

names = ort.InferenceSession("text.onnx").run(None, {"labels": np.array([2, 0, 7, 1])})[0]
print(names, names.dtype, type(names[0]).__name__)
sess = ort.InferenceSession("words.onnx")
for words in (np.array(["b", "héllo", "zzz"]), np.array(["a", "b"], dtype=object), ["a", "héllo"]):
    print(sess.run(["ids"], {"words": words})[0])
