import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx", providers=["CPUExecutionProvider"])
print(sess.get_providers())
print(sess.get_provider_options())
print("CPUExecutionProvider" in ort.get_available_providers(), "CUDAExecutionProvider" in ort.get_all_providers())
sess.set_providers(["CPUExecutionProvider"])
print(sess.get_providers())
sess.disable_fallback()
sess.enable_fallback()
