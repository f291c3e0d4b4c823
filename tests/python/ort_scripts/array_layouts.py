import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("mlp.onnx")
base = np.arange(32, dtype=np.float32).reshape(4, 8) / 10
views = {"plain": base[:, :4].copy(), "slice": base[:, :4], "step": base[:, ::2], "transposed": base[:4, :4].T,
         "reversed": base[::-1, :4], "fortran": np.asfortranarray(base[:, :4])}
for name, view in views.items():
    same = sess.run(None, {"x": np.ascontiguousarray(view)})[0]
    print(name, view.flags.c_contiguous, np.array_equal(sess.run(None, {"x": view})[0], same))
print(sess.run(None, {"x": [[1, 2, 3, 4]]})[0])
