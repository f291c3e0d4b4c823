import numpy as np
import onnxruntime as ort

for wrong in ([1, 2], 3.0, np.array(["a"]), np.float32(2)):
    try:
        ort.OrtValue.ortvalue_from_numpy(wrong)
    except RuntimeError as e:
        print("RuntimeError", e)
value = ort.OrtValue.ortvalue_from_numpy(np.zeros((2, 2), np.float32))
for wrong in (np.zeros((3, 3), np.float32), [1]):
    try:
        value.update_inplace(wrong)
    except (RuntimeError, TypeError) as e:
        print(type(e).__name__, e)
try:
    ort.OrtValue(np.zeros(3))
except ValueError as e:
    print("ValueError", "needs to be of type" in str(e))
try:
    ort.OrtDevice.make("toaster", 0)
except Exception as e:
    print(e)
