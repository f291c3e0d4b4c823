import numpy as np
import onnxruntime as rt

rng = np.random.default_rng(20)
X = rng.normal(size=(40, 4)).astype(np.float32)
sess = rt.InferenceSession("iris.onnx", providers=["CPUExecutionProvider"])
input_name, (label, prob) = sess.get_inputs()[0].name, [o.name for o in sess.get_outputs()]
one_by_one = np.array([sess.run([label], {input_name: row[np.newaxis]})[0][0] for row in X])
together, maps = sess.run([label, prob], {input_name: X})
print((one_by_one == together).mean(), np.bincount(together, minlength=3))
print(sum(max(m, key=m.get) == lab for m, lab in zip(maps, together)))
print({k: round(v, 3) for k, v in maps[0].items()})
