import numpy as np
import onnx
import onnxruntime.backend as backend

rep = backend.prepare("mlp.onnx", "CPU")
x = np.linspace(0, 1, 4, dtype=np.float32)[None]
print(rep.run(x)[0])
print(backend.run(onnx.load("arithmetic.onnx"), [np.array([1, 2, 3], np.float32)]))
print(backend.supports_device("CPU"), backend.supports_device("TPU"))
try:
    backend.prepare("encoder.onnx").run(np.zeros((1, 2), np.int64))
except Exception as e:
    print(type(e).__name__)
