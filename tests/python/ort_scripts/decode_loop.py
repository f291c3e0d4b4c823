import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("decoder.onnx")
past = np.zeros((1, 0, 8), np.float32)
token, tokens = 3, []
for _ in range(8):
    logits, past = sess.run(["logits", "present"], {"token": np.array([[token]], np.int64), "past": past})
    token = int(logits[0, -1].argmax())
    tokens.append(token)
print(tokens, past.shape)
