import numpy as np
import onnxruntime as ort

so = ort.SessionOptions()
so.add_free_dimension_override_by_name("batch", 2)
so.add_free_dimension_override_by_name("seq", 5)
sess = ort.InferenceSession("encoder.onnx", so)
for i in sess.get_inputs() + sess.get_outputs():
    print(i.name, i.shape)
ids = np.arange(10).reshape(2, 5)
print(sess.run(["pooled"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0].shape)
try:
    sess.run(None, {"input_ids": ids[:1], "attention_mask": np.ones_like(ids[:1])})
except Exception as e:
    print(type(e).__name__, e)
