import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("types.onnx")
x = np.array([0, 1, 3, 7.5], np.float32)
for meta, out in zip(sess.get_outputs(), sess.run(None, {"x": x})):
    print(meta.name, meta.type, out.dtype, out.tolist())
print(sess.run(["i64", "u8"], {"x": x}))
