import numpy as np
import onnxruntime as rt

sess = rt.InferenceSession("cnn.onnx")
for shape in ((1, 3, 32), (1, 1, 32, 32), (2, 3, 30, 31), (3, 32, 32)):
    try:
        sess.run(["output"], {"input": np.zeros(shape, np.float32)})
    except Exception as e:
        print(type(e).__name__, e)
