from pathlib import Path

import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession(Path("mlp.onnx"), providers=["CPUExecutionProvider"])
print(sess.run(None, {"x": np.ones((1, 4), dtype=np.float32)})[0].shape)
