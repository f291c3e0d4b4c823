import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx")
kept = [sess.run(None, {"x": np.full((1, 4), i, np.float32)})[0] for i in range(5)]
for i, out in enumerate(kept):
    print(i, out, out.flags.writeable, np.array_equal(out, sess.run(None, {"x": np.full((1, 4), i, np.float32)})[0]))
kept[0][:] = 0
print(sess.run(None, {"x": np.zeros((1, 4), np.float32)})[0])
del sess
print(kept[1])
