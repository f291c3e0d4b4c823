import numpy as np
import onnxruntime
from onnx import TensorProto, helper

X = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 2])
Y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [None, 2])
node = helper.make_node("LeakyRelu", ["X"], ["Y"], alpha=0.1)
graph = helper.make_graph([node], "leaky", [X], [Y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
sess = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
print(sess.run(None, {"X": np.array([[-1, 2], [3, -4]], dtype=np.float32)}))
