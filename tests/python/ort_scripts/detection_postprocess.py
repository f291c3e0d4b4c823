import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

boxes = helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, None, 4])
scores = helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 1, None])
selected = helper.make_tensor_value_info("selected", TensorProto.INT64, [None, 3])
constants = [numpy_helper.from_array(np.array(v, d), n) for n, v, d in
             (("most", [10], np.int64), ("iou", [0.5], np.float32), ("score", [0.2], np.float32))]
graph = helper.make_graph([helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou", "score"], ["selected"])],
                          "nms", [boxes, scores], [selected], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
sess = onnxruntime.InferenceSession(model.SerializeToString())
b = np.array([[[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30], [0, 0, 1, 1]]], np.float32)
s = np.array([[[0.9, 0.8, 0.6, 0.1]]], np.float32)
print(sess.run(None, {"boxes": b, "scores": s})[0])
print(sess.run(None, {"boxes": b, "scores": np.zeros_like(s)})[0].shape)
