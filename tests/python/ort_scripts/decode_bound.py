import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("decoder.onnx", providers=["CPUExecutionProvider"])
binding = sess.io_binding()
past = ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 0, 8), np.float32))
token = np.array([[5]], np.int64)
chosen = []
for _ in range(6):
    binding.bind_cpu_input("token", token)
    binding.bind_ortvalue_input("past", past)
    binding.bind_output("logits")
    binding.bind_output("present", "cpu")
    sess.run_with_iobinding(binding)
    logits, past = binding.get_outputs()
    token = logits.numpy()[:, -1:].argmax(-1).astype(np.int64)
    chosen.append(int(token[0, 0]))
print(chosen, past.shape())
