import numpy as np
import onnxruntime as ort

sess = ort.InferenceSession("lstm.onnx")
rng = np.random.default_rng(5)
feed = {"x": rng.standard_normal((3, 2, 5)).astype(np.float32), "h0": np.zeros((1, 2, 6), np.float32),
        "c0": np.zeros((1, 2, 6), np.float32)}
values = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in feed.items()}
for out, meta in zip(sess.run_with_ort_values(None, values), sess.get_outputs()):
    print(meta.name, out.shape(), out.data_type(), out.device_name(), round(float(out.numpy().sum()), 4))
plain = sess.run(["hn"], feed)[0]
print(np.array_equal(plain, sess.run_with_ort_values(["hn"], values)[0].numpy()))
