import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("lstm.onnx")
feed = {"x": np.ones((2, 1, 5), np.float32), "h0": np.zeros((1, 1, 6), np.float32), "c0": np.zeros((1, 1, 6), np.float32)}
for names in (None, [], ["hn"], ["cn", "y"], ("y", "y")):
    print(names, [o.shape for o in sess.run(names, feed)])
output_names = [o.name for o in sess.get_outputs()]
named = dict(zip(output_names, sess.run(output_names, feed)))
print({k: v.round(3).ravel()[:3].tolist() for k, v in named.items()})
