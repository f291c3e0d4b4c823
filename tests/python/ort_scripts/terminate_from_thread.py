import threading
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [384, 384])
names = ["x"] + ["v%d" % i for i in range(400)]
nodes = [helper.make_node("MatMul", [names[i], "x"], [names[i + 1]]) for i in range(400)]
y = helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, [384, 384])
model = helper.make_model(helper.make_graph(nodes, "long", [x], [y]), opset_imports=[onnx.helper.make_opsetid("", 17)],
                          ir_version=8)
so = ort.SessionOptions()
so.log_severity_level = 4
sess = ort.InferenceSession(model.SerializeToString(), so)
options = ort.RunOptions()


def stop():
    time.sleep(0.05)
    options.terminate = True


threading.Thread(target=stop).start()
try:
    for _ in range(100):
        sess.run(None, {"x": np.eye(384, dtype=np.float32)}, options)
    print("went on")
except Exception as e:
    print(type(e).__name__, "terminate flag" in str(e))
