import numpy as np
import onnxruntime as ort

so = ort.SessionOptions()
so.log_severity_level = 4
sess = ort.InferenceSession("mlp.onnx", so)
x = np.ones((1, 4), np.float32)


def attempt(act):
    try:
        act()
        print("fine")
    except (RuntimeError, ValueError) as e:
        print(type(e).__name__, e)


binding = sess.io_binding()
attempt(lambda: binding.bind_cpu_input("nothing", x))
attempt(lambda: binding.bind_cpu_input("x", [[1, 2, 3, 4]]))
attempt(lambda: binding.bind_output("probabilities", "cpu", 0, buffer_ptr=x.ctypes.data))
binding.bind_cpu_input("x", x)
attempt(lambda: sess.run_with_iobinding(binding))
binding.bind_output("probabilities")
attempt(lambda: sess.run_with_iobinding(binding))
binding.bind_cpu_input("x", np.ones((1, 5), np.float32))
attempt(lambda: sess.run_with_iobinding(binding))
binding.bind_cpu_input("x", np.ones((1, 4)))
attempt(lambda: sess.run_with_iobinding(binding))
other = ort.InferenceSession("mlp.onnx")
attempt(lambda: other.run_with_iobinding(binding))
wrong = ort.OrtValue.ortvalue_from_shape_and_type([1, 5], np.float32)
binding.bind_cpu_input("x", x)
binding.bind_ortvalue_output("probabilities", wrong)
attempt(lambda: sess.run_with_iobinding(binding))
