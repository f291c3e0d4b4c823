import numpy as np
import onnxruntime

device = "cuda" if "CUDAExecutionProvider" in onnxruntime.get_available_providers() else "cpu"
providers = ["CUDAExecutionProvider", "CPUExecutionProvider"] if device == "cuda" else ["CPUExecutionProvider"]
session = onnxruntime.InferenceSession("static.onnx", providers=providers, provider_options=[{}] * len(providers))
x = np.arange(192, dtype=np.float32).reshape(1, 3, 8, 8)
y, z = session.run(None, {"x": x})
print(y[0, :, 0], z, z.shape)
